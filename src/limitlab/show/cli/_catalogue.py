"""The commands `guide`, `laws`, `show`, `cite` and `notes`, which help to choose a law and describe it."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab.errors import Refused, did_you_mean
from limitlab.show.cli._app import app, say
from limitlab.show.cli._law import LawArgument, LawsOption, dashed, note_names
from limitlab.show.cli._output import JsonOption, kebab, parameter_table, print_facts, print_json, print_page, stdout

if TYPE_CHECKING:
    from limitlab._core.law import Law


HAVE = {
    "data": "a table of data, inputs and a target",
    "losses": "losses of trained models of several sizes",
    "model": "a model with given numbers of samples and of features or neurons",
    "study": "a study to plan, with a yes-or-no outcome",
    "statement": "a statement of the theory, or a paper",
}
WANT = {
    "more-data": "what more data would give",
    "how-much": "how much data, width or penalty a target needs",
    "best": "which penalty is best",
    "stop": "when to stop training",
    "error": "which error to expect",
    "check": "whether theory and experiment agree",
}
MODEL = {
    "linear": "linear or ridge regression",
    "classifier": "a linear classifier with the largest margin",
    "logistic": "logistic regression",
    "features": "random features (a wide network with an untrained first layer)",
    "network": "a trained two-layer network",
    "sgd": "SGD with fresh samples at every step",
    "attention": "tokens in a transformer",
    "kernel": "a very wide, deep network (tangent kernel)",
}


@dataclass(frozen=True)
class Answer:
    """A recommended command, its law and a description of its result."""

    command: str
    law: str
    words: str


LAWS = {
    "linear": ("Ridge", "ratio", "--ratio 0.5 --ridge 0.1 --noise 0.5"),
    "classifier": ("MaxMargin", "ratio", "--ratio 0.7"),
    "logistic": ("LogisticCalibration", "ratio", "--ratio 0.1"),
    "features": ("RandomFeaturesRidge", "sample_ratio", "--width-ratio 3 --sample-ratio 2"),
    "network": ("TwoLayerDynamics", "sample_ratio", "--width 20 --sample-ratio 10"),
    "sgd": ("OnlineSingleIndex", "step", "--step 0.5"),
    "attention": ("EquiangularTokens", "tokens", "--tokens 32 --beta 2"),
    "kernel": ("WideNetwork", "layers", "--layers 3"),
}
"""The law of every kind of model, the parameter for its number of data, and an example of its parameters."""


def answer(have: str, want: str, model: str) -> Answer:
    """Return the command and the law for the answers to the three questions of `guide`.

    >>> answer("data", "more-data", "linear").command
    'limitlab forecast DATA.csv --target COLUMN'
    >>> answer("model", "stop", "network").law
    'TwoLayerDynamics'
    """
    law, counted, example = LAWS[model]
    if have == "statement":
        return Answer("limitlab verify J8", law, "checks a claim; `limitlab laws` lists the claims of every law")
    if have == "study" or (model == "logistic" and want == "how-much"):
        command = "limitlab sample-size --predictors 20 --auc 0.8 --prevalence 0.2"
        return Answer(command, "LogisticCalibration", "the number of patients for calibrated risks")
    if have == "losses":
        return Answer(
            "limitlab scaling-fit LOSSES.csv",
            "PowerLawScaling",
            "fits E + A N^-a + B D^-b, with the best width at a compute",
        )
    if have == "data" and want in ("more-data", "error", "how-much", "best", "check"):
        extra = {"how-much": " --error 0.1", "best": ""}.get(want, "")
        return Answer(
            f"limitlab forecast DATA.csv --target COLUMN{extra}",
            "Ridge",
            "the learning curve of your data, without training",
        )
    if want == "stop":
        stopped = {"network": "TwoLayerDynamics", "features": "EarlyStopping", "kernel": "EarlyStopping"}.get(
            model, "EarlyStopping"
        )
        options = example if stopped == "TwoLayerDynamics" else "--ratio 0.8 --noise 1"
        return Answer(f"limitlab stop {stopped} {options}", stopped, "the best time and the window around it")
    if want == "check":
        return Answer(
            f"limitlab compare {law}", law, "compares theory and experiments at growing size, with an error budget"
        )
    if want == "best" and model in ("linear", "features"):
        return Answer(
            f"limitlab optimal {law} {example.replace(' --ridge 0.1', '')} --over ridge",
            law,
            "the penalty with the smallest test error",
        )
    if want == "how-much" and model in ("linear", "features"):
        option = {"ratio": "--ratio 0.5 ", "sample_ratio": " --sample-ratio 2"}[counted]
        rest = f" {example} ".replace(option, " ").strip()
        return Answer(
            f"limitlab plan {law} {rest} --target test_error=0.5 --solve-for {counted}",
            law,
            "the ratio of samples that reaches the target",
        )
    return Answer(
        f"limitlab predict {law} {example}",
        law,
        "the prediction of the limit; give a parameter a range (0.1:10:50log) for a curve",
    )


@app.command(epilog="Example: limitlab guide --have model --want stop --model network")
def guide(
    have: Annotated[str | None, typer.Option("--have", metavar="WORD", help=f"What you have: {', '.join(HAVE)}.")] = None,
    want: Annotated[
        str | None, typer.Option("--want", metavar="WORD", help=f"What you want to know: {', '.join(WANT)}.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="WORD", help=f"Your kind of model: {', '.join(MODEL)}.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask three questions, and recommend a command and a law."""
    first = choose("have", "What do you have?", HAVE, have)
    second = choose("want", "What do you want to know?", WANT, want)
    third = choose("model", "Which kind of model?", MODEL, model)
    recommended = answer(first, second, third)
    if as_json:
        print_json(vars(recommended))
        return
    say(recommended.command, bold=True)
    say(f"    {recommended.words}", "    ")
    say(f"It uses the law {recommended.law} (limitlab show {recommended.law})")


