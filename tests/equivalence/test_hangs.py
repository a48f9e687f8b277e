"""Programs that hang on some inputs are compared on the inputs on which both run to their end."""

from __future__ import annotations

import pytest

import xbuild as xb

STEP = """HloModule step, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
sums { x = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add }
keeps { x = f32[4] parameter(0)  ROOT k = f32[4] KEPT(x, x) }
ENTRY e {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  norm = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  large = pred[] compare(norm, zero), direction=GT
  ROOT y = f32[4] conditional(large, x, x), true_computation=TAKEN, false_computation=keeps
}"""  # noqa: E501


def program(kept: str = "add", taken: str = "sums") -> xb.Module:
    return xb.parse_hlo(STEP.replace("KEPT", kept).replace("TAKEN", taken))


def doubled() -> xb.Module:
    product = "two = f32[4] constant({2, 2, 2, 2})  ROOT k = f32[4] multiply(x, two)"
    return xb.parse_hlo(STEP.replace("ROOT k = f32[4] KEPT(x, x)", product).replace("TAKEN", "sums"))


def test_inputs_on_which_both_hang_are_left_out() -> None:
    found = xb.equivalent(program(), doubled())
    assert found.kind == "equal"
    assert dict(found.assumed)["hangs"] > 0
    assert "both programs hang there (deadlock): `xbuild check` says on which inputs" in str(found)


def test_programs_that_hang_alike_and_compute_otherwise() -> None:
    assert xb.equivalent(program(), program("subtract")).kind != "equal"


@pytest.mark.parametrize("order", [1, -1])
def test_only_one_program_hangs(order: int) -> None:
    found = xb.equivalent(*[program(), program(taken="keeps")][::order])
    assert found.kind == "undecided"
    assert "one program hangs on a drawn input (deadlock), and the other does not" in str(found)
