"""Seed texts in HLO forms that are in neither the corpus nor the cases."""

from __future__ import annotations

from tests.fuzzing.vast import ADD

_GROUPS = (
    ("mesh['a'=2,'b'=2] {'b'}", 4), ("mesh['a'=4] {'a':(2)2}", 4),
    ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b','a'}", 4), ("mesh['a'=8] {'a':(1)2,'a':(4)2}", 8),
    ("[4,2]<=[2,2,2]T(1,2,0)", 8), ("{{0,1},{2,3}}", 4),
)  # fmt: skip
_TABLES = (
    'FileNames\n1 "a.py"\nFunctionNames\n1 "f"\nFileLocations\n'
    "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}\nStackFrames\n"
    "1 {file_location_id=1 parent_frame_id=1}\n"
)
_CALL = (
    'custom-call(x, y), custom_call_target="f", custom_call_has_side_effect=true, literal=s32[2]{0} {1,2}, '
    "operand_layout_constraints={f32[4]{0}, f32[2,2]{0,1}}, output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}, "
    'api_version=API_VERSION_TYPED_FFI, backend_config={a = 1 : ui8}, schedule=SCHEDULE_EARLIEST'
)  # fmt: skip

SEEDS = (
    *(
        f"HloModule m, replica_count={count}\n\n{ADD}\nENTRY e {{\n  x = f32[4] parameter(0)\n"
        f"  ROOT y = f32[4] all-reduce(x), channel_id=1, replica_groups={groups}, use_global_device_ids=true, "
        "to_apply=add\n}\n"
        for groups, count in _GROUPS
    ),
    f"HloModule m, is_scheduled=true\n{_TABLES}\nENTRY e {{\n  x = f32[4] parameter(0), metadata={{stack_frame_id=1}}\n"
    '  ROOT y = f32[4] negate(x), metadata={op_name="a/b" source_file="f.py" source_line=3}\n}\n',
    "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (0, {}) }, num_partitions=2\n\n"
    "ENTRY e (x: f32[4], y: f32[2,2]) -> (f32[4], f32[2,2]) {\n"
    "  x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}\n"
    f"  y = f32[2,2]{{0,1}} parameter(1)\n  ROOT z = (f32[4], f32[2,2]) {_CALL}\n}}, execution_thread=\"main\"\n",
    'ENTRY e {\n  x = f32[2] constant({nan(0x1), -inf}), frontend_attributes={a="b\\n\\x41",c={d}}\n'
    "  c = c64[2] constant({(1, -0), (nan, 1e3)})\n  ROOT y = f32[2] call(x), is_composite=true, to_apply={\n"
    "    a = f32[2] parameter(0)\n    ROOT r = f32[2] add(a, negate(f32[2] abs(a)))\n  }, "
    "control-predecessors={c}\n}\n",
    "f {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] exponential(a)\n}\n\nENTRY e {\n  x = f32[4] parameter(0)\n"
    '  s = ((f32[4]), f32[4], u32[]) async-start(x), async_execution_thread="main", calls=f\n'
    "  u = ((f32[4]), f32[4], u32[]) async-update(s)\n  d = f32[4] async-done(u)\n"
    "  n = ((f32[4]), f32[4]) negate-start(d)\n  ROOT m = f32[4] negate-done(n)\n}\n",
)  # fmt: skip
