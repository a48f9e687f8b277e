"""Laws of the code: packages import one way, every op has every reading, nothing is left unfinished.

Each law is one test that lists its offenders.
"""

from __future__ import annotations

import ast
import functools
import importlib
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
from shape_inference.rules import RuleTable
from tests.test_docs import LACKING
from xbuild.core.op import OPS

ROOT = Path(__file__).parents[1]
BELOW = {
    "shape_inference": {"shape_inference"},
    "xbuild": {"shape_inference", "xbuild"},
    "interpreter": {"shape_inference", "xbuild", "interpreter"},
}
ABOVE_ALL = Path("xbuild/cli")
DOOR = Path("xbuild/running.py")  # through which the checker has values computed, when it is asked to
NAMES = Path("xbuild/late_names.py")  # whose imports type checkers read, and nothing carries out
OPTIONAL = ("networkx", "graphviz", "pygraphviz", "click", "jax", "jaxlib", "rich", "sklearn", "interpreter")
FAMILIES = {
    "leaves", "elementwise", "conversion", "shaping", "slicing", "gather", "scatter", "reduction", "windows",
    "ordering", "contraction", "linear_algebra", "normalization", "random", "tuples", "control_flow", "collectives",
    "asynchronous", "transfer",
}  # fmt: skip
MODULES = [path.relative_to(ROOT) for package in BELOW for path in sorted((ROOT / package).rglob("*.py"))]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
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


@pytest.mark.slow
def test_packages_import_one_way() -> None:
    upward = []
    for path in MODULES:
        allowed = set(BELOW) if ABOVE_ALL in path.parents or path in (DOOR, NAMES) else BELOW[path.parts[0]]
        upward += [(str(path), name) for name in imported(path) & {*BELOW, "tests", "benchmarks", "examples"} - allowed]
    assert upward == []


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


def test_every_op_has_every_reading() -> None:
    for opcode in OPS:
        _check_readings(opcode)


def _check_readings(opcode: str) -> None:
    from interpreter.rules import compute, planned

    schema = OPS[opcode]
    names = schema.operands, tuple(attrs.fields_dict(schema.attributes) if schema.attributes else ())
    family = schema.declaration.__module__.removeprefix("xbuild.")
    assert infer.signature(opcode) == names, opcode
    assert infer[opcode].__module__ == f"shape_inference.{family}", opcode
    assert opcode in compute or opcode in planned, f"{opcode} has neither a value rule nor a plan"
    assert opcode not in compute or compute.signature(opcode) == names, opcode
    name = family.rpartition(".")[2]
    files = [Path("interpreter") / folder / f"{name}.py" for folder in ("ops", "kernels")]
    assert any(opcode in stated(file) for file in files if (ROOT / file).exists()), opcode


