"""Types: the stubs are current, the packages and a user's program pass mypy --strict, and mistakes are found."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from xbuild.core.op import OPS
from xbuild.reference.stubs import stubs

ROOT = Path(__file__).parents[1]

MISTAKES = {
    "a misspelt attribute": 'xb.ops.compare(x, x, directoin="LT")',
    "a word that is none": 'xb.ops.compare(x, x, direction="LTE")',
    "a missing attribute": "xb.ops.compare(x, x)",
    "a number for an operand of a strict op": "xb.ops.add(x, 1.0)",
    "a list for a single operand": "xb.ops.add([x], x)",
    "an operand too few": "xb.ops.select(x, x)",
    "an operand too many": "xb.ops.abs(x, x)",
    "an operand by name": "xb.ops.add(lhs=x, rhs=x)",
    "text for a list of dimensions": 'xb.ops.reduce(x, x, to_apply=xb.ops.add, dimensions="0")',
    "a number for a region": "xb.ops.call(x, to_apply=1)",
    "a number for a name": "xb.ops.add(x, x, name=1)",
    "no builder": "xb.ops.iota(shape=xb.f32[3], iota_dimension=0)",
    "a tuple shape for an array's": "xb.ops.iota(x.builder, shape=xb.TupleShape(()), iota_dimension=0)",
    "a misspelt attribute of a convenience form": "xb.reshape(x, new_size=(2,))",
    "an operand too many of a convenience form": "xb.exp(x, x)",
    "text for dimensions of a convenience form": 'xb.transpose(x, "10")',
    "a value as an index of a list": "[x, x][x]",
    "an item that is set": "x.__setitem__(0, x)",
    "a misspelt function": "xb.evaluat(x)",
    "a value for a computation": "xb.plan_source(x)",
    "an attribute by position": "xb.ops.get_tuple_element(x, 0)",
}


def mypy(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_stubs_are_current() -> None:
    for path, text in stubs().items():
        assert path.read_text() == text, f"{path.name}: run python -m xbuild.reference.stubs"


def test_every_op_has_a_stub() -> None:
    text = "".join(stubs().values())
    assert [o for o, schema in OPS.items() if f"def {schema.declaration.__name__}(" not in text] == []
    assert {path.stem for path in stubs()} == {path.stem for path in (ROOT / "xbuild" / "ops").glob("*.pyi")}


@pytest.mark.slow
def test_the_packages_are_typed() -> None:
    done = mypy("shape_inference", "xbuild", "interpreter")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_users_program_is_typed(tmp_path: Path) -> None:
    done = mypy("--follow-imports=silent", "tests/typing/user.py")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_users_mistakes_are_found(tmp_path: Path) -> None:
    """Each function holds one mistake, and mypy tells each of their lines and no other."""
    script = tmp_path / "mistakes.py"
    head = "import xbuild as xb\n\ndef right(x: xb.Value) -> xb.Value:\n    return xb.ops.add(x, x)\n"
    lines = [f"def f{n}(x: xb.Value) -> xb.Value:\n    return {call}\n" for n, call in enumerate(MISTAKES.values())]
    script.write_text(textwrap.dedent(head) + "".join(lines))
    done = mypy("--follow-imports=silent", script)
    found = {int(line) for line in re.findall(r"mistakes\.py:(\d+): error", done.stdout)}
    expected = {
        line for line, text in enumerate(script.read_text().splitlines(), 1) if text.startswith("    return")
    } - {4}
    missed = [name for n, name in enumerate(MISTAKES) if 6 + 2 * n not in found]
    assert missed == [], done.stdout
    assert found == expected, done.stdout


def test_the_users_program_builds() -> None:
    from tests.typing.user import program

    assert str(program().entry.program_shape).startswith("(f32[2,3], s32[]) -> (")
