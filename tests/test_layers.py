"""Laws of the folders: imports point one way, without a cycle; no public name is hidden."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

import interpreter
import shape_inference
import xbuild as xb
from docs.site import files
from tests.test_docs import modules as import_modules
from xbuild import running

ROOT = Path(__file__).parents[1]
ORDER = files.LAYERS  # lowest first: a folder imports folders of its own package that precede it
PACKAGES = ("shape_inference", "xbuild", "interpreter")

REACHES_THE_INTERPRETER = {"xbuild.running"}


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def public_names(package: str) -> list[str]:
    return (ROOT / "tests" / "data" / "public_names" / f"{package}.txt").read_text().split()


def folder(module: str) -> str:
    """The package that a module stands in; a package itself is its own."""
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run, in the module and inside functions, without those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from statements(child)


def imported(module: str) -> Iterator[str]:
    """The modules of the three packages that a module imports."""
    base = folder(module).split(".")
    for statement in statements(ast.parse(MODULES[module].read_text())):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            outer = base[: len(base) - statement.level + 1] if statement.level else []
            whole = ".".join([*outer, *filter(None, [statement.module])])
            names = [f"{whole}.{a.name}" if f"{whole}.{a.name}" in MODULES else whole for a in statement.names]
        yield from (name for name in names if name in MODULES)


def reached(module: str) -> bool:
    """Whether a module imports the interpreter by any statement, or by name."""
    text = MODULES[module].read_text()
    loads = re.search(r'(import_module|__import__)\("interpreter', text) is not None
    return loads or any(name.split(".")[0] == "interpreter" for name in imported(module))


def edges() -> Iterator[tuple[str, str]]:
    """Which folder imports which; the roots of the packages stand above their folders and give their public names."""
    for module in MODULES:
        if module in PACKAGES or folder(module) in PACKAGES:
            continue
        for other in imported(module):
            if other not in PACKAGES and folder(module) != folder(other):
                yield folder(module), folder(other)


@pytest.mark.slow
def test_folders_import_each_other_without_a_cycle() -> None:
    graph = nx.DiGraph(sorted(set(edges())))
    assert [sorted(component) for component in nx.strongly_connected_components(graph) if len(component) > 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("package", ORDER)
def test_folders_import_only_what_stands_below(package: str) -> None:
    rank = {f"{package}.{name}": number for number, name in enumerate(ORDER[package])}
    inside = {folder(module) for module in MODULES if module.startswith(f"{package}.")} - {package}
    assert inside == rank.keys(), "each folder has its place in ORDER"
    upward = {(a, b) for a, b in edges() if a in rank and b in rank and rank[b] > rank[a]}
    assert upward == set()


@pytest.mark.slow
def test_the_tables_of_folders_and_files_are_those_of_the_code() -> None:
    written = files.FILES.read_text(), files.ARCHITECTURE.read_text()
    assert written == (files.files_text(), files.architecture_text()), "python -m docs.site.files writes them"


def test_one_module_of_xbuild_reaches_the_interpreter() -> None:
    assert {module for module in MODULES if module.startswith("xbuild") and reached(module)} == REACHES_THE_INTERPRETER


def test_the_names_of_the_interpreter_are_given_by_xbuild() -> None:
    for name, (module, attribute) in running.PUBLIC.items():
        assert getattr(xb, name) is getattr(__import__(module, fromlist=[attribute]), attribute)
    given = {attribute for _, attribute in running.PUBLIC.values()}
    assert {*public_names("interpreter")} - given == {"ops", "Refused"}  # Refused is the check's
    assert {*running.PUBLIC} <= {*dir(xb)} & {*xb.__all__}


def test_the_interpreter_is_imported_at_its_first_use() -> None:
    program = "import sys, xbuild as xb; print('interpreter' in sys.modules, xb.Limits, 'interpreter' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False <class 'interpreter.rules.limits.Limits'> True\n"


def test_no_module_hides_a_public_name() -> None:
    """After every module is imported, each public name of a package is still what it was before."""
    packages = (xb, interpreter, shape_inference)
    before = {(p.__name__, name): value for p in packages for name, value in vars(p).items() if name[0] != "_"}
    assert len([*import_modules()]) > 500
    after = {(p.__name__, name): value for p in packages for name, value in vars(p).items()}
    changed = [key for key, value in before.items() if not isinstance(value, ModuleType) and after[key] is not value]
    assert changed == []


@pytest.mark.parametrize("package", [xb, interpreter, shape_inference], ids=lambda p: p.__name__)
def test_every_public_name_is_still_there(package: ModuleType) -> None:
    assert [name for name in public_names(package.__name__) if not hasattr(package, name)] == []
