"""The program that tests of editing change, and its computations after an edit."""

from __future__ import annotations

from collections.abc import Callable

import xbuild as xb

TEXT = """HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

f {
  a = f32[2] parameter(0)
  x = f32[2] negate(a)
  ROOT c = f32[2] exponential(x)
}

ENTRY main {
  x = f32[2]{0} parameter(0), sharding={replicated}
  n = s32[] parameter(1)
  y = f32[2] negate(x), frontend_attributes={k="v"}
  k = f32[2] call(y), to_apply=f, control-predecessors={n}
  dead = f32[2] tanh(k)
  ROOT z = f32[2] add(y, k), control-predecessors={k}
}
"""


def edited(module: xb.Module, edit: Callable[[xb.Editor[xb.Module]], object]) -> xb.Module:
    with xb.edit(module) as editor:
        edit(editor)
    return editor.result


def body(module: xb.Module) -> str:
    return str(module).partition("ENTRY main {\n")[2]


HEADER = (
    "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }, buffer_donor={ (1, {}) }, "
    'entry_computation_layout={(f32[2],f32[2])->(f32[2], f32[2])}, frontend_attributes={a="b"}\n'
    "ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(1) ROOT t = tuple(x, y) }"
)
