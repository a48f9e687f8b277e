"""Costs in proportion to the length of a text: shared aliases, bounds, walks over users, regexes, children."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import interpreter
import xbuild as xb
from interpreter import Limits
from interpreter.engines.process import receive, send
from shape_inference import PRIMITIVES, ShapeError, bounds
from tests.fuzzing import bytecode, growth
from tests.fuzzing.__main__ import grown
from tests.support import hostile
from xbuild.checking.scenarios.search import paths_of_calls
from xbuild.files.arrays import random_arguments
from xbuild.process.child import TooMuchOutputError, run_bounded
from xbuild.properties.scopes import scopes_of
from xbuild.properties.variances import read_type

_LEVELS = 45
_BODY = (
    "module {{ func.func public @main(%arg0: tensor<4xf32>{0}) -> tensor<4xf32> {{\n{1}"
    "return %arg0 : tensor<4xf32> }} }}"
)
_CALL = (
    '%0 = "stablehlo.custom_call"(%arg0) {call_target_name="x", backend_config=#t45} : (tensor<4xf32>) -> '
    "tensor<4xf32>\n"
)
SHARED = {
    "functions": ("!t{0} = (!t{1}, !t{1}) -> (!t{1}, !t{1})", _BODY.format(", %arg1: !t45", "")),
    "futures": ("!t{0} = !stablehlo.future<!t{1}, !t{1}>", _BODY.format(", %arg1: !t45", "")),
    "lists": ("#t{0} = [#t{1}, #t{1}]", _BODY.format("", _CALL)),
    "dictionaries": ("#t{0} = {{a = #t{1}, b = #t{1}}}", _BODY.format("", _CALL)),
}


def seconds(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


@pytest.mark.parametrize("kind", SHARED)
def test_aliases_of_aliases_are_bounded(kind: str) -> None:
    line, body = SHARED[kind]
    first = "!t0 = tensor<4xf32>\n#t0 = [1]\n"
    text = first + "\n".join(line.format(n, n - 1) for n in range(1, _LEVELS + 1)) + "\n" + body
    with pytest.raises(xb.HloParseError, match=r"aliases expand to more than 16,777,216 characters .*\[overflow\]"):
        xb.parse_stablehlo(text)


def test_a_line_that_repeats_counts_its_aliases_again() -> None:
    aliases = "#t0 = [1]\n" + "\n".join(f"#t{n} = [#t{n - 1}, #t{n - 1}]" for n in range(1, 15))
    call = _CALL.replace("#t45", "#t14")
    few, many = ("".join(call.replace("%0", f"%{n}") for n in range(count)) for count in (10, 400))
    assert len(xb.parse_stablehlo(f"{aliases}\n{_BODY.format('', few)}").entry.instructions) == 11
    with pytest.raises(xb.HloParseError, match="aliases expand to more"):
        xb.parse_stablehlo(f"{aliases}\n{_BODY.format('', many)}")


def test_usual_aliases_are_read_as_what_they_stand_for() -> None:
    text = "!t = tensor<4xf32>\n!pair = tuple<!t, !t>\n" + _BODY.format(", %arg1: !pair", "")
    assert xb.parse_stablehlo(text).entry.parameters[1].shape == xb.TupleShape((xb.f32[4], xb.f32[4]))


@pytest.mark.parametrize("dtype", PRIMITIVES.values(), ids=repr)
def test_arrays_are_bounded(dtype: xb.PrimitiveType) -> None:
    assert dtype[(1,) * bounds.MAX_RANK].rank == 64
    assert dtype[2**63 - 1,].size == bounds.MAX_ELEMENTS
    for dims, said in (
        ((1,) * 65, "at most 64 dimensions, got 65"),
        ((2**62, 2), r"9223372036854775808 elements, more than the limit of 2\^63-1"),
        ((2**62, 0, 2**62), "not counting extents of 0"),
        ((10**17,) * 20, "about 2"),
        ((2**63,), "the extent of dimension 0 is 9223372036854775808"),
    ):
        with pytest.raises(ShapeError, match=said) as refused:
            dtype[dims]
        assert refused.value.kind == "overflow"


@pytest.mark.parametrize(
    "dims", ["x".join(["99999999999999999"] * 20), "x".join(["1"] * 300), "?x" + "x".join(["9" * 17] * 9)]
)
def test_arrays_in_mlir_are_bounded(dims: str) -> None:
    with pytest.raises(xb.HloParseError, match=r"1:\d+: .* array .*\[overflow\]"):
        xb.parse_stablehlo(_BODY.format(f", %arg1: tensor<{dims}xf32>", ""))


def test_empty_arrays_are_those_that_numpy_makes_in_every_type() -> None:
    most = 2**59 - 1
    for dtype in PRIMITIVES.values():
        assert np.empty(dtype[0, most].dims, dtype.dtype).astype(np.complex128).nbytes == 0
        with pytest.raises(
            ShapeError, match=rf"\[2,0,{most}\] has .* \(not counting extents of 0\), more than the limit of 2\^59-1"
        ):
            dtype[2, 0, most]


def test_a_run_of_the_largest_empty_array_ends() -> None:
    module = xb.parse_hlo(f"ENTRY e {{ x = s4[0,{2**59 - 1}] parameter(0)\n ROOT y = s4[0,{2**59 - 1}] negate(x) }}")
    (result,) = interpreter.execute(module, random_arguments(0, [[p.shape for p in module.entry.parameters]]))
    assert result.size == 0
    assert xb.equivalent(module, module).kind == "equal"


def test_a_header_that_cannot_be_read_is_kept_or_refused() -> None:
    """HLO text keeps it; StableHLO has no place for it."""
    module = xb.parse_hlo("HloModule m, frontend_attributes={a1>b}\nENTRY e { ROOT x = f32[2] parameter(0) }")
    assert "frontend_attributes={a1>b}" in module.to_hlo()
    with pytest.raises(xb.XbuildError, match=r"frontend_attributes=\{a1>b\} cannot be read: expected '='"):
        module.to_stablehlo()


def test_meshes_are_bounded() -> None:
    assert xb.Mesh(i=1024, j=1024).num_devices == bounds.MOST_DEVICES
    with pytest.raises(ShapeError, match=r"1000000000000000000 devices; at most 1,048,576"):
        xb.Mesh(i=10**9, j=10**9)
    with pytest.raises(ShapeError, match="65 axes; at most 64"):
        xb.Mesh([1] * 65)


@pytest.mark.parametrize(
    ("expression", "size", "said"),
    [
        ("*".join("b" * 300), 999, r"b\*b.*: the value of the expression exceeds 2\^63-1"),
        ("+".join("b" * 2000), 1, "3,999 characters"),
    ],
)
def test_expressions_of_sizes_are_bounded(expression: str, size: int, said: str) -> None:
    text = (
        "func.func public @main(%arg0: tensor<?xf32>, %arg1: tensor<?xf32>) -> tensor<?xf32> {\n"
        "%c = stablehlo.constant dense<true> : tensor<i1>\n"
        '"stablehlo.custom_call"(%c) {call_target_name="shape_assertion", error_message='
        f'"x.shape = (b) y.shape = ({expression})", has_side_effect=true}} : (tensor<i1>) -> ()\n'
        "return %arg0 : tensor<?xf32> }"
    )
    with pytest.raises(xb.HloParseError, match=f"dimension 0 of %arg1 is .*{said}"):
        xb.parse_stablehlo(text, shapes={"b": size})


@pytest.mark.parametrize(("line", "count"), [("and({0}, {0})", 45), ("not({0})", 3000)])
def test_a_sum_that_is_only_compared_is_found_among_many_users(line: str, count: int) -> None:
    lines = [" t0 = pred[8] compare(s, c), direction=LT"]
    lines += [f" t{n} = pred[8] {line.format(f't{n - 1}')}" for n in range(1, count)]
    text = (
        "or { x = pred[] parameter(0)\n y = pred[] parameter(1)\n ROOT z = pred[] or(x, y) }\n"
        "ENTRY e { a = f32[8] parameter(0)\n b = f32[8] parameter(1)\n c = f32[8] parameter(2)\n"
        " p = f32[8] multiply(a, b)\n s = f32[8] add(p, c)\n" + "\n".join(lines) + "\n k = pred[] constant(false)\n"
        f" ROOT o = pred[] reduce(t{count - 1}, k), dimensions={{0}}, to_apply=or }}"
    )
    given = [np.ones(8, np.float32)] * 3
    module = xb.parse_hlo(text)
    assert seconds(lambda: xb.evaluate(module.entry, *given)) < 10


REGEXES: dict[str, Callable[[int], object]] = {
    "resources": lambda n: refused("{-# " + "dialect_resources:" * (n // 18) + "#-}"),
    "names of resources": lambda n: refused("{-# dialect_resources: " + "a" * n + "#-}"),
    "strings of resources": lambda n: refused('{-# dialect_resources: "' + '\\"' * (n // 2) + "#-}"),
    "open tensors": lambda n: refused("tensor<?x" * (n // 9)),
    "comments of a literal": lambda n: refused("ENTRY e { x = f32[] constant(" + "/*" * (n // 2)),
    "op names": lambda n: scopes_of(
        xb.parse_hlo('ENTRY e { x = f32[] parameter(0), metadata={op_name="' + "/jit(" * (n // 5) + '"} }')
    ),
    "several modules": lambda n: refused('HloModule a\nHloModule b\n"' + '\\"' * (n // 2)),
    "aliases": lambda n: xb.edit(
        xb.parse_hlo(f"HloModule m, input_output_alias={{{' ' * n}}}\nENTRY e {{ x = f32[] parameter(0) }}")
    ),
    "types on a mesh": lambda n: refused(" " * n + "x", read_type),
    "one line": lambda n: refused("module { " + "%0 = a.b : i1 " * (n // 14)),
}


def refused(text: str, read: Callable[[str], object] = xb.parse_hlo) -> None:
    """Read a text that is refused."""
    resources = text.startswith("{-#")
    whole = (
        _BODY.format("", "%0 = stablehlo.constant dense_resource<q> : tensor<4xf32>\n") + text if resources else text
    )
    with pytest.raises(xb.XbuildError):
        (xb.parse_stablehlo if resources or "%0" in text or "tensor" in text else read)(whole)


@pytest.mark.parametrize("kind", REGEXES)
def test_no_regular_expression_is_quadratic(kind: str) -> None:
    """A quadratic one takes minutes for this length."""
    assert seconds(lambda: REGEXES[kind](200_000)) < 10


def test_a_type_on_a_mesh_is_read_without_recursion() -> None:
    with pytest.raises(xb.XbuildError, match="is not the type of a value on a mesh"):
        read_type("(" * 100_000)


def _python(program: str, given: bytes = b"", **how: int) -> bytes:
    bounds_ = {"seconds": 60, "most": 1 << 20, **how}
    return run_bounded([sys.executable, "-c", program], given, **bounds_).output


def test_a_child_gets_all_and_gives_all() -> None:
    copy = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    given = bytes(range(256)) * 4096
    assert _python(copy, given) == given
    assert _python("print(1)", given).strip() == b"1"  # what is not read is no fault


def test_the_output_of_a_child_is_bounded() -> None:
    with pytest.raises(TooMuchOutputError):
        _python("while True: print('x' * 9999)")
    with pytest.raises(subprocess.TimeoutExpired):
        _python("while True: pass", seconds=1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of processes is bounded on Linux alone")
def test_the_memory_of_a_child_is_bounded() -> None:
    wait = "import sys; sys.stdin.read()\n"  # until the bound is set
    ended = run_bounded(
        [sys.executable, "-c", f"{wait}x = bytes(1 << 30)"], b"x" * (1 << 20), seconds=60, most=1 << 20, memory=1 << 28
    )
    assert ended.status == 1
    assert b"MemoryError" in ended.said


def _doubled_with_equal_operands(op: str, levels: int) -> str:
    """Computations that each call the one before twice with the same operand."""
    parts = ["g0 { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\n"]
    for n in range(levels):
        call = op.format(f"g{n}")
        parts.append(
            f"g{n + 1} {{ x = f32[] parameter(0)\n a = f32[] {call}\n b = f32[] {call}\n ROOT r = f32[] add(a, b) }}\n"
        )
    return hostile.module(*parts, hostile.entry(f"y = f32[] {op.format(f'g{levels}')}"))


@pytest.mark.parametrize(
    "op",
    [
        "call(x), to_apply={}",
        "fusion(x), kind=kLoop, calls={}",
        "conditional(q, x, x), branch_computations={{{0}, {0}}}",
    ],
)
def test_equal_calls_are_compared_once(op: str) -> None:
    text = _doubled_with_equal_operands(op, 40).replace("a = f32[] cond", "q = s32[] constant(0)\n a = f32[] cond")
    text = text.replace(" ROOT y = f32[] cond", " q = s32[] constant(0)\n ROOT y = f32[] cond")
    module = xb.parse_hlo(text)
    verdict: list[xb.Equivalence] = []
    limits = Limits(seconds=30)
    assert seconds(lambda: verdict.append(xb.equivalent(module, module, limits=limits))) < 5
    assert verdict[0].kind == "equal", verdict[0]


@pytest.mark.parametrize("how", ["call", "fusion", "map", "conditional"])
def test_comparisons_notice_their_limit_inside_calls(how: str) -> None:
    module = xb.parse_hlo(hostile.doubling(how, 45))
    took = seconds(lambda: xb.equivalent(module, module, limits=Limits(seconds=0.2)))
    assert took < 5
    assert xb.equivalent(module, module, limits=Limits(seconds=0.2)).kind == "undecided"


@pytest.mark.parametrize("dims", ["1048576,1048576", "2147483648,2,1048576"])
def test_inputs_beyond_the_limit_of_bytes_are_not_drawn(dims: str) -> None:
    module = xb.parse_hlo(f"ENTRY e {{ x = f32[{dims}] parameter(0)\n ROOT y = f32[] constant(1) }}")
    verdict = xb.equivalent(module, module, limits=Limits(bytes=1 << 26), reduce_extents=False)
    assert verdict.kind == "undecided"
    assert "limit_bytes" in verdict.undecided[0]
    assert xb.equivalent(module, module, limits=Limits(bytes=1 << 26)).kind == "equal"


def test_a_run_prepares_within_its_limit_of_seconds() -> None:
    """65,536 calls of a collective: finding what devices may share, and the plan, each take seconds."""

    def prepared() -> float:
        module = xb.parse_hlo(hostile.doubling("call", 16, hostile.ALL_REDUCE, ", replica_count=2"))
        xb.check(module)  # kept, so that the time of the run goes into its preparation

        def run() -> None:
            with pytest.raises(interpreter.Stopped, match=r"limit of 0\.3 seconds was reached"):
                interpreter.execute(module, [[1.0], [2.0]], limits=Limits(seconds=0.3))

        return seconds(run)

    assert min(prepared(), prepared()) < 2  # the collector may pass over a large heap in one of them


def test_regions_that_are_written_at_each_use_are_bounded() -> None:
    module = xb.parse_hlo(hostile.doubling("map", 45))
    with pytest.raises(xb.XbuildError, match="each region were written at every use"):
        module.to_stablehlo()


def test_tuples_without_a_written_shape_are_bounded_together() -> None:
    doubled = [f"t{n} = tuple(t{n - 1}, t{n - 1})" for n in range(1, 16)]
    lines = ["t0 = tuple(x, x)", *doubled, *(f"c{n} = copy(t15)" for n in range(300)), "r = negate(x)"]
    with pytest.raises(xb.HloParseError, match="tuples in the text") as refusal:
        xb.parse_hlo(hostile.module(hostile.entry(*lines)))
    assert refusal.value.kind == "tuple_too_large"


def test_empty_tuples_count_towards_the_size_of_a_tuple() -> None:
    lines = ["t0 = tuple()", *(f"t{n} = tuple(t{n - 1}, t{n - 1})" for n in range(1, 40)), "r = negate(x)"]
    with pytest.raises(xb.HloParseError, match="empty tuples") as refusal:
        xb.parse_hlo(hostile.module(hostile.entry(*lines)))
    assert refusal.value.kind == "tuple_too_large"


def test_counting_paths_of_calls_takes_one_step_for_each_call() -> None:
    of = hostile.doubling("call", 60, hostile.ALL_REDUCE, ", replica_count=2")
    entry = xb.parse_hlo(of).entry
    counts = paths_of_calls(entry)
    assert sorted(counts.values()) == sorted([1, *(2**n for n in range(60))])


def test_without_memory_for_a_thread_no_child_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(MemoryError, match="thread"):
        _python("print(1)")


def test_constants_that_are_signalling_nans_are_compared_without_a_warning() -> None:
    text = "HloModule m\nENTRY e { k = f32[2] constant({1, nan(0x1)})\n x = f32[2] parameter(0)\n ROOT y = add(x, k) }"
    module = xb.parse_hlo(text)
    assert xb.equivalent(module, module).kind != "different"


@pytest.mark.slow
def test_some_texts_of_each_kind() -> None:
    counts, wrong = grown(range(len(growth.KINDS)))
    assert not wrong
    assert counts.total() == len(growth.KINDS)


def test_arrays_go_through_a_pipe() -> None:
    """A pipe has no position, for which NumPy asks a file."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        with os.fdopen(writing, "wb") as target:
            send(target, {"kind": "run"}, {0: [np.arange(3, dtype=np.float32)]})
        told, leaves = receive(source)
    assert told["kind"] == "run"
    np.testing.assert_array_equal(leaves[0][0], np.arange(3, dtype=np.float32), strict=True)


def test_mutated_bytecode_is_read_or_refused() -> None:
    pytest.importorskip("jaxlib")
    seeds = bytecode.artifacts()
    assert bytecode.verdict(seeds[0]) == "read"
    assert len({bytecode.mutant(seed, seeds) for seed in range(200)}) > 190
    assert {bytecode.verdict(bytecode.mutant(seed, seeds)) for seed in range(4)} <= {"read", "syntax", "overflow"}
