"""The registry of laws, claims and figures, with the module that defines each of them.

The file `index.json`, which `python -m limitlab._core.index` writes, lists the built-in laws, claims and figures, so that a list
needs no import. Laws of other authors come from three places:

- installed packages that declare an entry point in the group `limitlab.laws`, whose value is the name of the package;
- a file or a folder in a call of `load_laws` (on the command line `--laws FILE-or-FOLDER`);
- any class in a module that the user has already imported, named as `module:Class`.

A package of another author has the shape of a subject folder of limitlab: modules with laws, `_claims.py` and `_figures.py`. A
single file holds all three. The ids of foreign laws, claims and figures are `package:id`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import keyword
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from limitlab._core.arguments import explained
from limitlab._core.draws import is_builtin
from limitlab._core.law import Law
from limitlab._core.lazy import index
from limitlab.errors import Refused, did_you_mean

ENTRY_POINTS = "limitlab.laws"
"""Group of the entry points through which installed packages declare their laws."""

BUILTIN_HOMES = ("limitlab.laws", "limitlab.applied")
"""The package whose folders are the subjects, and the package of the tools, which also has claims and figures."""

_LOADED: dict[str, Package] = {}
"""Packages that `load_laws` has loaded in this process, by name."""


NOT_LAWS = ("conftest", "setup", "tests")
"""Modules and folders in a package of another author that hold no laws. They are not imported."""


class Package:
    """A package or file of another author.

    `name` is its import name and the first part of its ids. `installed` is true if an entry point declares the package, so that no
    command needs `--laws` to load it.
    """

    def __init__(self, name: str, installed: bool = False):
        self.name = name
        self.installed = installed
        self._parts: dict[str, list[ModuleType]] = {}

    @functools.cached_property
    def module(self) -> ModuleType:
        """The imported package."""
        return importlib.import_module(self.name)

    @functools.cached_property
    def folder(self) -> Path | None:
        """The folder of the package, or None for a single file."""
        place = getattr(self.module, "__path__", None)
        return Path(next(iter(place))) if place else None

    @functools.cached_property
    def laws(self) -> dict[str, type[Law]]:
        """The laws that the public modules of the package define, by class name."""
        laws: dict[str, type[Law]] = {}
        for module in _public_modules(self.module):
            for name, value in vars(module).items():
                defined_here = _is_law(value) and value.__module__ == module.__name__ and value.__name__ == name
                if not defined_here or name.startswith("_"):
                    continue
                if name in laws:
                    raise Refused(
                        f"two modules of {self.name!r} define the law {name}: {laws[name].__module__} and {module.__name__}; "
                        "rename one of the two classes"
                    )
                laws[name] = value
        return laws

    def modules(self, part: str) -> list[ModuleType]:
        """Return the modules of a part of the package, `_claims` or `_figures`. For a single file this is the file itself.

        If a part of a loaded package cannot be imported, ValueError is raised. In an installed package the part is named in a
        warning and omitted.
        """
        if self.folder is None:
            return [self.module]
        if part not in self._parts:
            try:
                self._parts[part] = _part_modules(f"{self.name}.{part}")
            except Exception as error:  # a foreign module can raise any error
                sentence = f"the module {part!r} of the package {self.name!r} cannot be imported"
                if not self.installed:
                    raise Refused(f"{sentence}: {_failure(error)}") from error
                _warn(f"{sentence} and is left out: {_failure(error)}")
                self._parts[part] = []
        return self._parts[part]

    def title(self) -> str:
        """Return the heading of the laws of the package, which is the first line of its docstring."""
        return (inspect.getdoc(self.module) or "Laws of your own").split("\n")[0].rstrip(".")

    def file(self, *parts: str) -> Path | None:
        """Return a file inside the folder of the package, such as `references.bib`, or None if it does not exist."""
        place = None if self.folder is None else self.folder.joinpath(*parts)
        return place if place is not None and place.is_file() else None

    @property
    def source(self) -> str:
        """The name of the file or folder that `--laws` and `load_laws` take, without the path on this machine.

        It is empty for an installed package.
        """
        if self.installed:
            return ""
        return self.name if self.folder is not None else f"{self.name}.py"

    def digest(self, *without: str) -> str:
        """Return the SHA-256 of the Python files of the package without its tests; `without` as in `source_digest`."""
        if self.folder is None:
            return _file_digest(Path(str(self.module.__file__)))
        return source_digest(self.folder, "tests", *without)


# -- packages of other authors ------------------------------------------------------------------------------------------


def packages() -> dict[str, Package]:
    """Return the packages of other authors by name, both installed ones with an entry point and loaded ones."""
    return {**_installed(), **_LOADED}


@functools.cache
def _installed() -> dict[str, Package]:
    """Return the packages that declare an entry point.

    A package that cannot be imported is named in a warning and omitted.
    """
    importable = {}
    for point in entry_points(group=ENTRY_POINTS):
        package = Package(point.value.partition(":")[0], installed=True)
        try:
            _ = package.laws
        except Exception as error:  # a foreign package can raise any error, which must not stop limitlab
            _warn(
                f"the package {package.name!r} of the entry point {point.name!r} cannot be imported and is left out: "
                f"{_failure(error)}"
            )
        else:
            importable[package.name] = package
    return importable


def _warn(sentence: str) -> None:
    """Issue a warning. A worker process issues none, because the process that started the worker has issued it already."""
    from multiprocessing import parent_process

    if parent_process() is None:
        warnings.warn(sentence, UserWarning, stacklevel=3)


def _failure(error: Exception) -> str:
    """Return type and message of an error of a foreign module, with the last line of code outside the import system."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    inside = [frame for frame in frames if Path(frame.filename) not in (Path(__file__), Path(importlib.__file__))]
    where = f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})" if inside else ""
    return f"{type(error).__name__}: {error}{where}"