def has_terminal() -> bool:
    """Return whether the input is a terminal."""
    return sys.stdin.isatty()


def choose(option: str, question: str, choices: dict[str, str], value: str | None) -> str:
    """Return the value of an option, or ask for it on the terminal. Raise `ValueError` if there is no terminal."""
    if value is not None:
        if value not in choices:
            raise Refused(f"--{option} {value} is not allowed: {did_you_mean(value, choices)}")
        return value
    if not has_terminal():
        raise Refused(f"--{option} is required when there is no terminal: choose one of {', '.join(choices)}")
    say(question)
    names = list(choices)
    for place, (name, words) in enumerate(choices.items(), 1):
        say(f"  {place}  {words} ({name})", "     ")
    while True:
        typed = typer.prompt("number or word", default="1")
        if typed.isdecimal() and 1 <= int(typed) <= len(names):
            return names[int(typed) - 1]
        if typed in choices:
            return str(typed)
        say(f"{typed!r} is not one of the choices: {did_you_mean(typed, choices)}")


@app.command(epilog="Example: limitlab laws overfitting")
def laws(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="Only laws with these words in their name, question, subject, observables, parameters or claims.",
        ),
    ] = None,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """List the laws with the question that each of them answers, one line per law."""
    from limitlab._core.registry import laws_by_subject

    listed = {
        subject: [law for law in members if mentions(law, subject, words or ())]
        for subject, members in laws_by_subject().items()
    }
    shown = [law for members in listed.values() for law in members]
    if not shown:
        every = sorted(
            {word for subject, members in laws_by_subject().items() for law in members for word in words_of(law, subject)}
        )
        raise Refused(f"no law contains {' '.join(words or ())!r}: {did_you_mean((words or [''])[0].lower(), every)}")
    if as_json:
        print_json([describe_law(law) for law in shown])
        return
    from limitlab._core.registry import law_id

    width, column = stdout().width, max(len(law_id(law)) for law in shown)
    for subject, members in listed.items():
        if members:
            say(subject, bold=True)
        for law in members:
            question = shorten(law.title(), width - column - 2)
            typer.echo(f"{law_id(law):<{column}}  {question}")


def words_of(law: type[Law], subject: str) -> set[str]:
    """Return the words by which `laws` finds a law."""
    import re

    from limitlab._core.headline import headline_of
    from limitlab._core.registry import law_id
    from limitlab.lab.claims import claims_of

    texts = [dashed(law.__name__), law.title(), subject, law.regime, headline_of(law).finding]
    texts += [meta.long_name for meta in law.outputs().values()] + [meta.description for meta in law.parameters().values()]
    names = [law_id(law), *law.outputs(), *law.parameters(), *claims_of(law)]
    return {word.lower() for word in [*names, *re.findall(r"[^\W\d_]{3,}", " ".join(texts))]}


def mentions(law: type[Law], subject: str, words: Sequence[str]) -> bool:
    """Return whether every one of these words is a part of a word of a law.

    >>> from limitlab.laws import Ridge
    >>> mentions(Ridge, "Regression", ["ridge", "noise"]), mentions(Ridge, "Regression", ["transformer"])
    (True, False)
    """
    known = words_of(law, subject)
    return all(any(word.lower() in each for each in known) for text in words for word in text.split())


def shorten(text: str, width: int) -> str:
    """Return the beginning of a sentence that fits in a line, without a part of a word.

    >>> shorten("How fast do test errors fall?", 16), shorten("How fast?", 16)
    ('How fast do ...', 'How fast?')
    """
    return textwrap.shorten(
        text, max(width, len(" ...")), placeholder=" ...", break_long_words=False, break_on_hyphens=False
    )


