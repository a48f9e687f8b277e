"""Effects of a global program stay in its partition: as many, in their order, on the devices they are placed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from shape_inference import XbuildError

from .campaign import KINDS, fault, program

CALL = 'custom-call(x), custom_call_target="tests.seen", custom_call_has_side_effect=true'
BODIES = {
    "outfeed": "t = token[] after-all() o = token[] outfeed(x, t), outfeed_shape=f32[4], sharding={maximal device=1}",
    "call": f"o = f32[4] {CALL}",
    "placed call": f"o = f32[4] {CALL}, sharding={{maximal device=1}}",
    "state": "o = u64[2] rng-get-and-update-state(), delta=3",
}
AROUND = {
    "entry": "ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]} BODY ROOT y = f32[4] add(x, x) }",
    "call": """
side { x = f32[4] parameter(0) BODY ROOT r = f32[4] negate(x) }
ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  c = f32[4] call(x), to_apply=side ROOT y = f32[4] add(x, x) }""",
    "call of a call": """
side { x = f32[4] parameter(0) BODY ROOT r = f32[4] negate(x) }
middle { z = f32[4] parameter(0) c = f32[4] call(z), to_apply=side ROOT n = f32[4] abs(z) }
ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  c = f32[4] call(x), to_apply=middle ROOT y = f32[4] add(x, x) }""",
    "loop": """
test { s = (s32[], f32[4]) parameter(0) n = s32[] get-tuple-element(s), index=0 k = s32[] constant(3)
  ROOT p = pred[] compare(n, k), direction=LT }
body { s = (s32[], f32[4]) parameter(0) n = s32[] get-tuple-element(s), index=0 x = f32[4] get-tuple-element(s), index=1
  BODY one = s32[] constant(1) m = s32[] add(n, one) ROOT r = (s32[], f32[4]) tuple(m, x) }
ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]} z = s32[] constant(0)
  i = (s32[], f32[4]) tuple(z, x) w = (s32[], f32[4]) while(i), condition=test, body=body
  ROOT y = f32[4] add(x, x) }""",
    "branch": """