@explained
def load_laws(place: str | os.PathLike[str]) -> dict[str, type[Law]]:
    """Load the laws, claims and figures of a Python file or of a folder, and return the laws by their ids.

    The folder that contains `place` is added to the end of `sys.path`, so that worker processes find the module too. Python imports
    a module once per process. Start Python again after an edit of the file.

    Parameters
    ----------
    place
        A file such as `my_laws.py`, or a folder with the shape of a subject: modules with laws, and optionally `_claims.py`,
        `_figures.py`, `references.bib` and `theory/*.md`. The code in it is executed. `limitlab new-law` writes such a folder.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "my_ridge_laws.py"
    >>> _ = file.write_text("from limitlab.laws import Ridge\\n\\nclass MyRidge(Ridge):\\n    'My own question?'\\n")
    >>> list(load_laws(file))
    ['my_ridge_laws:MyRidge']
    >>> find_law("my_ridge_laws:MyRidge").title()
    'My own question?'
    """
    source, name = Path(place), package_name(place)
    is_file = source.suffix == ".py" and source.is_file()
    if not (is_file or source.is_dir()) or not is_module_name(name):
        raise Refused(
            f"laws = {str(place)!r} is not allowed: must be a Python file such as my_laws.py, or a folder of such files "
            "whose name is a Python name"
        )
    parent = str(source.resolve().parent)
    is_new = parent not in sys.path
    if is_new:
        sys.path.append(parent)  # at the end, so that files beside `place` do not replace installed modules
        importlib.invalidate_caches()
    try:
        if not is_free(name, source):
            raise Refused(
                f"laws = {str(place)!r} is not allowed: another module is called {name!r}; rename the file or folder"
            )
        package = Package(name)
        laws = _imported_laws(package, str(place))
    except BaseException:
        if is_new:
            sys.path.remove(parent)
        raise
    _LOADED[name] = package
    return {law_id(law): law for law in laws.values()}


def _imported_laws(package: Package, place: str) -> dict[str, type[Law]]:
    """Return the laws of a package; an error of its modules is raised as one sentence."""
    try:
        return package.laws
    except Exception as error:  # the file of a user can raise any error
        raise Refused(f"laws = {place!r} cannot be imported: {_failure(error)}; correct the file") from error


def is_module_name(name: str) -> bool:
    """Return whether a file or folder of this name can be imported.

    >>> is_module_name("my_laws"), is_module_name("my-laws"), is_module_name("class")
    (True, False, False)
    """
    return name.isidentifier() and not keyword.iskeyword(name)