@functools.cache
def stated(path: Path) -> set[str]:
    """The rules that a file states: functions, and rows of its tables."""
    texts = {
        node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return texts | {function.name.strip("_") for function in functions(path)}


def test_no_rule_is_of_no_op() -> None:
    import xbuild.ops
    from interpreter.rules import compute, planned
    from shape_inference import region_parameters

    for readings in (infer, compute, region_parameters, planned):
        assert sorted(set(readings) - set(OPS)) == []
    with_regions = {opcode for opcode, schema in OPS.items() if schema.regions}
    assert sorted(with_regions - set(region_parameters)) == []
    recorded = {name.strip("_") for name in vars(xbuild.ops)}
    assert sorted(set(OPS) - recorded) == []


def test_no_class_name_has_two_owners() -> None:
    """A class name has one meaning, unless it begins with an underscore and stays in its module."""
    owners: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(str(path))
    assert {name: paths for name, paths in owners.items() if len(paths) > 1} == {}


def test_no_function_is_a_stub() -> None:
    stubs = [(path, f) for path in MODULES for f in functions(path) if _is_stub(f)]
    assert [f"{path}:{f.lineno} {f.name}" for path, f in stubs if not _may_be_empty(path, f)] == []


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
    if path.parent == Path("xbuild/ops"):
        return True
    if any(
        "overload" in ast.unparse(each) or "abstractmethod" in ast.unparse(each) for each in function.decorator_list
    ):
        return True
    classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    protocols = [node for node in classes if any("Protocol" in ast.unparse(base) for base in node.bases)]
    return any(protocol.lineno <= function.lineno <= (protocol.end_lineno or 0) for protocol in protocols)


def test_each_module_opens_with_one_sentence_on_one_line() -> None:
    assert {str(path): fault for path in MODULES if (fault := _docstring_fault(ast.get_docstring(tree(path))))} == {}


def _docstring_fault(text: str | None) -> str | None:
    if not text:
        return "no docstring"
    sentence, *rest = text.split("\n\n")
    if not sentence.endswith("."):
        return "the first paragraph is not a sentence"
    if len(sentence.splitlines()) > 1:
        return "the first sentence takes more than one line"
    if not all(paragraph.rstrip().endswith((".", ":")) for paragraph in rest if not paragraph.startswith("    ")):
        return "a paragraph ends without a full stop"
    return None


def test_nothing_is_left_for_later() -> None:
    notes = ("TODO", "FIXME", "XXX", "HACK")
    lines = [(path, line) for path in MODULES for line in (ROOT / path).read_text().splitlines()]
    assert [f"{path}: {line}" for path, line in lines if any(note in line for note in notes)] == []


def test_every_module_imports() -> None:
    for path in MODULES:
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        if name not in LACKING:
            importlib.import_module(name)


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


def test_derived_modules_export_what_they_define() -> None:
    for path in MODULES:
        if path.parent.name == "derived" and path.stem in FAMILIES:
            module = importlib.import_module(".".join(path.with_suffix("").parts))
            assert sorted(set(module.__all__) - set(vars(module))) == [], path
            assert sorted(set(public(tree(path))) - set(module.__all__)) == [], path


def test_the_quick_tests_enter_every_room() -> None:
    """Each line of tests/quick.txt exists, and each folder of tests that needs neither JAX nor a browser has a line."""
    lines = (ROOT / "tests" / "quick.txt").read_text().splitlines()
    assert [line for line in lines if not (ROOT / line).exists()] == []
    rooms = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    entered = {line.split("/")[1] for line in lines}
    assert rooms - entered == {"browser", "jax_versions", "nested"}


CHANGED = {
    "xbuild/stablehlo/op_rules/quantized.py:RULES": "wraps the rules of all files, for quantized operands",
    "xbuild/differentiation/ops/collectives.py:VISITED": "adds the ops of its own family",
    "xbuild/differentiation/ops/control_flow.py:VISITED": "adds the ops of its own family",
    "xbuild/differentiation/ops/transfer.py:VISITED": "adds the ops of its own family",
}
"""Tables that another file changes as it is imported, and why. A `Table` refuses a second entry by itself."""


def test_no_file_replaces_or_removes_entries_of_the_table_of_another() -> None:
    found = {f"{path}:{name}" for path in MODULES for name in _changed_tables(tree(path))}
    assert sorted(found - CHANGED.keys()) == []
    assert sorted(CHANGED.keys() - found) == []


_REMOVING = ("pop", "popitem", "clear", "update", "setdefault", "__setitem__", "__delitem__")


def _changed_tables(module: ast.Module) -> Iterator[str]:
    """What a module imports and changes entries of as it is imported."""
    names = {a.asname or a.name.partition(".")[0] for node in ast.walk(module) if isinstance(node, ast.Import)
             for a in node.names}  # fmt: skip
    names |= {a.asname or a.name for node in ast.walk(module) if isinstance(node, ast.ImportFrom) for a in node.names}
    for node in _run_at_import(module):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            changed = [each.value for each in targets if isinstance(each, ast.Subscript)]
            changed += [node.target] if isinstance(node, ast.AugAssign) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REMOVING:
            changed = [node.func.value]
        else:
            continue
        yield from ({_root(each) for each in changed} & names)


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: all but the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from _run_at_import(child)


def _root(node: ast.expr) -> str:
    """The name at the left end of an expression such as `tables.rules`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def test_a_table_keeps_its_entries() -> None:
    rules = RuleTable("trial")
    rules.enter("add", abs)
    with pytest.raises(ValueError, match="add has two trial rules"):
        rules["add"] = abs
    for change in (lambda: rules.pop("add"), rules.popitem, rules.clear, lambda: rules.setdefault("add", abs)):
        with pytest.raises(TypeError, match="cannot be changed or removed"):
            change()
    with pytest.raises(TypeError):
        del rules["add"]
    assert rules == {"add": abs}
