"""`bisect`: planted faults are found at their instruction, in the entry, in calls, branches and trips of loops."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild
from tests.reducing.planting import faulty, places
from tests.reducing.test_minimize import CORPUS, LOOP
from xbuild.core.graph import Module
from xbuild.files.arrays import random_arguments
from xbuild.running import engines

BRANCHES = """
HloModule branches
one { x = f32[4] parameter(0)  y = f32[4] negate(x)  ROOT z = f32[4] multiply(y, x) }
two { x = f32[4] parameter(0)  ROOT w = f32[4] tanh(x) }
ENTRY e {
  i = s32[] parameter(0)
  a = f32[4] parameter(1)
  b = f32[4] cosine(a)
  c = f32[4] conditional(i, b, a), branch_computations={one, two}
  ROOT d = f32[4] add(c, b)
}
"""


def arguments_of(module: Module) -> list[list[Any]]:
    return random_arguments(1, [[each.shape for each in module.entry.parameters]] * module.num_devices)


@pytest.mark.parametrize("name", ["argreduce", "attention_grad", "fori", "convnet_train", "c_all_gather", "sorts"])
def test_a_planted_fault_is_found_at_its_instruction(name: str) -> None:
    module = xb.parse_hlo((CORPUS / f"{name}_0.hlo").read_text())
    arguments = arguments_of(module)
    for place in random.Random(name).sample([*places(module)], 2):
        found = engines.bisect(module, arguments, xb.execute, faulty(place))
        if found is None:  # nothing depends on the value
            ours, theirs = xb.execute(module, arguments), faulty(place)(module, arguments)
            assert all(each.same for each in engines.compare(ours, theirs, [module.entry.root.shape] * len(ours)))
            continue
        assert found.instruction.name == place
        assert found.is_alone
        again = engines.compare(
            xb.execute(found.program, found.operands),
            faulty(place)(found.program, found.operands),
            [found.program.entry.root.shape] * module.num_devices,
        )
        assert not all(each.same for each in again)
        assert {each.opcode for each in found.program.entry.instructions} - {found.instruction.opcode} <= {
            "parameter", "constant", "iota", "after_all",
        }  # fmt: skip


INSIDE = {
    ("v2", LOOP): "trip 1 of %w",
    ("less", LOOP): "the condition of %w before trip 1",
    ("z", BRANCHES): "branch 0 of %c",
    ("w", BRANCHES): "branch 1 of %c",
    ("b", BRANCHES): None,
}


@pytest.mark.parametrize(("name", "text"), INSIDE)
def test_the_place_names_the_loop_and_the_branch(name: str, text: str) -> None:
    module = xb.parse_hlo(text)
    given = arguments_of(module)
    if text == BRANCHES:
        given[0][0] = np.int32(name == "w")
    found = engines.bisect(module, given, xb.execute, faulty(name))
    assert found is not None
    expected = INSIDE[name, text]
    assert (found.instruction.name, found.inside) == (name, () if expected is None else (expected,))
    assert next(found.lines()).startswith(f"first difference: %{name}, ")


def test_no_difference_has_no_place() -> None:
    module = xb.parse_hlo(LOOP)
    assert engines.bisect(module, arguments_of(module), xb.execute, xb.execute) is None


def test_a_difference_that_the_instruction_alone_does_not_have_is_said_to_be_so() -> None:
    """An engine that is wrong only where it compiles both instructions together."""
    module = xb.parse_hlo("ENTRY e { x = f32[2] parameter(0) a = f32[2] negate(x) ROOT b = f32[2] abs(a) }")

    def fusing(part: Module, given: Any) -> list[Any]:
        text = part.to_hlo()
        return xb.execute(xb.parse_hlo(text.replace("abs(a)", "cosine(a)") if "negate(x)" in text else text), given)

    found = engines.bisect(module, [[np.float32([1, 2])]], xb.execute, fusing)
    assert found is not None
    assert (found.instruction.name, found.is_alone) == ("b", False)
    assert "on the same operands the engines agree" in "\n".join(found.lines())


def test_the_command_writes_the_instruction_and_its_operands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_xla(module: Module, given: Any, **options: Any) -> list[Any]:
        return faulty("v2")(module, given)

    class NoChild:
        def __init__(self, *given: Any, **options: Any) -> None: ...
        def __enter__(self) -> NoChild:
            return self

        def __exit__(self, *given: object) -> None: ...

    monkeypatch.setattr(engines, "execute_on_xla", on_xla)
    monkeypatch.setattr(engines.bisection, "execute_on_xla", on_xla)
    monkeypatch.setattr(engines.bisection, "require_jaxlib", lambda: None)
    monkeypatch.setattr(engines.bisection, "Child", NoChild)
    program, npz = tmp_path / "loop.hlo", tmp_path / "found.npz"
    program.write_text(LOOP)
    given = ["run", program, "--random", "1", "--engine", "both"]
    result = xbuild(*given, "--bisect", npz)
    assert result.exit_code == 1, result.output
    assert "first difference: %v2, multiply, in trip 1 of %w" in result.stdout
    part = xb.parse_hlo((tmp_path / "found.hlo").read_text())
    assert [each.opcode for each in part.entry.instructions] == ["parameter", "parameter", "multiply"]
    assert xbuild("run", tmp_path / "found.hlo", "--inputs", npz).exit_code == 0
    assert xbuild("run", tmp_path / "found.hlo", "--inputs", npz, "--engine", "both").exit_code == 1
    assert '"inside": [\n      "trip 1 of %w"' in xbuild(*given, "--bisect", npz, "--json").stdout
    assert "--bisect has no effect without --engine both" in usage(
        xbuild("run", program, "--random", "1", "--bisect", npz)
    )


@pytest.mark.oracle
@pytest.mark.slow
def test_a_planted_fault_of_real_xla_is_found() -> None:
    pytest.importorskip("jaxlib")
    module = xb.parse_hlo((CORPUS / "attention_grad_0.hlo").read_text())
    given = arguments_of(module)
    name = random.Random(0).choice([*places(module)])
    with engines.bisection.engine("xla", module.num_devices) as run:
        found = engines.bisect(module, given, xb.execute, faulty(name, run))
    assert found is not None
    assert found.instruction.name == name
