"""The command `new-law`, which writes an example law with claim, figure, page, test and faults for an author to edit."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from limitlab.errors import Refused
from limitlab.show.cli._app import app
from limitlab.show.cli._law import dashed
from limitlab.show.cli._output import JsonOption, print_json

LONGEST = 30
"""Characters of the name of a class. With longer names some lines of the templates would be too long."""
FAULTS_HEAD = "# Faults that `compare` must detect. `old` occurs exactly once in `file`{below}.\n\n"
SUBJECT_IMPORT = re.compile(r"^from limitlab\.laws\.EXAMPLE_SUBJECT\.(.*)\n", re.MULTILINE)


@app.command("new-law", epilog="Example: limitlab new-law my_laws --name MyLaw")
def new_law(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of the laws, created if it is missing. In a checkout of limitlab: src/limitlab/laws/SUBJECT.",
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the class of the law, such as MyLaw.")],
    as_json: JsonOption = False,
) -> None:
    """Write an example law with claim, figure, theory page, test and list of faults, which you edit to make your own law.

    Existing files are never overwritten. The claim, the figure and the faults of a further law are added to the files of the first one.
    """
    from limitlab._core.files import write_whole

    check_name(name)
    place = place_of(folder, name)
    contents = contents_of(place, name)
    created = [path for path in contents if not path.exists()]
    for path, text in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    shown = {
        "created": [as_typed(path) for path in contents if path in created],
        "extended": [as_typed(path) for path in contents if path not in created],
    }
    if as_json:
        print_json({"law": place.law_id(name), **shown, "next": place.next_commands(name)})
        return
    for word, names in shown.items():
        for file in names:
            typer.echo(f"{word} {file}")
    typer.echo("\nNext, check the example, then edit it:")
    for command in place.next_commands(name):
        typer.echo(f"    {command}")


def check_name(name: str) -> None:
    """Raise ValueError if a class of laws cannot have this name.

    >>> check_name("Ridge")
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: --name Ridge is not allowed: limitlab has this name already; choose another name
    """
    from limitlab import laws
    from limitlab._core.registry import NOT_LAWS, letters, packages

    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*[a-z0-9][A-Za-z0-9]*", name) or keyword.iskeyword(name) or len(name) > LONGEST:
        raise Refused(
            f"--name {name} is not allowed: must be letters and digits in CamelCase, such as MyLaw, at most {LONGEST} of them"
        )
    for owner, names in [("limitlab", laws.__all__), *((package.name, package.laws) for package in packages().values())]:
        if letters(name) in {letters(known) for known in names}:
            raise Refused(f"--name {name} is not allowed: {owner} has this name already; choose another name")
    if module_of(name) in NOT_LAWS:
        raise Refused(f"--name {name} is not allowed: a module called {module_of(name)}.py is not searched for laws")


def as_typed(path: Path) -> str:
    """Return a path relative to the current folder if it lies below it, so that commands can be copied."""
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(full)


def module_of(name: str) -> str:
    """Return the name of the module of a class.

    >>> module_of("MyFirstLaw")
    'my_first_law'
    """
    return dashed(name).replace("-", "_")


# -- paths of the files -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """The paths of the files of a new law.

    Attributes
    ----------
    folder
        The folder of the law, its claims and its figures.
    root
        The checkout of limitlab that the folder belongs to; None for a folder outside limitlab.
    page, test, faults
        The theory page, the test and the list of faults.
    """

    folder: Path
    root: Path | None
    page: Path
    test: Path
    faults: Path

    @property
    def subject(self) -> str:
        """The import name of the folder."""
        return self.folder.resolve().name

    @property
    def title(self) -> str:
        """The initial heading for the laws of a new folder."""
        return self.subject.replace("_", " ").strip().capitalize()

    def law_id(self, name: str) -> str:
        """Return the name of the law on the command line."""
        return name if self.root is not None else f"{self.subject}:{name}"

    def next_commands(self, name: str) -> list[str]:
        """Return the commands that check the new law."""
        if self.root is not None:
            return ["python -m limitlab._core.index", f"limitlab compare {name}", f"pytest {as_typed(self.test)}"]
        load = f"--laws {as_typed(self.folder)}"
        return [
            f"limitlab compare {self.law_id(name)} {load}",
            f"limitlab verify {load}",
            f"limitlab figure {self.subject}:{dashed(name)} {load}",
            f"pytest {as_typed(self.test.parent)}",
        ]


def place_of(folder: Path, name: str) -> Place:
    """Return the paths of the files of a law, in a folder outside limitlab or in a subject of a checkout.

    Raise `ValueError` for other folders.
    """
    from limitlab._core.registry import is_free, is_module_name

    path, module = folder.resolve(), module_of(name)
    if folder.exists() and not folder.is_dir():
        raise Refused(f"folder = {str(folder)!r} is not allowed: it is a file; give the name of a folder")
    if not is_module_name(path.name) or path.name.startswith("_"):
        raise Refused(
            f"folder = {str(folder)!r} is not allowed: its name must be a Python name such as my_laws, because Python imports it"
        )
    inside = [parent for parent in path.parents if (parent / "_core" / "registry.py").is_file()]
    if inside:
        package = inside[0]
        root = package.parents[1]
        if path.parent != package / "laws" or package.parent.name != "src" or not (root / "pyproject.toml").is_file():
            raise Refused(
                f"folder = {str(folder)!r} is not allowed: inside limitlab, laws belong in src/limitlab/laws/SUBJECT of a checkout"
            )
        tests = root / "tests"
        return Place(
            folder,
            root,
            page=root / "docs" / "theory" / f"{module}.md",
            test=tests / "laws" / path.name / f"test_{module}.py",
            faults=tests / "faults" / f"{path.name}.toml",
        )
    if not is_free(path.name, path):
        raise Refused(
            f"folder = {str(folder)!r} is not allowed: another module is called {path.name!r}; choose another name"
        )
    return Place(
        folder,
        None,
        page=folder / "theory" / f"{module}.md",
        test=folder / "tests" / f"test_{module}.py",
        faults=folder / "faults.toml",
    )


# -- contents of the files ----------------------------------------------------------------------------------------------


def contents_of(place: Place, name: str) -> dict[Path, str]:
    """Return the content of every file, by path, without writing it."""
    module = module_of(name)
    law = place.folder / f"{module}.py"
    for path in (law, place.page, place.test):
        if path.exists():
            raise Refused(f"the file {str(path)!r} exists already: choose another --name, or delete the file first")
    contents = {} if (start := place.folder / "__init__.py").exists() else {start: filled("package", place, name)}
    contents[law] = filled("law", place, name)
    for part in ("claims", "figures"):
        path, text = with_part(place, name, part)
        contents[path] = text
    contents[place.page] = filled("page", place, name)
    contents[place.test] = filled("test", place, name)
    contents[place.faults] = with_faults(place, name)
    if place.root is None:
        contents |= with_references(place.folder / "references.bib", filled("references", place, name))
    return contents


def with_part(place: Place, name: str, part: str) -> tuple[Path, str]:
    """Return the path and content of the file of claims or figures that includes the new law.

    It is a new file, a new module of a package, or an existing file with an addition.
    """
    text = filled(part, place, name)
    if (package := place.folder / f"_{part}").is_dir():
        path = package / f"{module_of(name)}.py"
        if path.exists():
            raise Refused(f"the file {str(path)!r} exists already: choose another --name, or delete the file first")
        return path, text.replace("\nfrom .", "\nfrom ..")
    path = place.folder / f"_{part}.py"
    return path, extended(path, text) if path.exists() else text


def with_faults(place: Place, name: str) -> str:
    """Return the list of faults with those of the new law."""
    text = filled("faults", place, name)
    if place.faults.exists():
        return place.faults.read_text(encoding="utf-8").rstrip("\n") + "\n\n" + text
    return FAULTS_HEAD.format(below=" (below src/limitlab)" if place.root is not None else "") + text


def with_references(path: Path, text: str) -> dict[Path, str]:
    """Return the bibliography with the entry of the example, unless it contains this entry already."""
    if not path.exists():
        return {path: text}
    before = path.read_text(encoding="utf-8")
    return {} if text.partition(",")[0] in before else {path: before.rstrip("\n") + "\n\n" + text}


def filled(template: str, place: Place, name: str) -> str:
    """Return a template with the names of the new law."""
    text = (files("limitlab.show.cli") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    module, inside = module_of(name), place.root is not None
    if not inside:
        text = outside(text, template)
    words = {
        "EXAMPLE_TITLE": place.title,
        "EXAMPLE_AREA": place.title,
        "EXAMPLE_SUBJECT": place.subject,
        "EXAMPLE_ID": free_claim_id(place) if template == "claims" else "",
        "EXAMPLE_PAGE": f"{'docs/' if inside else ''}theory/{module}.md",
        "EXAMPLE_HEAD": f"```{{about-laws}} {name}\n```\n\n" if inside else "",
        "EXAMPLE_FILE": f"laws/{place.subject}/{module}.py" if inside else f"{module}.py",
        "EXAMPLE_TEST": f"tests/laws/{place.subject}/test_{module}.py" if inside else f"tests/test_{module}.py",
        "ExampleLaw": name,
        "example_law": module,
        "example-law": dashed(name),
    }
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def outside(text: str, template: str) -> str:
    """Return a template for a folder outside limitlab, with relative imports and a test that loads the folder."""
    if template == "test":
        text = text.replace("import pytest\n", "from pathlib import Path\n\nimport pytest\n", 1)
        text = SUBJECT_IMPORT.sub("from limitlab import load_laws\n", text)
        load = 'ExampleLaw = load_laws(Path(__file__).parents[1])["EXAMPLE_SUBJECT:ExampleLaw"]'
        return text.replace("import check_law\n", f"import check_law\n\n{load}\n", 1)
    match = SUBJECT_IMPORT.search(text)
    if match is None:
        return text
    before, after = text[: match.start()], text[match.end() :]
    further = re.match(r"(?:from limitlab.*\n)*", after)
    assert further is not None
    return f"{before}{further[0]}\nfrom .{match[1]}\n{after[further.end() :]}"


def free_claim_id(place: Place) -> str:
    """Return the first of X1, X2, ... that is not the id of a claim of limitlab (in a checkout) or of the folder."""
    from limitlab._core.lazy import index

    # in a checkout, search the sources too, because the index may be out of date
    folders = [place.folder] if place.root is None else place.folder.resolve().parent.iterdir()
    sources = [path for folder in folders for form in ("_claims.py", "_claims/*.py") for path in folder.glob(form)]
    taken = {label for path in sources for label in re.findall(r'"(X\d+)"', path.read_text(encoding="utf-8"))}
    taken |= set(index()["claims"]) if place.root is not None else set()
    return next(label for number in range(1, len(taken) + 2) if (label := f"X{number}") not in taken)


# -- a function that is added to a module -------------------------------------------------------------------------------


def extended(path: Path, template: str) -> str:
    """Return the source of an existing module of claims or figures, followed by the function of a template.

    Names that the module does not import are imported inside the function. Only the law of a claim is imported at the top.
    """
    source = path.read_text(encoding="utf-8")
    try:
        module, new = ast.parse(source), ast.parse(template)
    except SyntaxError as error:
        raise Refused(f"the file {str(path)!r} is not valid Python (line {error.lineno}): correct it first") from None
    names = {bound for node in module.body for bound in names_of(node)}
    (function,) = (node for node in new.body if isinstance(node, ast.FunctionDef))
    needed = {"claim", "Check"} if function.decorator_list else {"Figure"}
    if missing := sorted(needed - names):
        raise Refused(f"the file {str(path)!r} does not import {' and '.join(missing)}: add the import at its top first")
    if function.name in names:
        raise Refused(f"the file {str(path)!r} defines {function.name} already: choose another --name")
    present = {
        line for node in module.body if isinstance(node, (ast.Import, ast.ImportFrom)) for line in single_imports(node)
    }
    lines = template.splitlines()
    start = min([function.lineno, *(node.lineno for node in function.decorator_list)]) - 1
    body = function.body[1].lineno - 1  # after the docstring
    above = {node.id for part in function.decorator_list for node in ast.walk(part) if isinstance(node, ast.Name)} - names
    head = with_import(source, new, above)
    local = local_imports(new, present, needed | above)
    added = [*lines[start:body], *local, *lines[body : function.end_lineno]]
    if not function.decorator_list:
        figures = next(line for line in lines if line.startswith("FIGURES"))
        entry = re.sub(r"FIGURES = \{(.*): (\w+)\}", r"FIGURES[\1] = \2", figures)
        added += ["", "", entry if "FIGURES" in names else figures]
    return head.rstrip("\n") + "\n\n\n" + "\n".join(added) + "\n"


def with_import(source: str, template: ast.Module, names: set[str]) -> str:
    """Return the source of a module with the import of these names from a template, in sorted order among the imports."""
    imports = [node for node in template.body if isinstance(node, ast.ImportFrom) and names & set(names_of(node))]
    if not imports:
        return source
    (new,) = imports
    lines = source.splitlines()
    present = [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    section = [node for node in present if isinstance(node, ast.ImportFrom) and section_of(node) == section_of(new)]
    later = [node for node in section if str(node.module) > str(new.module)]
    if later:
        lines.insert(later[0].lineno - 1, ast.unparse(new))
    elif section:
        lines.insert(section[-1].end_lineno or 0, ast.unparse(new))
    else:
        last = present[-1].end_lineno or 0
        lines[last:last] = ["", ast.unparse(new)]
    return "\n".join(lines)


def section_of(node: ast.ImportFrom) -> int:
    """Return the section of an import, which is 0 for other packages, 1 for limitlab and 2 for modules of the same folder."""
    return 2 if node.level else int(str(node.module).startswith("limitlab"))


def local_imports(template: ast.Module, present: set[str], needed: set[str]) -> list[str]:
    """Return the imports of a template that a module lacks, as lines for the body of a function, in sections."""
    sections: dict[int, list[str]] = {}
    for node in template.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or (
            isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ):
            continue
        if isinstance(node, ast.ImportFrom):
            node.names = [
                one
                for one in node.names
                if one.name not in needed
                and not set(single_imports(ast.ImportFrom(node.module, [one], node.level))) & present
            ]
        elif set(single_imports(node)) <= present:
            continue
        if node.names:
            section = section_of(node) if isinstance(node, ast.ImportFrom) else 0
            sections.setdefault(section, []).append(f"    {ast.unparse(node)}")
    joined = [line for section in sorted(sections) for line in ("", *sections[section])]
    return [*joined[1:], ""] if joined else []


def single_imports(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the statement as one line per imported name."""
    home = f"from {'.' * node.level}{node.module or ''} " if isinstance(node, ast.ImportFrom) else ""
    return [f"{home}import {one.name} as {one.asname or one.name}" for one in node.names]


def names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a module binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [one.asname or one.name for one in node.names]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.If):
        return [bound for inner in node.body for bound in names_of(inner)]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
