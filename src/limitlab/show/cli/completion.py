"""What the Tab key offers: laws, their parameters, claims, figures. Names are read from the text of the files, so nothing is imported.

`limitlab --install-completion` installs it for the shell in use.
"""

from __future__ import annotations

import re
from pathlib import Path

from limitlab.show.describe import kebab

_SHOW = Path(__file__).parents[1]
_FIGURES = re.compile(r"^FIGURES\b[^{]*\{(.*?)^\}|^FIGURES\b[^{]*\{(.*)\}$", re.MULTILINE | re.DOTALL)


def law_names(incomplete: str = "") -> list[str]:
    """Laws whose name starts like this, spelt as on the command line.

    >>> law_names("marchenko"), law_names("Ridge")
    (['marchenko-pastur'], ['Ridge', 'RidgeScaling'])
    """
    import limitlab.laws

    listed = [name for name, home in limitlab.laws._HOMES.items() if _is_law(name, home)]
    spelt = listed if incomplete[:1].isupper() else [_dashed(name) for name in listed]
    return [name for name in spelt if name.startswith(incomplete)]


def claim_ids(incomplete: str = "") -> list[str]:
    """Claims whose id starts like this.

    >>> "J5" in claim_ids("j")
    True
    """
    from limitlab.ledger.claims import laws_of_claims

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
    from limitlab.lab.registry import find_law

    try:
        metas = find_law(law).parameters()
    except ValueError:
        return []
    options = [(f"--{kebab(name)}", meta.words) for name, meta in metas.items()]
    return [(option, words) for option, words in options if option.startswith(incomplete)]


def _is_law(name: str, home: str) -> bool:
    """Whether an exported name is a class of laws, from the text of its file."""
    text = (_SHOW.parent / Path(*home.split(".")[1:])).with_suffix(".py")
    source = text if text.exists() else text.with_suffix("") / "__init__.py"
    return (
        name[0].isupper()
        and bool(re.search(rf"^class {name}\(", source.read_text(encoding="utf-8"), re.MULTILINE))
        and name
        not in (
            "Law",
            "Draw",
        )
    )


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
