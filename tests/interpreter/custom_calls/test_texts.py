"""Custom calls in verdicts and in HLO text: read, printed, refused, and as real XLA has them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import xbuild as xb

# the verdict


def kind_of(entry: xb.Computation, devices: int) -> str:
    return xb.check(xb.Module("m", entry, num_replicas=devices)).kind


def test_the_verdict_depends_only_where_somebody_waits() -> None:
    effect = lambda x: xb.custom_call(x, "ours", xb.f32[3], has_side_effect=True)  # noqa: E731
    before = xb.computation(xb.f32[3])(lambda x: xb.cross_replica_sum(effect(x)))
    after = xb.computation(xb.f32[3])(lambda x: effect(xb.cross_replica_sum(x)))
    alone = xb.computation(xb.f32[3])(effect)
    pure = xb.computation(xb.f32[3])(lambda x: xb.cross_replica_sum(xb.custom_call(x, "ours", xb.f32[3])))
    inside = xb.computation(xb.f32[3])(
        lambda x: xb.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, effect(xb.cross_replica_sum(s[1]))))[1]
    )
    called = xb.computation(xb.f32[3])(lambda x: xb.cross_replica_sum(xb.call(x, effect)))
    assert [kind_of(each, 2) for each in (before, after, alone, pure, inside, called)] == [
        "depends", "ok", "ok", "ok", "depends", "depends",
    ]  # fmt: skip
    assert kind_of(before, 1) == "ok"


# text

LINES = [
    'f32[2]{0} custom-call(x), custom_call_target="foo", custom_call_has_side_effect=true, called_computations={c}, '
    'backend_config="a"',
    'f32[2]{0} custom-call(x), custom_call_target="foo", literal=f32[] 1',
    'f32[2]{0} custom-call(x), custom_call_target="foo", literal=pred[2,2]{1,0} { { 1, 0 }, { 0, 1 } }',
    'f32[2]{0} custom-call(x), custom_call_target="foo", literal=c64[2]{0} {(1, 2), (3, -4)}',
    'f32[2]{0} custom-call(x), custom_call_target="f\\no"',
    'f32[2]{0} custom-call(x), custom_call_target="foo", sharding={replicated}, frontend_attributes={a="b"}, '
    'control-predecessors={y}, backend_config="z"',
    'f32[2]{0} custom-call(x), custom_call_target="foo", api_version=API_VERSION_TYPED_FFI, '
    "backend_config={uplo = 76 : ui8}",
    'f32[2]{0} custom-call(x), custom_call_target="foo", backend_config="{abc"',
    '() custom-call(), custom_call_target="foo", operand_layout_constraints={}, custom_call_has_side_effect=true',
    'token[] custom-call(t), custom_call_target="x", custom_call_has_side_effect=true',
    "(f32[2]{0}, f32[2,3]{1,0}) custom-call(x, y), window={size=2 stride=3}, dim_labels=b0f_0io->b0f, "
    "feature_group_count=2, batch_group_count=3, operand_precision={highest,default}, padding_type=PADDING_VALID, "
    'custom_call_target="foo", operand_layout_constraints={f32[2]{0}, f32[2,3]{1,0}}, '
    "custom_call_has_side_effect=true, literal=f32[2]{0} {1, 2}, "
    "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}, schedule=SCHEDULE_LATEST, "
    'api_version=API_VERSION_STATUS_RETURNING, backend_config="abc\\"d"',
    "f32[2]{0} fusion(x), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=c",
    'f32[2]{0} fusion(x), kind=kCustom, calls=c, backend_config={"a":{"b":1}}',
    "(f32[2,3]{1,0}, f32[3]{0}) scan(y, z), dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, "
    "to_apply=sc",
    "f32[3,2]{0,1} bitcast(y)",
    "s32[6]{0} bitcast(y)",
    "f32[2]{0} add-dependency(x, t)",
    "f32[2]{0} scaled-dot(y, y, y, y), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, "
    "rhs_contracting_dims={1}, operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32",
    "bf16[2,2]{1,0} scaled-dot(y, y, y, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "f32[3,2,2]{2,1,0} ragged-dot(y, y, i), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, "
    "operand_precision={highest,default}",
]


def text_of(line: str) -> str:
    return f"""HloModule w

