"""The description of a law, made from its declaration, for `Ridge?`, for the command line and for the pages.

The sources of a law come from the bibliography `references.bib`, whose keys the law names.

>>> from limitlab.laws import Ridge
>>> print(full_docstring(Ridge).split("\\n")[0])
What are the train and test errors of ridge regression with p features and n samples?
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from limitlab._core.page import Code, Page, Table, Tex, Words, number
from limitlab.errors import Refused, did_you_mean

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration

Kind = Literal["number", "whole", "truth", "series", "sequence", "name"]


def full_docstring(law: type[Declaration]) -> str:
    """Return the whole docstring of a law.

    It begins with the docstring in the file of the law. Status, regime, assumptions, parameters with their ranges, observables,
    equations and sources follow.
    """
    from limitlab._core.declaration import own_docstring  # the help page of the command line loads no pydantic

    facts = [
        f"Status: {law.status}." if law.observables else "",
        f"Regime: {law.regime}." if law.regime else "",
        *(f"Assumes: {assumption}." for assumption in law.assumptions),
    ]
    parts = [own_docstring(law), "\n".join(filter(None, facts))]
    metas = law.parameters()
    parts.append(_section("Parameters", (line for name in metas for line in _parameter_lines(law, name))))
    parts.append(
        _section("Observables", (_titled(name, meta.long_name, meta.symbol) for name, meta in law.outputs().items()))
    )
    parts.append(_section("Setting and equations", equations(law).splitlines()))
    parts.append(_section("References", references_of(law)))
    return "\n\n".join(filter(None, parts)) + "\n"


def law_page(law: Declaration) -> Page:
    """Return the description of a law, with the question that it answers, its parameters, its status and its regime.

    >>> from limitlab.laws import Ridge
    >>> law_page(Ridge(ratio=3.0)).tables[0].rows[0]["value"]
    '3'
    """
    kind = type(law)
    rows = [
        {
            "parameter": Code(name),
            "symbol": Tex(meta.symbol),
            "value": brief(getattr(law, name)),
            "meaning": Words(meta.words),
        }
        for name, meta in kind.parameters().items()
        if meta.kind in ("physics", "coordinate") or name in law.model_fields_set
    ]
    facts = {"status": kind.status, "regime": Words(kind.regime), "observables": Code(", ".join(law.observed()))}
    caveat = [f"{law.caveat()}."] if law.caveat() else []
    return Page(Words(f"{kind.__name__}: {kind.title()}"), facts, [Table(rows)], caveat)


def titled(law: Declaration, swept: Iterable[str] = ()) -> str:
    """Return the name of a law with its parameters as text, without the swept parameters.

    Parameters that change only the accuracy or the experiment, and parameters that are None, are named only if they were changed.

    >>> from limitlab.laws import Ridge
    >>> titled(Ridge(ratio=3.0), ["ridge"]).split(", ")[0]
    'Ridge(ratio=3'
    """
    without = set(swept)
    values = {
        name: value
        for name, meta in type(law).parameters().items()
        if name not in without
        and ((value := getattr(law, name)) != meta.default or (meta.kind in ("physics", "coordinate") and value is not None))
    }
    return f"{type(law).__name__}({', '.join(f'{name}={brief(value)}' for name, value in values.items())})"


def brief(value: Any) -> str:
    """Return a value as text; a list of more than four entries is shown by its first and its last.

    >>> brief(0.5), brief((1, 2, 3, 4, 5))
    ('0.5', '(1, ..., 5)')
    """
    if not isinstance(value, (tuple, list)):
        return number(value)
    items = [number(item) for item in value]
    return f"({', '.join(items if len(items) <= 4 else [items[0], '...', items[-1]])})"


def references_of(law: type[Declaration]) -> list[str]:
    """Return the sources of a law, one line each; a key that no bibliography contains is returned unchanged."""
    known = {**bibliography(), **own_entries(law)}
    return [reference_line(key, law) if key in known else key for key in law.references]


def equations(law: type[Declaration]) -> str:
    """Return setting, limit and result, as the docstring of the law's module states them."""
    module = sys.modules.get(law.__module__)
    text = inspect.cleandoc((module.__doc__ if module else "") or "")
    start = text.find("Setting.")
    return text[start:] if start >= 0 else ""


def _section(title: str, lines: Iterable[str]) -> str:
    listed = list(lines)
    return "\n".join([title, "-" * len(title), *listed]) if listed else ""


def _parameter_lines(law: type[Declaration], name: str) -> list[str]:
    meta = law.parameters()[name]
    return [f"{name} : {allowed(law, name)}; default {meta.default!r}", f"    {_titled('', meta.words, meta.symbol)}"]


def _titled(name: str, words: str, symbol: str) -> str:
    return f"{name}{': ' if name else ''}{words}{f' (symbol {symbol})' if symbol else ''}"


# -- allowed values -----------------------------------------------------------------------------------------------------


