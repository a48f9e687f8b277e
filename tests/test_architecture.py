"""Structure of the code: layers without upward imports, every op in every reading, small files and functions."""

from __future__ import annotations

import ast
import importlib
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import attrs
import pytest

import shape_inference
import xbuild as xb
from shape_inference import infer
from xbuild.core.op import OPS

ROOT = Path(__file__).parents[1]
BELOW = {
    "shape_inference": {"shape_inference"},
    "xbuild": {"shape_inference", "xbuild"},
    "interpreter": {"shape_inference", "xbuild", "interpreter"},
}
ABOVE_ALL = Path("xbuild/cli")
DOOR = Path("xbuild/running.py")  # through which the checker has values computed, when it is asked to
OPTIONAL = ("networkx", "graphviz", "pygraphviz", "click", "jax", "jaxlib", "rich", "sklearn", "interpreter")
FAMILIES = {
    "leaves", "elementwise", "conversion", "shaping", "slicing", "gather", "scatter", "reduction", "windows",
    "ordering", "contraction", "linear_algebra", "normalization", "random", "tuples", "control_flow", "collectives",
    "asynchronous", "transfer",
}  # fmt: skip
MODULES = [path.relative_to(ROOT) for package in BELOW for path in sorted((ROOT / package).rglob("*.py"))]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), str(path))


def functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, Function)]


def imported(path: Path) -> set[str]:
    """The packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # A relative import that climbs out of its package would not import at all.
            found.add(path.parts[0] if node.level else (node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_layers_point_one_way(path: Path) -> None:
    allowed = set(BELOW) if ABOVE_ALL in path.parents or path == DOOR else BELOW[path.parts[0]]
    assert imported(path) & (set(BELOW) | {"tests", "benchmarks", "examples"}) <= allowed


def test_the_door_to_the_interpreter_opens_when_it_is_asked() -> None:
    at_import = {node.module for node in tree(DOOR).body if isinstance(node, ast.ImportFrom)}
    assert [name for name in at_import if name and name.partition(".")[0] == "interpreter"] == []
    assert "interpreter" not in _loaded(f"import {'.'.join(DOOR.with_suffix('').parts)}")


@pytest.mark.parametrize("package", BELOW)
def test_each_package_imports_alone(package: str) -> None:
    loaded = _loaded(f"import {package}")
    assert set(BELOW) & loaded <= BELOW[package]


def test_xbuild_loads_nothing_optional() -> None:
    assert set(OPTIONAL) & _loaded("import xbuild") == set()


def test_building_and_printing_load_nothing_optional() -> None:
    program = """