c {{
  p = f32[2]{{0}} parameter(0)
  ROOT q = f32[2]{{0}} negate(p)
}}

sc {{
  a = f32[3]{{0}} parameter(0)
  d = f32[3]{{0}} parameter(1)
  s = f32[3]{{0}} add(a, d)
  ROOT u = (f32[3]{{0}}, f32[3]{{0}}) tuple(s, s)
}}

ENTRY m {{
  x = f32[2]{{0}} parameter(0)
  y = f32[2,3]{{1,0}} parameter(1)
  z = f32[3]{{0}} parameter(2)
  i = s32[3]{{0}} parameter(3)
  t = token[] after-all()
  ROOT r = {line}
}}
"""


@pytest.mark.parametrize("line", LINES)
def test_text_is_printed_as_it_is_read(line: str) -> None:
    assert xb.parse_hlo(text_of(line)).to_hlo() == text_of(line)


def test_to_apply_is_read_as_a_called_computation() -> None:
    line = 'f32[2] custom-call(x), to_apply=c, custom_call_target="foo"'
    assert 'custom_call_target="foo", called_computations={c}' in xb.parse_hlo(text_of(line)).to_hlo()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("f32[2] custom-call(x)", "missing_attribute"),
        ('custom-call(x), custom_call_target="foo"', "missing_shape"),
        ('f32[2] custom-call(x), custom_call_target="foo", operand_layout_constraints={}', "attribute_length_mismatch"),
        (
            'f32[2] custom-call(x), custom_call_target="foo", operand_layout_constraints={f32[3]{0}}',
            "signature_mismatch",
        ),
        ('f32[2] custom-call(x), custom_call_target="foo", api_version=FOO', "invalid_attribute"),
        ('f32[2] custom-call(x), custom_call_target="foo", schedule=FOO', "invalid_attribute"),
        (
            'f32[2] custom-call(x), custom_call_target="foo", output_to_operand_aliasing={{}: (1, {})}',
            "index_out_of_range",
        ),
        ('f32[2] custom-call(x), custom_call_target="foo", literal=f32[2]{0} {1}', "shape_mismatch"),
        ('f32[2] custom-call(x), custom_call_target="foo", to_apply=c, called_computations={c}', "invalid_attribute"),
        ("f32[2] fusion(x), calls=c", "missing_attribute"),
        ("f32[2] fusion(x), kind=kFoo, calls=c", "invalid_attribute"),
        ("f32[3] fusion(x), kind=kLoop, calls=c", "shape_mismatch"),
        ("(f32[2,3], f32[3]) scan(y, z), num_carries=1, to_apply=sc", "missing_attribute"),
        ("(f32[4,3], f32[3]) scan(y, z), dimensions={0}, num_carries=1, to_apply=sc", "shape_mismatch"),
        ("scan(z), dimensions={0}, num_carries=1, to_apply=c", "invalid_attribute"),
        ("f32[7] bitcast(x)", "element_count_mismatch"),
        ("f32[2] add-dependency(x)", "arity_mismatch"),
    ],
)
def test_text_at_fault_is_refused(line: str, kind: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text_of(line))
    assert caught.value.faults[0].kind == kind, caught.value


PARSER = """
import json, sys
from jaxlib import _hlo
for text in json.load(sys.stdin):
    lines = _hlo.hlo_module_from_text(text).to_string().splitlines()
    print(next(line for line in lines if "ROOT %r" in line))
"""


@pytest.mark.oracle
def test_real_xla_reads_and_prints_the_same() -> None:
    pytest.importorskip("jaxlib")
    texts = json.dumps([xb.parse_hlo(text_of(line)).to_hlo() for line in LINES])
    done = subprocess.run([sys.executable, "-c", PARSER], input=texts, capture_output=True, text=True, check=True)
    printed = [each.partition(" = ")[2].replace("%", "") for each in done.stdout.splitlines()]
    assert printed == LINES