def is_free(name: str, source: Path) -> bool:
    """Return whether no module of this name exists elsewhere than at `source`. Nothing is imported.

    >>> is_free("json", Path("json.py")), is_free("a_name_that_no_module_has", Path("laws.py"))
    (False, True)
    """
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a loaded module without a specification, such as __main__
        return False
    if spec is None:
        return True
    homes = [spec.origin, *(spec.submodule_search_locations or ())]
    return source.resolve() in [Path(home).resolve() for home in homes if home]


def package_name(place: str | os.PathLike[str]) -> str:
    """Return the name of the package for a file or folder.

    >>> package_name("folder/my_laws.py"), package_name("folder/my_laws")
    ('my_laws', 'my_laws')
    """
    return Path(place).stem if str(place).endswith(".py") else Path(place).resolve().name


def know_package(name: str) -> None:
    """Register a package that another process has loaded. The package must be importable in this process."""
    if name not in packages():
        _LOADED[name] = Package(name)


# -- laws ---------------------------------------------------------------------------------------------------------------


def all_laws() -> dict[str, type[Law]]:
    """Return every law by its id, which is the class name of a built-in law, or `package:Class`.

    >>> "Ridge" in all_laws()
    True
    """
    builtin = {name: _builtin(name) for name in index()["laws"]}
    return builtin | {law_id(law): law for package in packages().values() for law in package.laws.values()}


def law_id(law: type[Law]) -> str:
    """Return the id of a law, which is its class name if it is built in, or `package:Class`.

    Without a package the id of a law of another author begins with the name of its module.

    >>> law_id(find_law("ridge"))
    'Ridge'
    """
    if is_builtin(law):
        return law.__qualname__
    package = package_of(law)
    return f"{law.__module__ if package is None else package.name}:{law.__qualname__}"


