"""Callbacks of JAX before communication: prints do not make a verdict depend on the host, other functions do."""

from __future__ import annotations

import pytest

import xbuild as xb

TEXT = """HloModule m, num_partitions=2
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
ENTRY e {{
  x = f32[] parameter(0)
  {name} = {shape} custom-call(x), custom_call_target="{target}", custom_call_has_side_effect={effect}{metadata}
  {use}
  ROOT sum = f32[] all-reduce({operand}), channel_id=1, replica_groups={{{{0,1}}}}, to_apply=add{ids}
}}
"""
TARGETS = ["xla_ffi_python_cpu_callback", "xla_python_gpu_callback", "xla_ffi_partitioned_python_cpu_callback"]


def program(primitive: str, target: str = TARGETS[0], *, by_name: bool = False) -> xb.Module:
    """A program that calls the host and then adds over two devices; the primitive is in the metadata or the name."""
    has_result = primitive in ("pure_callback", "io_callback")
    name = f"{primitive}.1" if by_name else "custom-call.1"
    op_name = f'"jit(f)/jit(main)/shard_map/{primitive}[callback=f]"'
    metadata = "" if by_name else f", metadata={{op_name={op_name}}}"
    return xb.parse_hlo(
        TEXT.format(
            name=name,
            shape="(f32[])" if has_result else "()",
            target=target,
            effect=str(primitive != "pure_callback").lower(),
            metadata=metadata,
            use=f"r = f32[] get-tuple-element({name}), index=0" if has_result else "",
            operand="r" if has_result else "x",
            ids=", use_global_device_ids=true",
        )
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("primitive", ["debug_print", "debug_callback"])
def test_a_print_leaves_the_verdict_as_it_is_with_a_note(primitive: str, by_name: bool, target: str) -> None:
    verdict = xb.check(program(primitive, target, by_name=by_name))
    name = f"{primitive}.1" if by_name else "custom-call.1"
    assert verdict.kind == "ok"
    assert verdict.notes == (f"the verdict assumes that the host returns from {name} (jax.debug)",)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    ("primitive", "api"), [("pure_callback", "jax.pure_callback"), ("io_callback", "jax.experimental.io_callback")]
)
def test_other_callbacks_are_named(primitive: str, api: str, by_name: bool, target: str) -> None:
    verdict = xb.check(program(primitive, target, by_name=by_name))
    name = f"custom-call {primitive}.1" if by_name else "custom-call.1"
    assert verdict.kind == "depends"
    assert verdict.findings[0].message.startswith(f"if {name} ({api}) does not return on one of devices 0")
    assert not verdict.notes


def test_an_unknown_callback_may_block() -> None:
    assert "(a Python callback) does not return" in str(xb.check(program("host", by_name=True)))


def test_other_calls_without_effects_do_not_block() -> None:
    module = program("pure_callback", "my_kernel")
    assert xb.check(module).kind == "ok"


def test_a_print_of_one_device_has_no_note() -> None:
    text = program("debug_print").to_hlo().replace("num_partitions=2", "num_partitions=1").replace("{{0,1}}", "{{0}}")
    verdict = xb.check(xb.parse_hlo(text))
    assert (verdict.kind, verdict.notes) == ("ok", ())
