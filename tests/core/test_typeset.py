"""Plain mathematics in sentences: which of it is found, and what it becomes."""

from __future__ import annotations

import re

import pytest

from limitlab._core.registry import all_laws
from limitlab._core.typeset import Formula, mathml, parts, typeset
from limitlab.lab.claims import all_claims


def marked(text: str) -> str:
    """The sentence with its formulas between brackets."""
    return "".join(f"[{part.tex}]" if isinstance(part, Formula) else part for part in parts(text))


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ("the best k gives the rate n^{-2 beta/(2 beta + d)}", r"the best [k] gives the rate [n^{-2 \beta /(2 \beta + d)}]"),
        ("a singularity |x|^-a, 0 < a < d/2", "a singularity [|x|^{-a}], [0 < a < d/2]"),
        ("A fit E + A N^-a + B D^-b finds a width", "A fit [E + A N^{-a} + B D^{-b}] finds a width"),
        ("bias r^2 (1 - n/d)^+.", "bias [r^{2} (1 - n/d)^{+}]."),
        ("with T_hat = 2, a mean-field limit", r"with [\hat{T} = 2], a mean-field limit"),
        ("p/n -> gamma and n, p -> infinity", r"[p/n \to \gamma] and [n], [p \to \infty]"),
        ("sum exp(beta <x_i, x_j>)", r"[\sum \exp (\beta \langle x_{i},\ x_{j}\rangle )]"),
        (
            "Fisher's information, a low signal-to-noise ratio (exponent open)",
            "Fisher's information, a low signal-to-noise ratio (exponent open)",
        ),
        ("a degree-k polynomial, samples_per_weight", "a degree-[k] polynomial, samples_per_weight"),
        ("F*^2 + tau^2 >= mu1^2/mu*^2", r"[F_*^{2} + \tau ^{2} \ge \mu_{1}^{2}/\mu _*^{2}]"),
        ("as TeX: $\\frac{1}{2}$", r"as TeX: [\frac{1}{2}]"),
    ],
)
def test_formulas_are_found(plain: str, expected: str) -> None:
    assert marked(plain) == expected


def test_no_plain_mathematics_is_left_in_the_statements() -> None:
    left = re.compile(r"\^|\bsqrt\(|->|<=|>=|\b(?:alpha|beta|gamma|delta|kappa|lambda|sigma|tau|psi|rho)\b|\w\*\w")
    sentences = [claim.statement for claim in all_claims().values()]
    sentences += [text for law in all_laws().values() for text in (law.title(), law.regime)]
    for sentence in sentences:
        prose = "".join(part for part in parts(sentence) if isinstance(part, str))
        assert not left.search(prose), sentence


def test_every_symbol_can_be_set() -> None:
    for law in all_laws().values():
        for symbol in [meta.symbol for meta in (*law.parameters().values(), *law.outputs().values()) if meta.symbol]:
            assert mathml(symbol).startswith("<math>"), (law.__name__, symbol)


def test_prose_is_escaped_and_code_is_code() -> None:
    assert typeset("this <not> & `x_1 < 2`") == "this &lt;not&gt; &amp; <code>x_1 &lt; 2</code>"
