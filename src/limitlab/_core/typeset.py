r"""Typesetting of the formulas in sentences. Plain letters such as `tau^2/k` or `p/n -> gamma` become MathML.

Laws and claims write formulas in plain letters, which are readable on a terminal. For a page the formulas are recognised, turned
into TeX and then into MathML, so that the page loads no script. TeX between dollars is used unchanged.

>>> parts("the best k gives the rate n^(-1/2)")
['the best ', Formula('k'), ' gives the rate ', Formula('n^{-1/2}')]
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise

GREEK = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ"},
    **{"iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ"},
    **{"sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω"},
}
"""Greek letters by their TeX names."""
CAPITALS = ("Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi", "Psi", "Omega")
GREEK_TEX = {name: rf"\{name}" for name in (*GREEK, *CAPITALS)} | {
    "epsilon": r"\varepsilon",
    "eps": r"\varepsilon",
    "phi": r"\varphi",
    "phihat": r"\hat\varphi",
}
FUNCTIONS = ("sqrt", "exp", "min", "max", "sup", "sin", "cos", "tanh", "sign", "erf", "softmax", "Var")
"""Names of functions that are mathematics if a bracket follows immediately."""
APPLIED = ("log", "tr", "Im", "Re", "argmax", "sum", "grad")
"""Names of functions that may also stand before an argument without brackets, as in `log t`."""
SIGNS = {
    "<=": r"\le ",
    ">=": r"\ge ",
    "->": r"\to ",
    "<-": r"\leftarrow ",
    "<<": r"\ll ",
    ">>": r"\gg ",
    "-+": r"\mp ",
    "+-": r"\pm ",
}
SIGNS |= {"*": r"\cdot ", "~": r"\sim ", "⟨": r"\langle ", "⟩": r"\rangle ", "|": "|", "%": r"\%"}
RELATIONS = {"=", "<", ">", "<=", ">=", "<<", ">>", "->", "<-", "~"}
JOINTS = {*RELATIONS, "+", "-", "*", "/", "^", "-+", "+-"}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}", "⟨": "⟩"}, {")": "(", "]": "[", "}": "{", "⟩": "⟨"}

_DOLLARS = re.compile(r"\$([^$]+)\$")
_ANGLES = re.compile(r"<(?=\S)([^<>=]*?,[^<>=]*?)(?<=\S)>")
_TOKEN = re.compile(
    r"""
    (?P<code>`[^`]*`)
  | (?P<name>[A-Za-z]+'s\b | [A-Za-z]+\d*(?:_(?:\{[^}]*\}|\*|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*))?)
  | (?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?)
  | (?P<sign><=|>=|->|<-(?=\s)|<<|>>|-\+|\+-|[-+*/^=<>|~%'(){}\[\]⟨⟩,])
  | (?P<space>\s+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Formula:
    """A formula inside a sentence, in TeX."""

    tex: str

    def __repr__(self) -> str:
        return f"Formula({self.tex!r})"


@dataclass
class Token:
    """A piece of a sentence, with its text, its kind, and whether there is space before and after it."""

    text: str
    kind: str
    spaced_before: bool = False
    spaced_after: bool = False
    starts: bool = False
    maths: bool = False


def typeset(text: str) -> str:
    """Return a sentence as HTML, with its formulas as MathML and names between backticks as code.

    >>> typeset("at most `noise` & more")
    'at most <code>noise</code> &amp; more'
    >>> typeset("p/n").startswith("<math")
    True
    """
    shown = [mathml(part.tex) if isinstance(part, Formula) else escape(part, quote=False) for part in parts(text)]
    return re.sub(r"`([^`<>]*)`", r"<code>\1</code>", "".join(shown))


def in_markdown(text: str) -> str:
    r"""Return a sentence as Markdown for a cell of a table, with its formulas between dollars.

    >>> print(in_markdown("the rate n^(-1/2) of <names>"))
    the rate $n^{-1/2}$ of \<names>
    """
    return "".join(between_dollars(part.tex) if isinstance(part, Formula) else _escaped(part) for part in parts(text))


def between_dollars(tex: str) -> str:
    """Return TeX as a formula of Markdown for a cell of a table, where a vertical bar would end the cell."""
    return "$" + tex.replace(r"\|", r"\Vert ").replace("|", r"\vert ") + "$"


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")


@functools.cache
def mathml(tex: str) -> str:
    """Return TeX as MathML; a formula that cannot be read is returned unchanged."""
    from latex2mathml.converter import convert
    from latex2mathml.exceptions import DenominatorNotFoundError, DoubleSubscriptsError, DoubleSuperscriptsError

    once = re.sub(
        r"_\{((?:[^{}]|\{[^{}]*\})*)\}_\{((?:[^{}]|\{[^{}]*\})*)\}", r"_{\1,\2}", tex
    )  # a subscript of a subscript
    once = re.sub(r"\{\\(?:mathrm|rm) ?\{?(\w{2,})\}?\}", r"{\\text{\1}}", once)
    try:
        made = convert(once)
    except (DoubleSubscriptsError, DoubleSuperscriptsError, DenominatorNotFoundError, IndexError):
        return f"<code>{escape(tex)}</code>"
    close = made.replace("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>')  # p/n, not p / n
    letters = re.sub(r"&#x([0-9A-F]+);", lambda match: escape(chr(int(match[1], 16))), close)
    return re.sub(r' xmlns="[^"]*"| display="inline"| fence="false"', "", letters)


@functools.cache
def parts(text: str) -> list[str | Formula]:
    """Return the parts of a sentence, which are prose and formulas."""
    pieces: list[str | Formula] = []
    for position, piece in enumerate(_DOLLARS.split(text)):
        pieces += [Formula(piece)] if position % 2 else _plain_parts(piece)
    return [part for part in pieces if part != ""]


def _plain_parts(text: str) -> list[str | Formula]:
    tokens = _tokens(_ANGLES.sub(r"⟨\1⟩", text))
    for token in tokens:
        token.maths = _letter_of_maths(token)
    _by_neighbours(tokens)
    pieces: list[str | Formula] = []
    position = 0
    while position < len(tokens):
        end = _run(tokens, position)
        if end > position:
            pieces.append(Formula(tex_of(tokens[position:end])))
            position = end
            continue
        token = tokens[position]
        plain = {"⟨": "<", "⟩": ">"}.get(token.text, token.text)
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] += plain
        else:
            pieces.append(plain)
        position += 1
    return pieces


def _tokens(text: str) -> list[Token]:
    tokens = [Token(match[0], match.lastgroup or "") for match in _TOKEN.finditer(text)]
    for before, after in pairwise(tokens):
        before.spaced_after, after.spaced_before = after.kind == "space", before.kind == "space"
    sentence = True
    for token in tokens:
        if token.kind == "name":
            token.starts, sentence = sentence, False
        elif token.text in (".", ":", "?"):
            sentence = True
    return tokens


def _letter_of_maths(token: Token) -> bool:
    """Return whether a name by itself is mathematics.

    Such a name is one letter or the name of a Greek letter, and digits or a subscript may follow.
    """
    if token.kind != "name" or token.text.endswith("'s"):
        return False
    base = re.match(r"[A-Za-z]+", token.text)[0]  # type: ignore[index]
    if token.text == base:
        return base in GREEK_TEX or (len(base) == 1 and base != "a" and not (base in "AI" and token.starts))
    return base in (*GREEK_TEX, "df") or len(base) == 1


def _by_neighbours(tokens: list[Token]) -> None:
    """Mark names that are mathematics because of their neighbours.

    Examples are `a = 2`, `bias^2`, `step * samples`, `log t` and `-> infinity`.
    """
    solid = [token for token in tokens if token.kind != "space"]
    edge = Token("", "other")
    for _ in range(3):  # a name may become mathematics because its neighbour did
        for token, before, far_before, after, far_after in zip(
            solid, [edge, *solid], [edge, edge, *solid], [*solid[1:], edge], [*solid[2:], edge, edge], strict=False
        ):
            if token.kind == "name" and not token.maths and not token.text.endswith("'s"):
                token.maths = _beside(token, before, far_before, after, far_after)


def _beside(token: Token, before: Token, far_before: Token, after: Token, far_after: Token) -> bool:
    """Return whether a name is mathematics because of the two tokens before it and the two tokens after it."""
    left, right, word = before.text, after.text, token.text
    called = right in ("(", "⟨") and not token.spaced_after
    if word.partition("_")[0] in (*FUNCTIONS, *APPLIED):
        bare = word.partition("_")[0] in APPLIED and (after.maths or after.kind == "number" or after.text == "|")
        return bare or called or "_" in word
    if word in ("infinity", "inf"):
        return left in RELATIONS
    if left == "(" and right == ")" and far_before.text in FUNCTIONS:
        return True  # exp(score)
    if word in ("a", "A", "I"):
        signed = left == "-" and not token.spaced_before and not before.spaced_before
        beside = left in JOINTS - {"-"} or right in JOINTS - {"-"} or (left == right == "|")
        return called or signed or beside or (word == "A" and before.maths)
    if re.fullmatch(r"[a-z][A-Z]|[A-Z]b|[A-Z]{2}", word):  # a product of two letters
        return any(near in ("=", "+", "'") for near in (left, right)) or (left == "-" and token.spaced_before)
    if word in ("md", "Nd", "iv", "vN"):
        return left in ("(", "+")
    if "_" in word or len(word) < 2:
        return False
    powered = (right == "^" and not token.spaced_after) or (left == "^" and not token.spaced_before)
    number_like = (far_before.maths or far_before.kind == "number" or far_before.text in CLOSING, far_after.maths)
    quotient = (left == "/" and number_like[0]) or (right == "/" and (number_like[1] or far_after.kind == "number"))
    added = right == "+" and token.spaced_after and far_after.maths
    return powered or "*" in (left, right) or quotient or added


def _run(tokens: list[Token], start: int) -> int:
    """Return the end of the formula that starts at `start`, or `start` if there is none."""
    if tokens[start].kind == "space" or tokens[start].text in (",", "'", "%", "*", ")", "]", "}", "⟩", "/"):
        return start
    if tokens[start].kind == "number" and start and tokens[start - 1].text == ".":
        return start
    end, depth, best = start, [], start
    while end < len(tokens):
        token = tokens[end]
        if token.kind in ("code", "other") or (token.kind == "name" and not token.maths):
            break
        if token.text in OPENING:
            depth.append(OPENING[token.text])
        elif token.text in CLOSING:
            if not depth or depth.pop() != token.text:
                break
        elif (
            (token.text == "," and not depth)
            or (token.text == "-" and _hyphen(tokens, end))
            or (token.text == "'" and not _prime(tokens, end))
        ):
            break
        if token.kind == "space" and not depth and _apart(tokens, end):
            break
        end += 1
        if not depth and token.kind != "space" and _may_end(tokens, end - 1):
            best = end
    return best if best > start and _worth(tokens[start:best]) else start


def _hyphen(tokens: list[Token], place: int) -> bool:
    """Return whether a minus is a hyphen, as in `mean-field` or `k-th`."""
    token = tokens[place]
    if token.spaced_before or token.spaced_after or not place or place + 1 == len(tokens):
        return False
    return any(near.kind == "name" and not near.maths for near in (tokens[place - 1], tokens[place + 1]))


def _prime(tokens: list[Token], place: int) -> bool:
    return place > 0 and (tokens[place - 1].maths or tokens[place - 1].text == "'") and not tokens[place].spaced_before


def _apart(tokens: list[Token], space: int) -> bool:
    """Return whether a space separates two formulas.

    A number or bracket after a name is not a product, as in `at d 200` and `gamma (open)`.
    """
    before = tokens[space - 1] if space else None
    after = tokens[space + 1] if space + 1 < len(tokens) else None
    if before is None or after is None:
        return True
    if before.text in JOINTS or after.text in JOINTS:
        return False
    if after.text in OPENING:
        return not (before.text in CLOSING or before.maths or before.kind == "number")
    if after.kind == "number":
        return before.text not in APPLIED
    return False


def _may_end(tokens: list[Token], place: int) -> bool:
    token = tokens[place]
    if token.text == "*":  # the star of F* or mu*
        return place > 0 and tokens[place - 1].maths and not token.spaced_before and _star(tokens, place)
    if token.text == "|":
        return True
    if token.text in ("+", "-") and place and tokens[place - 1].text == "^":  # the positive part, (1 - n/d)^+
        return place + 1 == len(tokens) or tokens[place + 1].kind in ("space", "other")
    return token.maths or token.kind == "number" or token.text in CLOSING or token.text == "'"


def _star(tokens: list[Token], place: int) -> bool:
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    return after is None or after.kind in ("space", "other") or after.text in ("^", ")", ",", "/", "'", "]")


def _worth(run: list[Token]) -> bool:
    """Return whether tokens make a formula.

    A formula contains a letter that is mathematics, or numbers that an operator joins.
    """
    solid = [token for token in run if token.kind != "space"]
    if solid[0].text in ("-", "+") and len(solid) > 1 and solid[1].kind == "number" and run[0].spaced_after:
        return False
    if any(token.maths for token in solid):
        return sum(token.text == "|" for token in solid) % 2 == 0
    joined = any(token.text in JOINTS - {"-", "<", ">"} for token in solid) or solid[0].text in ("-", "+", "<", ">")
    return joined and any(token.kind == "number" for token in solid) and "|" not in {token.text for token in solid}


# -- TeX ----------------------------------------------------------------------------------------------------------------


def tex_of(tokens: list[Token]) -> str:
    """Return the TeX of a sequence of tokens."""
    out: list[str] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "space":
            out.append(" ")
        elif token.text == "sqrt" and position + 1 < len(tokens) and tokens[position + 1].text == "(":
            end = _matching(tokens, position + 1)
            out.append(rf"\sqrt{{{tex_of(tokens[position + 2 : end])}}}")
            position = end
        elif token.text == "^":
            end, inside = _exponent(tokens, position + 1)
            out.append(f"^{{{inside}}}")
            position = end - 1
        elif token.text == "*" and not token.spaced_before and position and _star(tokens, position):
            out.append("_*")
        elif token.text == "'" and position + 1 < len(tokens) and tokens[position + 1].kind == "name":
            out.append(r"^{\top}")
        elif token.text == ",":
            out.append(r",\ ")
        elif token.text in ("{", "}"):
            out.append("\\" + token.text)
        else:
            out.append(SIGNS.get(token.text, token.text) if token.kind == "sign" else name_tex(token))
        position += 1
    spaced = re.sub(r"(?<=[A-Za-z0-9}]) +(?=\\text\{)", r"\\ ", re.sub(r" {2,}", " ", "".join(out)))  # E bias
    return spaced.strip()


def _exponent(tokens: list[Token], start: int) -> tuple[int, str]:
    """Return the end of the exponent that starts at `start`, and its TeX."""
    if start >= len(tokens):
        return start, ""
    first = tokens[start]
    if first.text in ("(", "{"):
        end = _matching(tokens, start)
        return end + 1, tex_of(tokens[start + 1 : end])
    end = min(start + (2 if first.text in ("-", "+") else 1), len(tokens))
    if first.text == "-" and [token.text for token in tokens[end : end + 1]] == ["/"] and tokens[end - 1].kind == "number":
        end += 2  # d^-1/2
    return end, tex_of(tokens[start:end])


def _matching(tokens: list[Token], start: int) -> int:
    depth = 0
    for place in range(start, len(tokens)):
        depth += (tokens[place].text in OPENING) - (tokens[place].text in CLOSING)
        if depth == 0:
            return place
    return len(tokens) - 1


def name_tex(token: Token) -> str:
    r"""Return a name as TeX.

    >>> [name_tex(Token(text, "name")) for text in ("tau", "F1", "w_hat", "gamma_GF", "log", "infinity", "bias", "x_i")]
    ['\\tau ', 'F_{1}', '\\hat{w}', '\\gamma_{\\text{GF}}', '\\log ', '\\infty ', '\\text{bias}', 'x_{i}']
    """
    text = token.text
    if token.kind == "number":
        mantissa, _, power = text.partition("e")
        return rf"{mantissa}\cdot 10^{{{int(power)}}}" if power else text
    if text in ("infinity", "inf"):
        return r"\infty "
    function, _, under = text.partition("_")
    if function in (*FUNCTIONS, *APPLIED):
        known = {"log", "exp", "min", "max", "sup", "sin", "cos", "tanh", "sum"}
        shown = (
            rf"\{function}" if function in known else r"\nabla" if function == "grad" else rf"\operatorname{{{function}}}"
        )
        return f"{shown}_{{{under}}} " if under else f"{shown} "
    match = re.fullmatch(r"([A-Za-z]+?)(\d*)(?:_(.+))?", text)
    if match is None:
        return rf"\text{{{text}}}"
    base, digits, below = match.groups()
    if base not in GREEK_TEX and len(base) > 1 and base != "df":
        return rf"\text{{{text}}}" if len(base) > 2 or digits else " ".join(base)
    letter = GREEK_TEX.get(base, {"l": r"\ell", "df": r"\text{df}"}.get(base, base))
    if below in ("hat", "bar", "tilde"):
        return rf"\{below}{{{letter}}}"
    if below:
        inner = below.strip("{}")
        plain = GREEK_TEX.get(
            inner,
            {"perp": r"\perp"}.get(
                inner, inner if len(inner) == 1 or inner.isdigit() or re.fullmatch("[ijk]{2}", inner) else ""
            ),
        )
        words = tex(inner) if "{" in below else rf"\text{{{inner}}}"
        return f"{letter}_{{{plain or words}}}"
    return f"{letter}_{{{digits}}}" if digits else letter + (" " if letter.startswith("\\") else "")


def tex(formula: str) -> str:
    r"""Return a formula in plain letters as TeX.

    >>> tex("tau^2 gamma/(1 - gamma)")
    '\\tau ^{2} \\gamma /(1 - \\gamma )'
    """
    tokens = _tokens(_ANGLES.sub(r"⟨\1⟩", formula))
    return tex_of(tokens)