@app.command(epilog="Example: limitlab show ridge")
def show(law_name: LawArgument, as_json: JsonOption = False, laws: LawsOption = None) -> None:
    """Describe a law by its regime, assumptions, parameters and observables."""
    from limitlab._core.registry import find_law
    from limitlab.lab.claims import claims_of

    law = find_law(law_name)
    if as_json:
        print_json(describe_law(law))
        return
    say(law.__name__, bold=True)
    say(law.title() + "\n")
    facts = {
        "Status": STATUS_WORDS[law.status],
        "Regime": law.regime,
        "Assumptions": "\n".join(law.assumptions),
        "Observables": "\n".join(f"{name}: {meta.long_name}" for name, meta in law.outputs().items()),
        "Size": f"{law.simulation.size_meaning} (of an experiment)",
        "Claims": ", ".join(claims_of(law)),
    }
    print_facts({term: words for term, words in facts.items() if words})
    parameter_table(law)
    say(f"\nExample: {example(law)}")


STATUS_WORDS = {
    "theorem": "theorem",
    "derived": "derived (not proved in full; checked by simulation)",
    "conjecture": "conjecture: its numbers are not proved",
}


@app.command(epilog="Example: limitlab cite ridge >> references.bib")
def cite(law_name: LawArgument, as_json: JsonOption = False, laws: LawsOption = None) -> None:
    """Print the references of a law as BibTeX."""
    from limitlab._core.about import bibtex
    from limitlab._core.registry import find_law

    law = find_law(law_name)
    references = bibtex(law.references, law)
    if as_json:
        print_json({"law": law.__name__, "references": references})
    elif references:
        say("\n\n".join(references), " " * 14)
    else:
        raise Refused(f"{law.__name__} has no references")


@app.command(epilog="Example: limitlab notes 13")
def notes(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CHAPTER]",
            help="Number or title of a chapter, key or name of a document (J, Notes), id of an item (J-48), of a claim or of a figure, a "
            "status (full, part, missing, open), or a word (default: all chapters with the number of their items).",
            autocompletion=note_names,
        ),
    ] = None,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Show which theorems, figures and questions of the lecture notes limitlab executes, with law, claim and figure."""
    from limitlab.lab.documents import documents

    listed = documents()
    page = (listed.find(" ".join(words)) if words else listed).page()
    if as_json:
        print_json(page.data)
    else:
        print_page(page, fold=True)


# -- descriptions of laws --------------------------------------------------------------------------------------------


def example(law: type[Law]) -> str:
    """Return a command that predicts this law in a sweep over its first array parameter.

    >>> from limitlab.laws import Ridge
    >>> example(Ridge)
    'limitlab predict Ridge --ratio 0.1:10:50log'
    """
    from limitlab._core.about import kind_of
    from limitlab._core.registry import law_id, laws_option, package_of

    metas, package = law.parameters(), package_of(law)
    load = laws_option(package.name) if package is not None else ""
    numbers = [
        name
        for name, meta in metas.items()
        if meta.kind in ("physics", "coordinate")
        and kind_of(law.model_fields[name].annotation) in ("number", "whole", "series")
    ]
    for name in sorted(numbers, key=lambda name: name not in law.array_parameters()):
        low, high, kind = span(metas[name].default, metas[name].scale)
        if metas[name].allows(low) and metas[name].allows(high):
            return f"limitlab predict {law_id(law)} --{kebab(name)} {low:g}:{high:g}:50{kind}{load}"
    return f"limitlab predict {law_id(law)}{load}"


def span(default: Any, scale: str) -> tuple[float, float, str]:
    """Return an interval around a default value, and its spacing."""
    from limitlab._core.checks import numbers_in

    value = next((abs(item) for item in numbers_in(default) if item), 1.0)
    if scale == "log":
        centre = 10.0 ** round(math.log10(value)) if 0 < value < math.inf else 1.0
        return centre / 10, centre * 10, "log"
    return 0.0, 2 * value, ""


def describe_law(law: type[Law]) -> dict[str, Any]:
    """Return the description of a law as a plain structure, for JSON."""
    from limitlab._core.about import allowed
    from limitlab._core.registry import law_id
    from limitlab.lab.claims import claims_of

    return {
        "name": law_id(law),
        "title": law.title(),
        "status": law.status,
        "regime": law.regime,
        "assumptions": law.assumptions,
        "references": law.references,
        "claims": claims_of(law),
        "observables": [
            {"name": name, "meaning": meta.long_name, "symbol": meta.symbol} for name, meta in law.outputs().items()
        ],
        "size_meaning": law.simulation.size_meaning,
        "parameters": [
            {
                "name": name,
                "symbol": meta.symbol,
                "default": meta.default,
                "allowed": allowed(law, name),
                "description": meta.description,
                "note": meta.note,
                "kind": meta.kind,
                "scale": meta.scale,
            }
            for name, meta in law.parameters().items()
        ],
        "example": example(law),
    }