import xbuild as xb
b = xb.Builder("b")
x = xb.parameter(b, number=0, shape=xb.f32[2])
text = str(b.build(x + x))
"""
    assert set(OPTIONAL) & _loaded(program) == set()


def _loaded(program: str) -> set[str]:
    script = f"{program}\nimport sys; print(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_families_are_the_same_in_every_package() -> None:
    for package in BELOW:
        assert {path.stem for path in (ROOT / package / "ops").glob("*.py")} - {"__init__"} == FAMILIES, package
    derived = {path for path in (ROOT / "xbuild" / "derived").glob("*.py") if path.stem != "__init__"}
    assert {path.stem for path in derived if "__all__" in path.read_text()} <= FAMILIES
    cases = {path.stem for path in (ROOT / "tests" / "cases").glob("*.py")} - {"__init__", "case"}
    assert cases == FAMILIES


@pytest.mark.parametrize("opcode", OPS)
def test_every_op_has_every_reading(opcode: str) -> None:
    from interpreter.rules.tables import compute, planned

    schema = OPS[opcode]
    names = schema.operands, tuple(attrs.fields_dict(schema.attributes) if schema.attributes else ())
    family = schema.declaration.__module__.removeprefix("xbuild.")
    assert infer.signature(opcode) == names
    assert infer[opcode].__module__ == f"shape_inference.{family}"
    assert opcode in compute or opcode in planned, "an op has a value rule, or the plan evaluates it"
    assert opcode not in compute or compute.signature(opcode) == names
    name = family.rpartition(".")[2]
    files = [Path("interpreter") / folder / f"{name}.py" for folder in ("ops", "kernels")]
    assert any(opcode in stated(file) for file in files if (ROOT / file).exists())


def stated(path: Path) -> set[str]:
    """The rules that a file states: functions, and rows of its tables."""
    texts = {
        node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return texts | {function.name.strip("_") for function in functions(path)}


def test_no_rule_is_of_no_op() -> None:
    import xbuild.ops
    from interpreter.rules.tables import compute, planned
    from shape_inference import region_parameters

    for readings in (infer, compute, region_parameters, planned):
        assert sorted(set(readings) - set(OPS)) == []
    with_regions = {opcode for opcode, schema in OPS.items() if schema.regions}
    assert sorted(with_regions - set(region_parameters)) == []
    recorded = {name.strip("_") for name in vars(xbuild.ops)}
    assert sorted(set(OPS) - recorded) == []


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_no_stub(path: Path) -> None:
    assert [f"{path}:{f.lineno} {f.name}" for f in functions(path) if _is_stub(f) and not _may_be_empty(path, f)] == []


def _is_stub(function: Function) -> bool:
    body = [node for node in function.body if not _is_text(node)]
    if len(body) > 1:
        return False
    if not body or isinstance(body[0], ast.Pass):
        return True
    if isinstance(body[0], ast.Raise):
        return "NotImplemented" in ast.unparse(body[0])
    return isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _may_be_empty(path: Path, function: Function) -> bool:
    """Declarations of ops, overloads, and the methods of protocols have no body to write."""
    if path.parent == Path("xbuild/ops") or path == Path("xbuild/core/rows.py"):
        return True
    if any(
        "overload" in ast.unparse(each) or "abstractmethod" in ast.unparse(each) for each in function.decorator_list
    ):
        return True
    classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    protocols = [node for node in classes if any("Protocol" in ast.unparse(base) for base in node.bases)]
    return any(protocol.lineno <= function.lineno <= (protocol.end_lineno or 0) for protocol in protocols)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_files_are_small(path: Path) -> None:
    assert len((ROOT / path).read_text().splitlines()) < 300


@pytest.mark.parametrize("package", BELOW)
def test_functions_are_short(package: str) -> None:
    lengths = [_length(f) for path in MODULES if path.parts[0] == package for f in functions(path)]
    assert statistics.median(lengths) < 10


def _length(function: Function) -> int:
    """Lines of code: without the docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    return total - ((first.end_lineno or 0) - first.lineno + 1 if _is_text(first) and len(function.body) > 1 else 0)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_each_module_says_in_one_sentence_what_it_is(path: Path) -> None:
    text = ast.get_docstring(tree(path))
    assert text, "no docstring"
    sentence, *rest = text.split("\n\n")
    assert sentence.endswith("."), "the first paragraph is no sentence"
    assert len(sentence.splitlines()) == 1, "one line"
    assert all(paragraph.rstrip().endswith((".", ":")) for paragraph in rest)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_nothing_is_written_down_for_later(path: Path) -> None:
    lines = (ROOT / path).read_text().splitlines()
    assert [line for line in lines if any(word in line for word in ("TODO", "FIXME", "XXX", "HACK"))] == []


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_every_module_imports(path: Path) -> None:
    importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))


def public(module: ast.Module) -> Iterator[str]:
    """Names that a module defines for others."""
    for node in module.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_name_of_a_family_hides_another() -> None:
    assert xb.leaves is shape_inference.leaves
    modules = {name for name, thing in vars(xb).items() if isinstance(thing, ModuleType) and not name.startswith("_")}
    own = {path.stem for path in (ROOT / "xbuild").glob("*.py")} | {path.parent.name for path in MODULES}
    assert sorted(modules & FAMILIES) == []
    assert sorted(modules - own) == []


DERIVED = [path for path in MODULES if path.parent.name == "derived" and path.stem in FAMILIES]


@pytest.mark.parametrize("path", DERIVED, ids=str)
def test_derived_modules_export_what_they_define(path: Path) -> None:
    module = importlib.import_module(".".join(path.with_suffix("").parts))
    assert sorted(set(module.__all__) - set(vars(module))) == []
    assert sorted(set(public(tree(path))) - set(module.__all__)) == []