yes { x = f32[4] parameter(0) BODY ROOT r = f32[4] negate(x) }
no { ROOT x = f32[4] parameter(0) }
ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]} p = pred[] constant(true)
  c = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no
  ROOT y = f32[4] add(x, x) }""",
}
GIVEN = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("body", BODIES)
def test_an_effect_that_gives_nothing_is_kept(body: str, around: str) -> None:
    module = xb.parse_hlo(f"HloModule m, num_partitions=2\n{AROUND[around].replace('BODY', BODIES[body])}")
    made = xb.shard.partition(module)
    seen: list[tuple[int, list[float]]] = []

    @xb.custom_call_target("tests.seen")
    def look(x: Any) -> Any:
        seen.append((-1, x.tolist()))
        return x

    found = made.run(GIVEN, outfeed=lambda device, item: seen.append((device, item.tolist())))
    assert found.tolist() == [0, 2, 4, 6]
    times = 3 if around == "loop" else 1
    each = {"outfeed": [(1, [0, 1, 2, 3])], "call": [(-1, [0, 1, 2, 3])] * 2, "placed call": [(-1, [0, 1, 2, 3])]}
    assert seen == each.get(body, []) * times
    opcodes = [each.opcode for computation in made.module.entry.reachable() for each in computation.instructions]
    opcode = {"outfeed": "outfeed", "state": "rng_get_and_update_state"}.get(body, "custom_call")
    assert opcodes.count(opcode) == 1


@pytest.mark.parametrize("around", AROUND)
def test_effects_keep_their_order(around: str) -> None:
    """Of outfeeds on one device, none of which takes a token of another."""
    body = "\n".join(
        f"k{n} = f32[] constant({n}) b{n} = f32[4] broadcast(k{n}), dimensions={{}} a{n} = f32[4] add(x, b{n}) "
        f"t{n} = token[] after-all() o{n} = token[] outfeed(a{n}, t{n}), outfeed_shape=f32[4], "
        "sharding={maximal device=0}"
        for n in range(3)
    )
    made = xb.shard.partition(xb.parse_hlo(f"HloModule m, num_partitions=2\n{AROUND[around].replace('BODY', body)}"))
    seen: list[float] = []
    made.run(GIVEN, outfeed=lambda device, item: seen.append(float(item[0])))
    assert seen == [0, 1, 2] * (3 if around == "loop" else 1)


def test_a_control_edge_between_effects_is_kept() -> None:
    body = f"a = f32[4] {CALL} n = f32[4] negate(x) b = f32[4] {CALL.replace('(x)', '(n)')}, control-predecessors={{a}}"
    made = xb.shard.partition(xb.parse_hlo(f"HloModule m\n{AROUND['call'].replace('BODY', body)}"))
    one, other = (each for each in made.module.entry.instructions if each.opcode == "custom_call")
    assert other.control == (one,)
    assert not one.control


ASYNC = """HloModule m, num_partitions=2
side { x = f32[4] parameter(0) ROOT r = f32[4] CALL }
ENTRY e { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  s = ((f32[4]), f32[4]) async-start(x), calls=side
  d = f32[4] async-done(s)
  ROOT y = f32[4] add(x, x) }"""


def test_an_asynchronous_effect_keeps_both_its_halves() -> None:
    module = xb.parse_hlo(ASYNC.replace("CALL", CALL))
    for found in (xb.eliminate_dead_code(module), xb.shard.partition(module).module):
        opcodes = [each.opcode for each in found.entry.instructions]
        assert opcodes.count("async_start") == opcodes.count("async_done") == 1
        assert xb.check(found).kind != "error"


def test_an_effect_on_one_device_inside_of_what_all_run_is_refused() -> None:
    module = xb.parse_hlo(ASYNC.replace("CALL", f"{CALL}, sharding={{maximal device=1}}"))
    with pytest.raises(XbuildError, match="r is a custom-call on device 1 inside async-start s, which every device"):
        xb.shard.partition(module)


NUMBERED = """HloModule m, num_partitions=4
ENTRY e { p = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  i = u32[] partition-id()
  c = u32[] custom-call(i), custom_call_target="tests.number", custom_call_has_side_effect=true, sharding={maximal device=2}
  d = u32[] add(c, i), sharding={maximal device=3}
  ROOT r = (f32[8], u32[]) tuple(p, d) }"""  # noqa: E501


def test_an_effect_that_reads_the_number_of_its_device_is_done_there_once() -> None:
    seen: list[int] = []

    @xb.custom_call_target("tests.number")
    def look(x: Any) -> Any:
        seen.append(int(x))
        return x

    made = xb.shard.partition(xb.parse_hlo(NUMBERED))
    assert made.run(np.zeros(8, np.float32))[1] == 2 + 3
    assert seen == [2]


def test_an_infeed_is_cut_as_it_states_though_its_user_states_otherwise() -> None:
    text = """HloModule m, num_partitions=4
    side { q = s32[4] parameter(0), sharding={devices=[2,2]<=[4] last_tile_dim_replicate} ROOT n = s32[4] negate(q) }
    ENTRY e { t = token[] after-all()
      i = (s32[4], token[]) infeed(t), sharding={{devices=[4]<=[4]}, {replicated}}
      x = s32[4] get-tuple-element(i), index=0
      ROOT c = s32[4] call(x), to_apply=side }"""
    made = xb.shard.partition(xb.parse_hlo(text))
    assert made.run(infeed={n: [np.int32([n])] for n in range(4)}).tolist() == [0, -1, -2, -3]


def test_an_effect_stays_on_its_device_though_a_user_states_tiles() -> None:
    text = f"""HloModule m, num_partitions=4
    side {{ q = f32[4] parameter(0), sharding={{devices=[4]<=[4]}} ROOT n = f32[4] negate(q) }}
    ENTRY e {{ x = f32[4] parameter(0)
      o = f32[4] {CALL}, sharding={{maximal device=1}}
      ROOT c = f32[4] call(o), to_apply=side }}"""
    seen: list[list[float]] = []

    @xb.custom_call_target("tests.seen")
    def look(x: Any) -> Any:
        seen.append(x.tolist())
        return x

    assert xb.shard.partition(xb.parse_hlo(text)).run(GIVEN).tolist() == [0, -1, -2, -3]
    assert seen == [[0, 1, 2, 3]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_devices_do_what_the_global_program_asks_for(seed: int) -> None:
    assert fault(program(seed, [KINDS["effects"]])) is None
