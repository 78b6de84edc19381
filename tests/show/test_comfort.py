"""The command line's comforts: completion, headings, people's units, few suggestions, the guide, the caveat."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from limitlab._core.registry import all_laws, find_law
from limitlab.show.cli import app
from limitlab.show.cli._catalogue import HAVE, MODEL, WANT, answer
from limitlab.show.cli._law import claim_ids, figure_ids, law_names, parameter_options
from limitlab.show.cli._running import in_words


def run(*args: str, **options: object) -> Result:
    return CliRunner().invoke(app, [*args], **options)  # type: ignore[arg-type]


# -- completion -----------------------------------------------------------------------------------------------------------


def test_names_are_found_without_importing_them() -> None:
    from limitlab.lab.claims import all_claims
    from limitlab.lab.figures import all_figures

    assert sorted(law_names("A") + [name for letter in "BCDEFGHIJKLMNOPQRSTUVWXYZ" for name in law_names(letter)]) == sorted(
        all_laws()
    )
    assert all(find_law(name) for name in law_names())
    assert sorted(figure_ids()) == sorted(all_figures())
    assert sorted(claim_ids()) == sorted(name for name, claim in all_claims().items() if claim.implemented)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pred", "predict"),
        ("predict marchenko", "marchenko-pastur"),
        ("predict ridge --sig", "--signal-energy"),
        ("predict ridge --obs", "--observables"),
        ("verify J1", "J10"),
        ("figure ridge-d", "ridge-double-descent"),
        ("notes J-4", "J-48"),
    ],
)
def test_the_tab_key(words: str, offered: str) -> None:
    asked = {"_LIMITLAB_COMPLETE": "complete_bash", "COMP_WORDS": f"limitlab {words}", "COMP_CWORD": str(len(words.split()))}
    done = subprocess.run(
        [sys.executable, "-c", "from limitlab.show.cli import main; main()"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert offered in done.stdout.split(), done.stdout + done.stderr


def test_a_name_that_is_no_law_offers_nothing() -> None:
    assert parameter_options("no-such-law") == []


# -- headings, units, hints -----------------------------------------------------------------------------------------------


def test_headings_show_the_parameters_even_if_they_are_the_defaults() -> None:
    heading = run("predict", "ridge").stdout.splitlines()[0]
    assert heading == "Ridge(ratio=2, noise=0.5, eigenvalues=(1), weights=(1), signal_energy=(1), ridge=0.1)"
    swept = run("predict", "ridge", "--ratio", "0.5,2").stdout.splitlines()[0]
    assert "ratio" not in swept
    assert "ridge=0.1" in swept


def test_a_plan_says_its_answer_in_peoples_units() -> None:
    text = run("plan", "ridge", "--target", "test_error=0.4", "--solve-for", "ratio").stdout
    found = re.search(r"that is (\S+) features per sample, or (\S+) samples per feature", text)
    assert found
    assert float(found[1]) * float(found[2]) == pytest.approx(1, abs=0.01)
    assert in_words(find_law("ridge")(), "ridge", 0.1) == ""


def test_unknown_ids_suggest_a_few() -> None:
    for args in (("show", "qqq"), ("figure", "qqq"), ("verify", "QQ7")):
        result = run(*args)
        assert result.exit_code == 2
        assert "the nearest are" in result.stderr
        assert result.stderr.count(",") <= 3


def test_a_prediction_prints_its_caveat() -> None:
    law = next(law for law in all_laws().values() if law().caveat())
    assert f"note: {law().caveat()[:30]}" in run("predict", law.__name__).stdout
    assert "note:" not in run("predict", "ridge").stdout


# -- stop -------------------------------------------------------------------------------------------------------------------


def test_stop_works_without_naming_its_law() -> None:
    result = run("stop", "--width", "3", "--end", "6")
    assert result.exit_code == 0, result.output
    assert "TwoLayerDynamics(" in result.stdout
    assert re.search(r"stop at time|stays close to its best value", result.stdout)


def test_stop_takes_every_law_that_is_followed_in_time() -> None:
    result = run("stop", "early-stopping", "--ratio", "0.8", "--noise", "1")
    assert result.exit_code == 0, result.output
    assert re.search(r"stop at time [\d.]+ \(test error", result.stdout)


# -- the guide --------------------------------------------------------------------------------------------------------------


def test_the_guide_answers_every_combination_with_what_exists() -> None:
    names = {command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands}  # type: ignore[union-attr]
    helps: dict[str, str] = {}
    for have, want, model in itertools.product(HAVE, WANT, MODEL):
        found = answer(have, want, model)
        assert found.law in all_laws()
        program, command, *rest = shlex.split(found.command)
        assert program == "limitlab"
        assert command in names
        if command not in helps:
            helps[command] = run(command, "--help", env={"COLUMNS": "200", "TERM": "dumb"}).stdout
        law = rest[0] if rest and rest[0] in all_laws() else None
        known = {option for option, _ in parameter_options(law)} if law else set()
        for option in (word for word in rest if word.startswith("--")):
            assert option in known or re.search(rf"{option}\b", helps[command]), found.command


@pytest.mark.parametrize(
    "have_want_model", [("model", "how-much", "linear"), ("model", "best", "linear"), ("model", "error", "attention")]
)
def test_commands_of_the_guide_work(have_want_model: tuple[str, str, str]) -> None:
    result = run(*shlex.split(answer(*have_want_model).command)[1:])
    assert result.exit_code == 0, result.output


def test_the_guide_with_flags_and_as_json() -> None:
    given = ("guide", "--have", "model", "--want", "stop", "--model", "network")
    assert run(*given).stdout.startswith("limitlab stop TwoLayerDynamics")
    assert json.loads(run(*given, "--json").stdout)["law"] == "TwoLayerDynamics"
    wrong = run("guide", "--have", "modle")
    assert wrong.exit_code == 2
    assert "did you mean 'model'" in wrong.stderr
    silent = run("guide", "--have", "model")
    assert silent.exit_code == 2
    assert "--want is required" in silent.stderr


def test_the_guide_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limitlab.show.cli._catalogue.has_terminal", lambda: True)
    result = run("guide", input="3\nnonsense\n4\nnetwork\n")
    assert result.exit_code == 0, result.output
    assert "What do you have?" in result.stdout
    assert "'nonsense' is not one of the choices" in result.stdout
    assert "limitlab stop TwoLayerDynamics" in result.stdout
