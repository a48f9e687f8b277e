"""Annotations of HLO text: shardings, metadata, pairs of transfers, headers and layouts are kept and printed back."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.text.texts import entry

ANNOTATED = [
    "sharding={replicated}",
    "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    "sharding={{maximal device=0}, {devices=[2]0,1 metadata={op_name=\"a\"}}}",
    "sharding={mesh['x'=2], [{'x'}, {?}], replicated={}}",
    'frontend_attributes={a="b",_c.d={e}}',
    "backend_config={uplo = 76 : ui8}",
    'backend_config="fast"',
    "control-predecessors={x}",
    'parameter_replication={true,false}, statistics={visualizing_index=0}',
]  # fmt: skip


@pytest.mark.parametrize("words", ANNOTATED)
def test_what_means_nothing_here_is_printed_back(words: str) -> None:
    assert f"ROOT y = f32[4] negate(x), {words}\n" in entry(f"  ROOT y = f32[4] negate(x), {words}").to_hlo()


def test_the_numbers_of_a_long_sharding_are_passed_over() -> None:
    parts = ", ".join(["{replicated}"] * 5)
    numbered = f'sharding={{{parts}, /*index=5*/{{replicated}}, {{maximal device=0 metadata={{op_name="/*a*/"}}}}}}'
    printed = entry(f"  ROOT y = f32[4] negate(x), {numbered}").to_hlo()
    assert f"negate(x), {numbered.replace('/*index=5*/', '')}\n" in printed


def test_metadata_is_printed_where_it_is_asked_for() -> None:
    words = 'metadata={op_name="a/b" source_file="f.py" source_line=3 profile_type={1}}'
    module = entry(f"  ROOT y = f32[4] negate(x), {words.replace(' ', ', ')}")
    assert words in module.to_hlo(metadata=True)
    assert "metadata" not in module.to_hlo()
    assert "source_file" not in entry("  ROOT y = f32[4] negate(x)").to_hlo(metadata=True)


def test_the_pairs_of_send_and_recv_come_from_their_frontend_attributes() -> None:
    pairs = '_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"'
    module = entry(
        "  t = token[] after-all()\n"
        f'  s = (f32[4], u32[], token[]) send(x, t), channel_id=7, frontend_attributes={{{pairs},a="b"}}\n'
        "  d = token[] send-done(s), channel_id=7\n"
        f"  r = (f32[4], u32[], token[]) recv(t), channel_id=8, frontend_attributes={{{pairs}}}\n"
        "  ROOT e = (f32[4], token[]) recv-done(r), channel_id=8"
    )
    for name in ("s", "r"):
        assert module.entry[name].attributes.source_target_pairs == ((0, 1), (1, 2))
    text = module.to_hlo()
    assert xb.parse_hlo(text).to_hlo() == text
    assert f'frontend_attributes={{{pairs},a="b"}}' in text


def test_a_header_is_kept() -> None:
    words = (
        "input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, "
        'replica_count=2, frontend_attributes={a="b"}'
    )
    text = f"HloModule m, is_scheduled=true, {words}\n\nENTRY e {{\n  ROOT x = f32[4] parameter(0)\n}}\n"
    module = xb.parse_hlo(text)
    assert module.is_scheduled
    assert module.to_hlo() == text


def test_layouts_are_kept_and_mean_nothing() -> None:
    module = xb.parse_hlo(
        "ENTRY e { x = f32[2,3]{0,1:T(8,128)S(5)} parameter(0) y = f32[3,2]{1,0} transpose(x), dimensions={1,0} "
        "ROOT z = f32[3,2] negate(f32[3,2] y) }"
    )
    assert "f32[2,3]{0,1:T(8,128)S(5)} parameter(0)" in module.to_hlo()
    assert str(module.entry.root.shape) == "f32[3,2]"