def find_law(name: str) -> type[Law]:
    """Return the law of this name. No other law is imported.

    `marchenko-pastur`, `marchenko_pastur` and `MarchenkoPastur` are the same name. A law of another author is named `package:Class`
    or `module:Class`. The class name alone is enough if no other law has it.

    >>> find_law("early-stopping").__name__
    'EarlyStopping'
    """
    if ":" in name:
        return _foreign(name)
    spelt = {letters(known): known for known in index()["laws"]}
    if letters(name) in spelt:
        return _builtin(spelt[letters(name)])
    matches = [
        law for package in packages().values() for known, law in package.laws.items() if letters(known) == letters(name)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Refused(f"law {name!r} is ambiguous: write one of {', '.join(sorted(map(law_id, matches)))}")
    known = [*index()["laws"], *(name for package in packages().values() for name in package.laws)]
    raise Refused(f"there is no law {name!r}: {did_you_mean(name, known)}")


def as_law(law: Law | type[Law] | str) -> Law | type[Law]:
    """Return a law or a class of laws unchanged, or the class of laws with this name.

    >>> as_law("ridge").__name__
    'Ridge'
    """
    if isinstance(law, str):
        return find_law(law)
    if isinstance(law, Law) or _is_law(law):
        return law
    raise Refused(f"law = {law!r} is not a law: give an instance such as limitlab.laws.Ridge(ratio=2.0), a class or a name")


def law_at_defaults(law: Law | str) -> Law:
    """Return a law unchanged, or the law of this name with its default parameters.

    >>> law_at_defaults("ridge").ratio
    2.0
    """
    if isinstance(law, str):
        return find_law(law)()
    if not isinstance(law, Law):
        raise Refused(f"law = {law!r} is not a law: give an instance such as limitlab.laws.Ridge(ratio=2.0), or a name")
    return law


def subject_of(law: type[Law]) -> str:
    """Return the heading under which a law is listed, which is the first line of the docstring of its subject.

    >>> subject_of(find_law("ridge"))
    'Regression'
    """
    if is_builtin(law):
        package = ".".join(law.__module__.split(".")[:3])
        return (inspect.getdoc(importlib.import_module(package)) or package).split("\n")[0].rstrip(".")
    known = package_of(law)
    return "Laws of your own" if known is None else known.title()


def laws_by_subject() -> dict[str, list[type[Law]]]:
    """Return the laws of every subject, with the subjects in alphabetical order."""
    grouped: dict[str, list[type[Law]]] = {}
    for law in all_laws().values():
        grouped.setdefault(subject_of(law), []).append(law)
    return dict(sorted(grouped.items()))


def package_of(law: type[Law]) -> Package | None:
    """Return the package of another author to which a law belongs, or None.

    None is returned for a built-in law and for a law that was not loaded as a package.
    """
    if is_builtin(law):
        return None
    inside = [package for name, package in packages().items() if f"{law.__module__}.".startswith(f"{name}.")]
    return max(inside, key=lambda package: len(package.name), default=None)


def laws_option(package: str) -> str:
    """Return the option of the command line that loads a package, with a space before it.

    It is empty for limitlab and for installed packages.

    >>> laws_option("")
    ''
    """
    known = packages().get(package)
    return f" --laws {known.source}" if known is not None and known.source else ""


def _builtin(name: str) -> type[Law]:
    law = getattr(importlib.import_module(index()["laws"][name]), name)
    assert _is_law(law), name
    return law


def _foreign(name: str) -> type[Law]:
    """Return the law `package:Class` or `module:Class` of another author. Its module must have been loaded by the user."""
    home, _, attribute = name.partition(":")
    package = packages().get(home)
    if package is not None:
        spelt = {letters(known): law for known, law in package.laws.items()}
        if letters(attribute) not in spelt:
            raise Refused(f"there is no law {name!r}: {did_you_mean(attribute, package.laws)}")
        return spelt[letters(attribute)]
    if home.partition(".")[0] == "limitlab" and ":" not in attribute:
        return find_law(attribute)
    if home not in sys.modules:
        raise Refused(
            f"there is no law {name!r}: its module is not loaded; import it first, or give its file with --laws FILE.py"
        )
    law = vars(sys.modules[home]).get(attribute)  # getattr could import a further module
    if not _is_law(law):
        raise Refused(f"there is no law {name!r}: {attribute!r} is not a subclass of limitlab.laws.Law in that module")
    return law  # type: ignore[return-value]


def _is_law(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Law) and value is not Law and bool(value.observables)


def letters(name: str) -> str:
    """Return the letters of a name. Names with the same letters are equal on the command line.

    >>> letters("marchenko-pastur") == letters("MarchenkoPastur")
    True
    """
    return name.replace("-", "").replace("_", "").lower()


# -- modules of claims and figures --------------------------------------------------------------------------------------


def builtin_packages() -> list[str]:
    """Return the packages of limitlab that may contain claims and figures, which are all subjects and the tools."""
    laws, tools = BUILTIN_HOMES
    home = importlib.import_module(laws)
    return [*(module.name for module in pkgutil.iter_modules(home.__path__, f"{laws}.") if module.ispkg), tools]


def part_modules(part: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules of a part, `_claims` or `_figures`, of every package, with the prefix of their ids.

    The prefix is empty for built-in packages.
    """
    for name in builtin_packages():
        for module in _part_modules(f"{name}.{part}"):
            yield "", module
    for package in packages().values():
        for module in package.modules(part):
            yield f"{package.name}:", module


def _public_modules(module: ModuleType) -> Iterator[ModuleType]:
    """Yield a module and the public modules below it. Private modules, tests and `setup.py` are not imported."""
    yield module
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        last = inner.name.rpartition(".")[2]
        if not last.startswith("_") and last not in NOT_LAWS:
            yield from _public_modules(importlib.import_module(inner.name))


def _part_modules(name: str) -> list[ModuleType]:
    """Return the module of this name, or the modules of the package of this name, or an empty list."""
    if importlib.util.find_spec(name) is None:
        return []
    module = importlib.import_module(name)
    infos = pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}.")
    return [module, *(importlib.import_module(info.name) for info in infos)]


def library_digest(*without: str) -> str:
    """Return the SHA-256 of the Python files of limitlab; `without` as in `source_digest`."""
    return source_digest(Path(str(files("limitlab"))), *without)


@functools.cache
def source_digest(root: Path, *without: str) -> str:
    """Return the SHA-256 of the Python files below a folder, without modules and folders named `without`.

    An example of such a name is `show/cli`.
    """
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).with_suffix("").as_posix()
        if not any(f"/{excluded}/" in f"/{name}/" for excluded in without):
            total.update(path.relative_to(root).as_posix().encode())
            total.update(path.read_bytes())
    return total.hexdigest()


@functools.cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