def allowed(law: type[Declaration], name: str) -> str:
    """Return a description of the allowed values of a parameter, such as the choices of a name or the range of a number.

    >>> from limitlab.laws import Ridge
    >>> allowed(Ridge, "noise")
    'at least 0'
    """
    annotation = law.model_fields[name].annotation
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(map(str, typing.get_args(annotation)))
    own = [words for leaf in _leaves(annotation) if (words := getattr(leaf, "ALLOWED", ""))]
    choices = [option for leaf in typing.get_args(annotation) for option in _options(leaf)]
    if own:
        return " or ".join([*choices, *own])
    kind = kind_of(annotation)
    words = law.parameters()[name].allowed
    if kind in ("name", "truth"):
        return {"name": "a name", "truth": "yes or no"}[kind]
    prefix = {"number": "", "whole": "whole, ", "series": "one or several, ", "sequence": "a list, each "}[kind]
    return prefix + words


def _options(annotation: Any) -> tuple[str, ...]:
    """Return the options of a `Literal` type or of an alias of one."""
    value = getattr(annotation, "__value__", annotation)
    return tuple(map(str, typing.get_args(value))) if typing.get_origin(value) is typing.Literal else ()


def kind_of(annotation: Any) -> Kind:
    """Return the kind of a parameter, which decides how the text of its option is read.

    >>> [kind_of(annotation) for annotation in (float, int, bool, str, tuple[float, ...], float | tuple[float, ...])]
    ['number', 'whole', 'truth', 'name', 'sequence', 'series']
    """
    leaves = set(_leaves(annotation))
    sequences = {
        leaf for leaf in leaves if isinstance(leaf, type) and issubclass(leaf, (tuple, list, Sequence)) and leaf is not str
    }
    if sequences:
        return "series" if leaves & {int, float} else "sequence"
    if float in leaves:
        return "number"
    if bool in leaves:
        return "truth"
    return "whole" if int in leaves else "name"


def _leaves(annotation: Any) -> Iterable[Any]:
    """Yield the types in an annotation. Unions, `Annotated` and type aliases are replaced by their parts."""
    value = getattr(annotation, "__value__", annotation)  # a `type X = ...` alias
    origin = typing.get_origin(value)
    if origin is typing.Annotated:
        yield from _leaves(typing.get_args(value)[0])
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(value):
            yield from _leaves(part)
    else:
        yield origin or value


# -- sources ----------------------------------------------------------------------------------------------------------


BIBLIOGRAPHY = files("limitlab") / "references.bib"

_ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)
_ACCENT = re.compile(r"""\\(?P<accent>['"`^~.]|[vc](?=\W))\s*\{?(?P<letter>[A-Za-z])\}?""")
_COMBINING = dict(zip("'\"`^~.vc", "\u0301\u0308\u0300\u0302\u0303\u0307\u030c\u0327", strict=True))


@functools.cache
def bibliography() -> dict[str, str]:
    """Return every BibTeX entry by its key.

    >>> bibliography()["bai1993limit"].startswith("@article{bai1993limit,")
    True
    """
    return read_entries(BIBLIOGRAPHY.read_text(encoding="utf-8"), BIBLIOGRAPHY.name)


def own_entries(law: type | None) -> dict[str, str]:
    """Return the BibTeX entries in the `references.bib` of the package of another author that defines a law, by key."""
    package = None if law is None else sys.modules.get(law.__module__.partition(".")[0])
    folders = [] if package is None or package.__name__ == "limitlab" else list(getattr(package, "__path__", ()))
    files_there = [Path(folder) / "references.bib" for folder in folders]
    return {
        key: text
        for file in files_there
        if file.is_file()
        for key, text in read_entries(file.read_text("utf-8"), file.name).items()
    }


def read_entries(text: str, name: str) -> dict[str, str]:
    """Return the BibTeX entries of a text by key. Error messages contain `name`, the name of the file."""
    entries = [(match[2], match[0]) for match in _ENTRY.finditer(text)]
    if len(dict(entries)) < len(entries):
        raise Refused(f"two entries of {name} have the same key: rename one of them")
    return dict(entries)


def bibtex(keys: Iterable[str], law: type | None = None) -> list[str]:
    """Return the entries of these keys, in their order, from limitlab's bibliography and from that of the package of a law."""
    known = {**bibliography(), **own_entries(law)}
    for key in keys:
        if key not in known:
            raise Refused(f"there is no reference {key!r} in references.bib: {did_you_mean(key, known)}")
    return [known[key] for key in keys]


def fields(key: str, law: type | None = None) -> dict[str, str]:
    """Return the fields of an entry as plain text.

    >>> fields("bai1993limit")["year"]
    '1993'
    """
    (entry,) = bibtex([key], law)
    return {match[1]: plain_text(match[2]) for match in _FIELD.finditer(entry)}


def reference_line(key: str, law: type | None = None) -> str:
    """Return author, title and year of a source in one line.

    >>> reference_line("bai1993limit")
    'Bai, Zhi-Dong and Yin, Yong-Qua, Limit of the smallest eigenvalue of a large dimensional sample covariance matrix (1993)'
    """
    entry = fields(key, law)
    return f"{entry['author']}, {entry['title']} ({entry['year']})"


def plain_text(tex: str) -> str:
    """Return a field of an entry without braces and with accented letters.

    >>> plain_text("Cand{\\\\`e}s, {Emmanuel}")
    'Candès, Emmanuel'
    """
    letters = _ACCENT.sub(lambda m: unicodedata.normalize("NFC", m["letter"] + _COMBINING[m["accent"]]), tex)
    return re.sub(r'[{}"\\]', "", letters).replace("--", "–")
