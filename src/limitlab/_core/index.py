"""The command that writes the export stubs, the index of laws, claims and figures, the list of public names, and pages of names.

    python -m limitlab._core.index           writes the files that are out of date and prints their names
    python -m limitlab._core.index --check   writes nothing; exit code 1 if something is out of date

The names come from the imported modules. The public names of a public module are those in its `__all__`. A test fails if a list is
out of date.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from limitlab.errors import Refused

FLAT = ("laws", "lab", "applied", "plotting", "show")
"""Packages that export the names of their modules themselves, as `limitlab.laws.Ridge`."""
BY_MODULE = ("numerics", "models")
"""Packages whose public modules export their own names, as `limitlab.numerics.gaussian.expectation`."""
PACKAGES = ("plotting", "lab", "numerics", "models", "laws", "applied", "show")
"""All of these packages, in the order in which their stubs are written."""
ALONE = ("errors", "testing")
"""Public modules of the top level."""
HEAD = "# Written by `python -m limitlab._core.index`; do not edit."


def outputs(package: str | None = None) -> dict[Path, str]:
    """Return every generated file with its content, or only the stub of `package`."""
    root = Path(str(files("limitlab")))
    if package is not None:
        make = flat_stub if package in FLAT else module_stub
        return {root / package / "__init__.pyi": make(f"limitlab.{package}")}
    made = {path: content for name in PACKAGES for path, content in outputs(name).items()}
    index = built_in()
    made[root / "_core" / "index.json"] = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    checkout = root.parents[1]
    if (checkout / "tests" / "public_names.txt").is_file():
        made[checkout / "tests" / "public_names.txt"] = "".join(f"{name}\n" for name in promised())
        made |= {checkout / "docs" / "api" / f"{name}.md": text for name, text in api_pages().items()}
        documents_page = importlib.import_module("limitlab.lab._documents_page")  # `lab` is above `_core`
        made[checkout / "docs" / "documents.md"] = documents_page.page(index)
    return made


def main(arguments: list[str]) -> int:
    """Write the files that are out of date, or only print their names."""
    if not arguments:  # a package may need the new stub of a lower package, which only a new process reads
        for name in PACKAGES:
            subprocess.run([sys.executable, "-m", __spec__.name, name], check=True)
        return subprocess.run([sys.executable, "-m", __spec__.name, "all"], check=True).returncode
    check, stale = "--check" in arguments, []
    for path, content in outputs(None if arguments[0] in ("--check", "all") else arguments[0]).items():
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            stale.append("/".join(path.parts[-2:]))
            if not check:
                path.write_text(content, encoding="utf-8")
    if stale:
        print("\n".join(f"{'out of date' if check else 'written'}: {name}" for name in stale))
    return int(check and bool(stale))


# -- promised names -----------------------------------------------------------------------------------------------------


def promised() -> list[str]:
    """Return the public names of limitlab by their public paths, sorted.

    >>> "limitlab.laws.Ridge" in promised()
    True
    """
    top = importlib.import_module("limitlab")
    names = [f"limitlab.{name}" for name in top.__all__]
    for package in FLAT:
        names += [f"limitlab.{package}.{name}" for name in exports(f"limitlab.{package}")]
    for package in BY_MODULE:
        for module in public_modules(f"limitlab.{package}"):
            names += [f"{module.__name__}.{name}" for name in module.__all__]
    for module_name in ALONE:
        names += [f"limitlab.{module_name}.{name}" for name in importlib.import_module(f"limitlab.{module_name}").__all__]
    return sorted(names)


def exports(package: str) -> dict[str, str]:
    """Return the names that a flat package exports, each with the module that defines it."""
    homes: dict[str, str] = {}
    for module in public_modules(package):
        for name in module.__all__:
            home = module.__name__.removeprefix(f"{package}.")
            if name in homes:
                raise Refused(f"{package}.{name} is exported by two modules: {homes[name]} and {home}")
            homes[name] = home
    return dict(sorted(homes.items()))


def public_modules(package: str) -> list[ModuleType]:
    """Return the modules below a package that have an `__all__`, without claims and figures."""
    home = importlib.import_module(package)
    walked = (module.name for module in pkgutil.walk_packages(home.__path__, f"{package}."))
    modules = (importlib.import_module(name) for name in walked if not {"_claims", "_figures"} & set(name.split(".")))
    return [module for module in modules if hasattr(module, "__all__")]


def api_pages() -> dict[str, str]:
    """Return a page of the reference for every public package. It lists the names, and each name links to its own page."""
    pages = {}
    for package in ("limitlab", *(f"limitlab.{name}" for name in (*FLAT, *BY_MODULE, *ALONE))):
        inside = [name for name in promised() if _page_of(name) == package]
        names = [name for name in inside if not inspect.ismodule(_value(name)) and not name.endswith("__version__")]
        elsewhere = {name: _elsewhere(name) for name in names if package == "limitlab" and inspect.isclass(_value(name))}
        title = (inspect.getdoc(importlib.import_module(package)) or package).split("\n")[0]
        lists = [(":toctree: generated", [name for name in names if name not in elsewhere])]
        lists += [(":nosignatures:", list(elsewhere.values()))] if elsewhere else []
        blocks = "\n".join(
            f".. autosummary::\n   {option}\n\n" + "".join(f"   {name}\n" for name in listed) for option, listed in lists
        )
        pages[package.removeprefix("limitlab.")] = f"# {package}\n\n{title}\n\n```{{eval-rst}}\n{blocks}```\n"
    return pages


def _elsewhere(name: str) -> str:
    """Return the public path of a top-level class in the package that defines it, because a class must have one page only."""
    return next(other for other in promised() if other != name and _value(other) is _value(name))


def _page_of(name: str) -> str:
    """Return the package on whose page of the reference a public name is listed."""
    parts = name.split(".")
    return "limitlab" if len(parts) == 2 else ".".join(parts[:2])


def _value(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def flat_stub(package: str) -> str:
    """Return the stub of a package that exports names of its modules."""
    lines = [f"from .{home} import {name} as {name}" for name, home in exports(package).items()]
    return _stub(package, lines, list(exports(package)))


def module_stub(package: str) -> str:
    """Return the stub of a package that exports its public modules."""
    names = sorted({module.__name__.removeprefix(f"{package}.").partition(".")[0] for module in public_modules(package)})
    return _stub(package, [f"from . import {name} as {name}" for name in names], names)


def _stub(package: str, lines: list[str], names: list[str]) -> str:
    title = (inspect.getdoc(importlib.import_module(package)) or package).split("\n")[0]
    listed = "\n".join(f'    "{name}",' for name in names)
    return "\n".join([HEAD, f'"""{title}"""', "", *lines, "", f"__all__ = [\n{listed}\n]", ""])


# -- the index ----------------------------------------------------------------------------------------------------------


def built_in() -> dict[str, dict[str, Any]]:
    """Return the built-in laws, claims and figures with the modules that define them."""
    from limitlab._core import registry

    laws = {
        name: f"limitlab.laws.{home}"
        for name, home in exports("limitlab.laws").items()
        if registry._is_law(getattr(importlib.import_module(f"limitlab.laws.{home}"), name))
    }
    claims: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    find_claims = importlib.import_module("limitlab.lab.claims").claims_in  # `lab` is above `_core`
    for prefix, module in registry.part_modules("_claims"):
        if not prefix:
            claims |= {
                claim.id: {"module": module.__name__, "laws": claim.laws, "figure": claim.figure, "items": claim.items}
                for claim in find_claims(module)
            }
    for prefix, module in registry.part_modules("_figures"):
        if not prefix:
            for name, draw in getattr(module, "FIGURES", {}).items():
                words = (inspect.getdoc(draw) or name).split("\n")[0]
                animated, items = name in getattr(module, "ANIMATIONS", {}), getattr(module, "ITEMS", {}).get(name, ())
                figures[name] = {"module": module.__name__, "shows": words, "animated": animated, "items": items}
    order = importlib.import_module("limitlab.lab.claims").claim_order
    return {"laws": laws, "claims": dict(sorted(claims.items(), key=lambda item: order(item[0]))), "figures": figures}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
