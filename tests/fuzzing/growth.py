"""Small texts that could cost far more than their length: shared types, chains and fans of users, calls, long tokens.

Each text is read and, if it is a program, goes through several passes. Only the result or a refusal may come of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import numpy as np

import interpreter
import xbuild as xb
from interpreter import Limits
from tests.fuzzing.verdict import refused_well
from tests.support.hostile import DOUBLED, doubling, shared_tuples
from xbuild.files.arrays import random_arguments

SECONDS = 5
NAME = "fuzzed.hlo"
LIMITS = Limits(seconds=0.05, bytes=1 << 26)
PUMPS = (
    " ", "\t", "\n", "a", "0", '"', "'", "\\", '\\"', "/*", "//", "/*/ ", "{", "}", "(", ")", "[", "]", "<", ">", ",",
    "a,", "0,", "a ", "=", "a=", "%a", "#a", "@a", "!a", "-", "1x", "?x", "0_0x", "()", "{}", "[]", '"a', '"a"', "'a'",
    "jit(", "/jit(", "vjp(", "mesh[", "sdy.mesh<[", "devices=[", "tensor<", "tensor<?x", "tensor<1x", "loc(", "#a.b<",
    "dialect_resources:", "{-#", "#-}", "nan(0x", "1>", "E(", "{1:(", "V:(", "<=", "->", "//\n", "a\n", "\\a", "é",
)  # fmt: skip
_HLO = (
    'HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, frontend_attributes={a="b"}\n'
    "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "ENTRY e { x = f32[2]{0} parameter(0), sharding={devices=[2]<=[2]}\n k = f32[2] constant({1, nan(0x1)})\n"
    ' y = f32[2] negate(x), metadata={op_name="jit(f)/neg" source_line=1}, backend_config={"a":"b"},'
    ' frontend_attributes={xbuild.variance="{V:i}"}\n'
    " z = f32[2] custom-call(x), custom_call_target=\"lapack\", backend_config=\"{a = 1 : ui8}\"\n"
    " ROOT r = f32[2] all-reduce(y), replica_groups={{0,1}}, to_apply=add /* end */ }\n"
)  # fmt: skip
_MLIR = (
    '#a = [1]\n!t = tensor<2xf32>\n#loc = loc("f.py":1:2)\nmodule @m attributes {mhlo.num_partitions = 2 : i32} {\n'
    ' sdy.mesh @mesh = <["x"=2]>\n func.func public @main(%arg0: !t {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},'
    " %arg1: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> !t {\n"
    ' %0 = stablehlo.custom_call @f(%arg0) {a = #a, b = {c = "d"}, backend_config = "e"} : (!t) -> !t loc(#loc)\n'
    " %1 = stablehlo.constant dense_resource<r> : tensor<1xf32>\n"
    ' return %0 : !t\n } loc(callsite("g"(#loc) at #loc))\n}\n'
    '{-#\n  dialect_resources: {\n    builtin: {\n      r: "0x040000000000803F"\n    }\n  }\n#-}\n'
)
_UNARY = {"f32": ("negate", "abs", "cosine", "copy", "sqrt"), "pred": ("not", "copy"), "s32": ("negate", "not", "copy")}
_BINARY = {"f32": ("add", "multiply", "subtract", "maximum"), "pred": ("and", "or", "xor"), "s32": ("add", "multiply")}


def text(seed: int) -> str:
    """The text of a seed; the kinds take turns."""
    chance = random.Random(seed)
    return KINDS[seed % len(KINDS)](chance)


def verdict(given: str, seed: int = 0) -> str:
    """What a text comes to: the kind of its refusal, or that it was read and went through some passes."""
    try:
        module = xb.parse_stablehlo(given, NAME) if "func.func" in given else xb.parse_hlo(given, NAME)
    except xb.HloParseError as refusal:
        refused_well(refusal, given)
        return refusal.kind
    said = [_refusal(each, module) for each in random.Random(seed).sample(PASSES, 2)]
    assert max(map(len, said)) < 100_000, "a refusal that is too long"
    return "read"


def _refusal(step: Callable[[xb.Module], object], module: xb.Module) -> str:
    """What a pass says where it refuses a module; nothing where it does not."""
    try:
        step(module)
    except (xb.XbuildError, interpreter.Stopped) as refusal:
        return str(refusal)
    return ""


def _run(module: xb.Module) -> None:
    parameters = [p.shape for p in module.entry.parameters]
    devices = module.num_replicas * module.num_partitions
    if devices <= 8 and sum(shape.bytes for shape in parameters) < 1 << 20:
        arguments = random_arguments(0, [parameters] * devices)
        with np.errstate(all="ignore"):
            interpreter.execute(module, arguments, limits=LIMITS)


def _partitioned(module: xb.Module) -> None:
    if module.num_partitions > 1:
        xb.shard.partition(xb.shard.propagate(module))


def _derived(module: xb.Module) -> None:
    with suppress(TypeError):
        xb.grad(module.entry)


PASSES: tuple[Callable[[xb.Module], object], ...] = (
    xb.check,
    xb.cost,
    lambda module: xb.viz(module).render("svg"),
    lambda module: xb.viz(module).render("mermaid"),
    lambda module: xb.check(module).to_dict(),
    lambda module: xb.parse_hlo(module.to_hlo()),
    lambda module: module.to_stablehlo(),
    lambda module: xb.equivalent(module, module, limits=LIMITS),
    lambda module: xb.diff(module, module),
    _run,
    _partitioned,
    _derived,
)


def _body(chance: random.Random, lines: list[str], parameters: str = "f32[4]") -> str:
    begin = [f" x = {parameters} parameter(0)", f" w = {parameters} parameter(1)"]
    return (
        "HloModule m\nor { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT c = pred[] or(a, b) }\n"
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        "ENTRY e {\n" + "\n".join([*begin, *lines[:-1], " ROOT" + lines[-1]]) + "\n}\n"
    )


def chains(chance: random.Random) -> str:
    """One op after the other, with both operands the same or not, through all element types, to a reduction."""
    lines, value, kind = [], "x", "f32"
    if chance.random() < 0.5:
        lines, value = [" p = f32[4] multiply(x, w)", " s = f32[4] add(p, w)"], "s"
    doubles = chance.random()
    for number in range(chance.choice((40, 70, 70, 70, 150, 400, 800))):
        after = "pred" if kind == "f32" and chance.random() < 0.02 else kind
        if after != kind:
            lines.append(f" t{number} = pred[4] compare({value}, {value}), direction=LT")
        elif chance.random() < doubles:
            lines.append(f" t{number} = {kind}[4] {chance.choice(_BINARY[kind])}({value}, {value})")
        else:
            lines.append(f" t{number} = {kind}[4] {chance.choice(_UNARY[kind])}({value})")
        value, kind = f"t{number}", after
    zero, apply = ("false", "or") if kind == "pred" else ("0", "add")
    lines.append(f" k = {kind}[] constant({zero})")
    lines.append(f" o = {kind}[] reduce({value}, k), dimensions={{0}}, to_apply={apply}")
    return _body(chance, lines)


def moves(chance: random.Random) -> str:
    """Ops that move elements, of extents that may be 0, one after the other and doubled."""
    extent, lines, value, rank = chance.choice((0, 0, 1, 4)), [], "x", 1
    first = f"f32[{extent}]"
    for number in range(chance.choice((30, 60, 400))):
        dims = f"f32[{extent}]" if rank == 1 else f"f32[{extent},1]"
        how = chance.choice(("concatenate", "reshape", "reverse", "tuple", "copy"))
        if how == "concatenate" and extent == 0:
            lines.append(f" t{number} = {dims} concatenate({value}, {value}), dimensions={{0}}")
        elif how == "reshape":
            rank = 3 - rank
            other = f"f32[{extent}]" if rank == 1 else f"f32[{extent},1]"
            lines.append(f" t{number} = {other} reshape({value})")
        elif how == "reverse":
            lines.append(f" t{number} = {dims} reverse({value}), dimensions={{0}}")
        elif how == "tuple":
            lines.append(f" u{number} = ({dims}, {dims}) tuple({value}, {value})")
            lines.append(f" t{number} = {dims} get-tuple-element(u{number}), index=1")
        else:
            lines.append(f" t{number} = {dims} copy({value})")
        value = f"t{number}"
    lines.append(f" o = {lines[-1].split(' = ')[1].split(' ')[0]} copy({value})")
    return _body(chance, lines, first)


def fans(chance: random.Random) -> str:
    """Values with very many users, and ops with very many operands."""
    count = chance.choice((50, 50, 50, 150, 500))
    lines = [f" t{n} = f32[4] {chance.choice(_UNARY['f32'])}({chance.choice('xw')})" for n in range(count)]
    operands = ", ".join(f"t{chance.randrange(count)}" for _ in range(count))
    shapes = ", ".join(["f32[4]"] * count)
    if chance.random() < 0.5:
        lines.append(f" o = ({shapes}) tuple({operands})")
    else:
        lines.append(f" o = f32[{4 * count}] concatenate({operands}), dimensions={{0}}")
    return _body(chance, lines)


def diamonds(chance: random.Random) -> str:
    """Each value of the two before it, or of any before it."""
    lines, values = [], ["x", "w"]
    near = chance.random() < 0.5
    for number in range(chance.choice((60, 60, 60, 150, 400))):
        among = values[-2:] if near else values
        lines.append(
            f" t{number} = f32[4] {chance.choice(_BINARY['f32'])}({chance.choice(among)}, {chance.choice(among)})"
        )
        values.append(f"t{number}")
    return _body(chance, lines)


def calls(chance: random.Random) -> str:
    """Computations that call each other twice."""
    leaf = chance.choice(("negate(x)", "all-reduce(x), to_apply=add, replica_groups={}"))
    header = ", replica_count=2" if "all-reduce" in leaf else ""
    how = chance.choice(("call",) if header else DOUBLED)
    return doubling(how, chance.randint(2, 60), leaf, header)


def tuples(chance: random.Random) -> str:
    return shared_tuples(chance.randint(1, 60))


def aliases(chance: random.Random) -> str:
    """Types and attributes that are made of the ones before them several times."""
    forms: tuple[Callable[[str], str], ...] = (
        lambda of: f"({of}) -> ({of})", lambda of: f"tuple<{of}>", lambda of: f"!stablehlo.future<{of}>",
        lambda of: f"[{of}]", lambda of: f"{{a = [{of}], b = [{of}]}}",
    )  # fmt: skip
    lines = ['#t0 = "a"', "!t0 = tensor<4xf32>"]
    letter = chance.choice("!#")
    form = chance.choice(forms[:3] if letter == "!" else forms[3:])
    for number in range(1, chance.randint(2, 60)):
        before = [f"{letter}t{max(0, number - chance.choice((1, 1, 1, 2)))}" for _ in range(chance.randint(1, 3))]
        lines.append(f"{letter}t{number} = {form(', '.join(before))}")
    last = lines[-1].split(" = ")[0]
    uses = chance.randint(1, 40)
    if letter == "#":
        body = "".join(
            f' %{n} = "stablehlo.custom_call"(%arg0) {{call_target_name="x", backend_config={last},'
            f" mhlo.frontend_attributes={{a={last}}}}} : (tensor<4xf32>) -> tensor<4xf32>\n"
            for n in range(uses)
        )
        return "\n".join([*lines, _function(body)])
    more = "".join(f", %arg{n}: {last}" for n in range(1, uses))
    return "\n".join([*lines, _function("", more)])


def _function(body: str, more: str = "", attributes: str = "") -> str:
    return (
        f"module @m {attributes}{{\n func.func public @main(%arg0: tensor<4xf32>{more}) -> tensor<4xf32> {{\n{body}"
        " return %arg0 : tensor<4xf32>\n }\n}\n"
    )


def extents(chance: random.Random) -> str:
    """Huge ranks, extents and element counts, in both languages."""
    rank = chance.choice((1, 2, 3, 20, 64, 65, 300, 2000))
    sizes = [chance.choice((0, 1, 2, 2**20, 2**31, 2**62, 99999999999999999)) for _ in range(rank)]
    if chance.random() < 0.5:
        shape = f"{chance.choice(('f32', 's4', 'c128', 'pred'))}[{','.join(map(str, sizes))}]"
        return f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n ROOT y = {shape} copy(x) }}\n"
    shape = f"tensor<{''.join(f'{size}x' for size in sizes)}f32>"
    return _function(f" %0 = stablehlo.negate %arg1 : {shape}\n", f", %arg1: {shape}")


def meshes(chance: random.Random) -> str:
    """Meshes of few, many and too many devices and axes."""
    count = chance.choice((1, 2, 3, 20, 64, 65, 200))
    sizes = [chance.choice((1, 1, 2, 4, 1024, 2**20, 10**9)) for _ in range(count)]
    axes = ", ".join(f'"a{n}"={size}' for n, size in enumerate(sizes))
    attributes = f"attributes {{mhlo.num_partitions={chance.choice((1, 8, 64))}:i32}} "
    given = ' {sdy.sharding=#sdy.sharding<@mesh, [{"a0"}, {}]>}'
    return (
        f"module @m {attributes}{{\n sdy.mesh @mesh = <[{axes}]>\n"
        f" func.func public @main(%arg0: tensor<64x64xf32>{given}) -> tensor<64x64xf32> {{\n"
        " %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims=[1] x [0] : (tensor<64x64xf32>,"
        " tensor<64x64xf32>) -> tensor<64x64xf32>\n return %0 : tensor<64x64xf32>\n }\n}\n"
    )


def tokens(chance: random.Random) -> str:
    """A usual text with one thing repeated very often at any place of it."""
    whole = chance.choice((_HLO, _MLIR))
    pump = chance.choice(PUMPS) + (chance.choice(PUMPS) if chance.random() < 0.3 else "")
    place = chance.randrange(len(whole))
    return whole[:place] + pump * (chance.choice((2_000, 2_000, 10_000)) // len(pump)) + whole[place:]


KINDS: tuple[Callable[[random.Random], str], ...] = (
    tokens, aliases, chains, tokens, extents, tuples, tokens, meshes, calls, tokens, moves, diamonds, tokens, fans,
)  # fmt: skip
