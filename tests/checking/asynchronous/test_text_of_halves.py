"""Text of asynchronous ops: read and printed as XLA prints it, refused where it pairs wrongly, shown in a skeleton."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.checking.asynchronous.programs import finished, module, started
from xbuild.text.printer import skeleton_text

# What jaxlib 0.10.2 prints of its own modules.
PRINTED = """
HloModule one_op, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, replica_count=2

ENTRY main {
  x = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[4]{0}, u32[]) negate-start(x), async_execution_thread="foo"
  u = ((f32[4]{0}), f32[4]{0}, u32[]) negate-update(s)
  ROOT d = f32[4]{0} negate-done(u)
}
---
HloModule collectives, entry_computation_layout={(f32[4]{0})->(f32[2]{0}, f32[4]{0})}, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[2]{0}) reduce-scatter-start(x), replica_groups={{0,1}}, dimensions={0}, to_apply=add
  u = ((f32[4]{0}), f32[2]{0}) reduce-scatter-update(s)
  d = f32[2]{0} reduce-scatter-done(u)
  t = ((f32[4]{0}), f32[4]{0}, u32[]) all-to-all-start(x), replica_groups={{0,1}}, constrain_layout=true, dimensions={0}
  td = f32[4]{0} all-to-all-done(t)
  ROOT r = (f32[2]{0}, f32[4]{0}) tuple(d, td)
}
---
HloModule computation, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

w2 {
  p = f32[4]{0} parameter(0)
  a = f32[4]{0} add(p, p)
  ROOT n = f32[4]{0} negate(a)
}, execution_thread="par"

ENTRY main {
  x = f32[4]{0} parameter(0)
  st = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(x), async_execution_thread="par", calls=w2
  d = f32[4]{0} async-done(st)
  ROOT r = f32[4]{0} add(d, d)
}
---
HloModule own, entry_computation_layout={(f32[4]{0}, f32[4]{0})->(f32[4]{0}, f32[4]{0})}, replica_count=2

ENTRY main {
  x = f32[4]{0} parameter(0)
  c = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(x), cross_program_prefetch_index=0
  cd = f32[4]{0:S(5)} copy-done(c)
  p = (f32[4]{0}, f32[4]{0}, u32[], u32[]) collective-permute-start(cd), channel_id=1, source_target_pairs={{0,1}}
  pd = f32[4]{0} collective-permute-done(p)
  y = f32[4]{0} parameter(1)
  g = ((f32[4]{0}, f32[4]{0}), (f32[8]{0}, f32[8]{0})) all-gather-start(x, y), channel_id=3, replica_groups={{0,1}}, \
constrain_layout=true, dimensions={0}, use_global_device_ids=true
  gd = (f32[8]{0}, f32[8]{0}) all-gather-done(g)
  b = f32[4]{0} collective-broadcast(pd), replica_groups={{0,1}}
  i = s32[2]{0} constant({0, 1})
  ra = f32[4]{0} ragged-all-to-all(x, y, i, i, i, i), replica_groups={{0,1}}
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(b, ra)
}
"""


@pytest.mark.parametrize("text", PRINTED.strip().split("\n---\n"), ids=lambda text: text.split()[1].strip(","))
def test_text_is_read_and_printed_as_xla_prints_it(text: str) -> None:
    assert xb.parse_hlo(text).to_hlo().strip() == text.strip()


def test_text_of_a_wrapped_op_with_a_start_of_its_own_keeps_its_meaning() -> None:
    text = """ENTRY main {
      x = f32[4] parameter(0)
      s = ((f32[4]), f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
      ROOT d = f32[8] all-gather-done(s)
    }"""
    read = xb.parse_hlo(text)
    assert [i.opcode for i in read.entry.instructions] == ["parameter", "async_start", "async_done"]
    again = xb.parse_hlo(read.to_hlo())
    assert "calls=wrapped_all_gather" in again.to_hlo()
    assert again.to_hlo() == read.to_hlo()


@pytest.mark.parametrize(
    ("lines", "kind", "names"),
    [
        (["s = ((f32[4]), f32[4]) negate-start(x)", "d = f32[4] abs-done(s)"], "done_kind_mismatch", ["negate", "abs"]),
        (["d = f32[4] async-done(x)"], "missing_start", ["'x'"]),
        (["d = f32[4] negate-done(x)"], "missing_start", ["'x'"]),
        (["s = f32[4] negate-start(x)"], "shape_mismatch", ["f32[4]"]),
        (["s = ((f32[4]), f32[8]) negate-start(x)"], "shape_mismatch", ["f32[8]", "f32[4]"]),
        (["s = ((f32[4]), f32[4]) negate-start(x), dimensions={0}"], "unknown_attribute", ["dimensions"]),
        (["s = ((f32[4]), f32[4]) broadcast-start(x), dimensions={1}"], "dimension_out_of_range", ["broadcast", "1"]),
        (["s = negate-start(x)"], "missing_shape", ["async-start"]),
        (["s = f32[4] all-reduce-start(x), channel_id=1"], "missing_attribute", ["to_apply"]),
        (["s = f32[4] nonsense-start(x)"], "unknown_opcode", ["nonsense-start"]),
        (
            [
                "s = ((f32[4]), f32[4]) async-start(x), calls=w",
                "t = ((f32[4]), f32[4]) async-start(x), calls=w",
            ],
            "invalid_attribute",
            ["calls=w"],
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_text_that_pairs_wrongly_is_refused(lines: list[str], kind: str, names: list[str]) -> None:
    called = "w { p = f32[4] parameter(0) a = f32[4] abs(p) ROOT n = f32[4] negate(a) }"
    text = "\n".join([called, "ENTRY main {", "x = f32[4] parameter(0)", *lines, "}"])
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text)
    assert caught.value.faults[0].kind == kind, caught.value
    assert [name for name in names if name not in str(caught.value)] == []


def test_the_skeleton_shows_collectives_that_are_started_and_no_local_copies() -> None:
    def program(x: xb.Value) -> xb.Value:
        copied = xb.copy_done(xb.copy_start(x))
        begun = xb.async_start(copied, lambda y: xb.reduce_scatter(y, xb.add, 0, 2))
        return xb.tuple_(finished(started(x, 1)), xb.async_done(begun))

    text = skeleton_text(module(program))
    assert [
        word for word in ("all-reduce-start(", "all-reduce-done(", "reduce-scatter-start(") if word not in text
    ] == []
    assert "copy-start" not in text
    assert "wrapped" not in text
