"""What the Tab key offers: laws, their parameters, claims, figures. Names are read from the text of the files, so nothing is imported.

`limitlab --install-completion` installs it for the shell in use.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from limitlab.show._describe import kebab

_SHOW = Path(__file__).parents[1]
_CLASS = re.compile(r"^class (\w+)\((\w+)", re.MULTILINE)
_FIGURES = re.compile(r"^FIGURES\b[^{]*\{(.*?)^\}|^FIGURES\b[^{]*\{(.*)\}$", re.MULTILINE | re.DOTALL)


def law_names(incomplete: str = "") -> list[str]:
    """Laws whose name starts like this, spelt as on the command line.

    >>> law_names("marchenko"), law_names("Ridge")
    (['marchenko-pastur'], ['Ridge', 'RidgeScaling'])
    """
    import limitlab.laws

    listed = [name for name in limitlab.laws.__all__ if _is_law(name)]
    spelt = listed if incomplete[:1].isupper() else [_dashed(name) for name in listed]
    return [name for name in spelt if name.startswith(incomplete)]


def claim_ids(incomplete: str = "") -> list[str]:
    """Claims whose id starts like this.

    >>> "J5" in claim_ids("j")
    True
    """
    from limitlab.lab.claims import laws_of_claims

    return [one for one in laws_of_claims() if one.lower().startswith(incomplete.lower())]


def figure_ids(incomplete: str = "") -> list[str]:
    """Figures whose id starts like this.

    >>> figure_ids("ridge-double")
    ['ridge-double-descent']
    """
    found: list[str] = []
    for path in sorted((_SHOW / "figures").glob("*.py")):
        for match in _FIGURES.finditer(path.read_text(encoding="utf-8")):
            found += re.findall(r'"([a-z0-9-]+)":', match[1] or match[2])
    return [name for name in found if name.startswith(incomplete)]


def parameter_options(law: str, incomplete: str = "--") -> list[tuple[str, str]]:
    """Options of a law's parameters that start like this, with what they mean; nothing for what is not a law.

    >>> parameter_options("ridge", "--no")
    [('--noise', 'standard deviation of the label noise')]
    """
    from limitlab._core.registry import find_law

    try:
        metas = find_law(law).parameters()
    except ValueError:
        return []
    options = [(f"--{kebab(name)}", meta.words) for name, meta in metas.items()]
    return [(option, words) for option, words in options if option.startswith(incomplete)]


@functools.cache
def _bases() -> dict[str, str]:
    """The first base of every class in the files of the laws."""
    files = (_SHOW.parent / "laws").rglob("*.py")
    return dict(pair for path in files for pair in _CLASS.findall(path.read_text(encoding="utf-8")))


def _is_law(name: str) -> bool:
    """Whether an exported name is a law, from the text of the files: its bases lead to `Law`."""
    base = _bases().get(name, "")
    return base == "Law" or (base in _bases() and _is_law(base))


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
