"""Names that the Tab key offers: laws, their parameters, claims, figures. They come from the index, so that no law is imported.

`limitlab --install-completion` installs it for the shell in use.
"""

from __future__ import annotations

import re

from limitlab._core.listing import index
from limitlab.show._describe import kebab


def law_names(incomplete: str = "") -> list[str]:
    """Laws whose name starts like this, spelt as on the command line.

    >>> law_names("marchenko"), law_names("Ridge")
    (['marchenko-pastur'], ['Ridge', 'RidgeScaling'])
    """
    listed = list(index()["laws"])
    spelt = listed if incomplete[:1].isupper() else [dashed(name) for name in listed]
    return [name for name in spelt if name.startswith(incomplete)]


def claim_ids(incomplete: str = "") -> list[str]:
    """Claims whose id starts like this.

    >>> "J5" in claim_ids("j")
    True
    """
    return [one for one in index()["claims"] if one.lower().startswith(incomplete.lower())]


def figure_ids(incomplete: str = "") -> list[str]:
    """Figures whose id starts like this.

    >>> figure_ids("ridge-double")
    ['ridge-double-descent']
    """
    return [name for name in index()["figures"] if name.startswith(incomplete)]


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


def dashed(name: str) -> str:
    """The name of a class as it is spelt on the command line.

    >>> dashed("MarchenkoPastur")
    'marchenko-pastur'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
