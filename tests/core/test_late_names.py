"""What `import xbuild` and `xbuild --help` leave to the first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import xbuild as xb
from xbuild.cli import main
from xbuild.late_names import PLACES

ROOT = Path(__file__).parents[2]
LATE = {
    "checking", "costs", "editing", "explaining", "game", "learning", "pages", "pictures", "reference", "sharding",
    "timelines", "tpu", "traces", "variance",
}  # fmt: skip


def loaded(program: str) -> set[str]:
    """The modules of xbuild that a program imports."""
    script = f"{program}\nimport sys; print(*(name for name in sys.modules if name.startswith('xbuild.')))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_building_a_program_loads_no_check_and_no_partitioner() -> None:
    found = loaded("import xbuild as xb; xb.computation(xb.f32[2])(lambda x: xb.exp(x) + 1)")
    assert {name.split(".")[1] for name in found} & LATE == set()
    assert [
        name
        for name in found
        if name.startswith(("xbuild.differentiation.ops", "xbuild.text.reader", "xbuild.text.reader"))
    ] == []


def test_the_list_of_commands_loads_no_command() -> None:
    found = loaded("from xbuild.cli import main; main(['--help'], standalone_mode=False)")
    assert {name.split(".")[1] for name in found} & LATE == set()
    assert {name for name in found if name.startswith("xbuild.cli.")} & {
        f"xbuild.cli.{name}" for name in main.commands
    } == set()


@pytest.mark.parametrize("name", main.commands)
def test_the_list_says_of_a_command_what_its_help_says(name: str) -> None:
    words = " ".join((main.commands[name].help or "").partition("\n\n")[0].split())
    assert f"{words.partition('. ')[0].rstrip('.:')}." == main.sentences[name]


def test_a_command_that_there_is_not_is_none() -> None:
    assert "nothing" not in main.commands
    assert main.commands.get("nothing") is None
    assert [*main.commands] == sorted(main.commands)
    assert len(main.commands) == len([*main.commands])


def test_late_names_are_those_that_type_checkers_read() -> None:
    tree = ast.parse((ROOT / "xbuild" / "late_names.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    stated = {
        alias.asname: (".".join(filter(None, ["xbuild" * node.level, node.module])), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert len(stated) == len(block.body)
    assert stated == PLACES
    assert PLACES.keys() <= {*dir(xb)} & {*xb.__all__}
    for name, (module, attribute) in PLACES.items():
        if module != "xbuild":  # a namespace is a module of its own
            assert getattr(xb, name) is getattr(__import__(module, fromlist=[attribute]), attribute)
        assert getattr(xb, name) is not None


def test_reading_late_names_imports_nothing() -> None:
    assert "xbuild.checking" not in loaded("import xbuild.late_names")
    assert "interpreter" not in loaded("import xbuild.late_names")


def test_derivatives_are_entered_at_the_first_derivative() -> None:
    program = (
        "import xbuild as xb; f = xb.computation(xb.f32[2])(lambda x: xb.sum(xb.sin(x)))\n"
        "print(xb.evaluate(xb.grad(f), [0.0, 0.0]).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, 1.0]\n"


def test_namespaces_list_only_public_names() -> None:
    for namespace in (xb.tpu, xb.tpu.raw_ops, xb.ops, xb.engines, xb.mesh, xb.shard):
        listed = dir(namespace)
        assert listed
        assert [name for name in listed if name.startswith("_")] == []
        modules = {name for name in listed if isinstance(getattr(namespace, name), ModuleType)}
        assert modules == ({"raw_ops"} if namespace is xb.tpu else set()), namespace
    assert {"replicate", "AdamOptimizer", "cross_replica_sum"} <= {*dir(xb.tpu)}
    assert {*dir(xb.ops)} >= {"add", "all_reduce", "while_"}
