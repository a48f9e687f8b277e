"""Small texts of programs that are huge in one respect: call paths, leaves, elements, devices, depth, length."""

from __future__ import annotations

from collections.abc import Callable, Iterator

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
ALL_REDUCE = "all-reduce(x), to_apply=add, replica_groups={}"
TRIPS = 1000


def module(*parts: str, header: str = "") -> str:
    return f"HloModule m{header}\n{ADD}{''.join(parts)}"


def entry(*lines: str) -> str:
    body = "\n ".join([*lines[:-1], f"ROOT {lines[-1]}"])
    return f"ENTRY e {{ x = f32[] parameter(0)\n {body} }}\n"


def shared_tuples(levels: int = 40) -> str:
    """A tuple of 2^levels leaves."""
    lines = ["t0 = tuple(x, x)", *(f"t{n} = tuple(t{n - 1}, t{n - 1})" for n in range(1, levels))]
    return module(entry(*lines, f"n = get-tuple-element(t{levels - 1}), index=0"))


def nested_tuples(levels: int = 2000) -> str:
    """A tuple in a tuple in a tuple."""
    return module(entry("t0 = tuple(x)", *(f"t{n} = tuple(t{n - 1})" for n in range(1, levels))))


_CALLS: dict[str, Callable[[int, str, str], str]] = {
    "call": lambda n, of, to: f"{to} = f32[] call({of}), to_apply=fn{n}",
    "fusion": lambda n, of, to: f"{to} = f32[] fusion({of}), kind=kLoop, calls=fn{n}",
    "map": lambda n, of, to: f"{to} = f32[] map({of}), dimensions={{}}, to_apply=fn{n}",
    "conditional": lambda n, of, to: (
        f"{to}z = f32[] constant(0)\n {to}p = pred[] compare({of}, {to}z), direction=GT\n "
        f"{to} = f32[] conditional({to}p, {of}, {of}), true_computation=fn{n}, false_computation=fn{n}"
    ),
    "while": lambda n, of, to: f"{to} = f32[] while({of}), condition=below, body=fn{n}",
    "async": lambda n, of, to: (
        f"{to}s = ((f32[]), f32[], u32[]) async-start({of}), calls=fn{n}\n {to} = f32[] async-done({to}s)"
    ),
}
DOUBLED = ("call", "fusion", "map", "conditional", "while")  # each async-start has a computation of its own
_BELOW = "below { x = f32[] parameter(0)\n z = f32[] constant(9)\n ROOT p = pred[] compare(x, z), direction=LT }\n"


def doubling(how: str, levels: int, leaf: str = "negate(x)", header: str = "") -> str:
    """f1 calls f0 twice, f2 calls f1 twice, and so on."""
    parts = [_BELOW, f"fn0 {{ x = f32[] parameter(0)\n ROOT r = f32[] {leaf} }}\n"]
    for n in range(1, levels):
        first, second = _CALLS[how](n - 1, "x", "a"), _CALLS[how](n - 1, "a", "b")
        *before, last = second.split("\n ")
        lines = "\n ".join([first, *before, f"ROOT {last}"])
        parts.append(f"fn{n} {{ x = f32[] parameter(0)\n {lines} }}\n")
    *before, last = _CALLS[how](levels - 1, "x", "y").split("\n ")
    return module(*parts, entry(*before, last), header=header)


def reducing(levels: int = 60) -> str:
    """A reducer that calls the one before it twice."""
    parts = []
    for n in range(levels):
        of = "add" if not n else f"g{n - 1}"
        parts.append(
            f"g{n} {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] call(a, b), to_apply={of}\n"
            f" ROOT d = f32[] call(c, b), to_apply={of} }}\n"
        )
    last = f"ROOT r = f32[] reduce(v, z), dimensions={{0}}, to_apply=g{levels - 1}"
    return module(*parts, f"ENTRY e {{ v = f32[9] parameter(0)\n z = f32[] constant(0)\n {last} }}\n")


def nested_loops(levels: int = 30, header: str = ", replica_count=2") -> str:
    """Loops of 1000 trips one inside another, around a collective."""
    parts = []
    for n in range(levels):
        inner = "all-reduce(z), to_apply=sum, replica_groups={}" if not n else f"while(t0), condition=c, body=b{n - 1}"
        shape = "s64[]" if not n else "(s64[])"
        parts.append(
            f"b{n} {{ p = (s64[]) parameter(0)\n i = s64[] get-tuple-element(p), index=0\n o = s64[] constant(1)\n"
            f" z = s64[] constant(0)\n t0 = (s64[]) tuple(z)\n w = {shape} {inner}\n s = s64[] add(i, o)\n"
            " ROOT t = (s64[]) tuple(s) }\n"
        )
    total = "sum { a = s64[] parameter(0)\n b = s64[] parameter(1)\n ROOT c = s64[] add(a, b) }\n"
    test = (
        f"c {{ p = (s64[]) parameter(0)\n i = s64[] get-tuple-element(p), index=0\n n = s64[] constant({TRIPS})\n"
        " ROOT l = pred[] compare(i, n), direction=LT }\n"
    )
    start = "z = s64[] constant(0)", "t = (s64[]) tuple(z)", f"w = (s64[]) while(t), condition=c, body=b{levels - 1}"
    return module(total, test, *parts, entry(*start), header=header)


def chain(how: str, length: int = 20_000) -> str:
    """A computation that calls one that calls one, and so on."""
    parts = [_BELOW, "fn0 { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\n"]
    for n in range(1, length):
        *before, last = _CALLS[how](n - 1, "x", "a").split("\n ")
        parts.append("\n ".join([f"fn{n} {{ x = f32[] parameter(0)", *before, f"ROOT {last} }}\n"]))
    *before, last = _CALLS[how](length - 1, "x", "y").split("\n ")
    return module(*parts, entry(*before, last))


def devices(header: str, collective: str = ALL_REDUCE) -> str:
    return module(entry(f"r = f32[] {collective}"), header=header)


def apart(count: int = 50_000) -> str:
    """All but one of the devices wait for the one that does not come."""
    parts = "f { x = f32[] parameter(0)\n ROOT r = f32[] all-reduce(x), to_apply=add, replica_groups={} }\n"
    quiet = "g { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\n"
    way = "conditional(p, x, x), true_computation=g, false_computation=f"
    lines = (
        "i = u32[] replica-id()",
        "z = u32[] constant(7)",
        "p = pred[] compare(i, z), direction=EQ",
        f"r = f32[] {way}",
    )
    return module(parts, quiet, entry(*lines), header=f", replica_count={count}")


def of_arrays(*lines: str) -> str:
    return module(entry(*lines))


def straight(length: int = 100_000) -> str:
    """One op after the other."""
    lines = ["v0 = f32[] negate(x)", *(f"v{n} = f32[] add(v{n - 1}, x)" for n in range(1, length))]
    return module(entry(*lines))


def named(length: int = 1_000_000) -> str:
    name = "n" * length
    return module(entry(f"{name} = f32[] negate(x)", f"r = f32[] add({name}, x)"))


def parameters(count: int = 30_000) -> str:
    lines = "\n ".join(f"p{n} = f32[] parameter({n})" for n in range(count))
    return module(f"ENTRY e {{ {lines}\n ROOT r = f32[] add(p0, p{count - 1}) }}\n")


def constant(count: int = 3_000_000) -> str:
    return module(
        entry(f"k = f32[{count}] constant({{{','.join(['1'] * count)}}})", "r = f32[1] slice(k), slice={[0:1]}")
    )


def constants(count: int = 20_000) -> str:
    """Deep braces of many small arrays."""
    return module(
        entry(*(f"k{n} = f32[2,2] constant({{{{1,2}},{{3,{n}}}}})" for n in range(count)), "r = f32[] negate(x)")
    )


def nested_braces(depth: int = 100_000) -> str:
    return module(entry(f"k = f32[1] constant({'{' * depth}1{'}' * depth})"))


def inline(depth: int = 5000) -> str:
    """A computation in braces in the attribute of an op of a computation in braces."""
    inner = "fn0"
    for n in range(depth):
        inner = f"{{ x{n} = f32[] parameter(0)\n ROOT y{n} = f32[] call(x{n}), to_apply={inner} }}"
    return module(
        "fn0 { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\n", entry(f"r = f32[] call(x), to_apply={inner}")
    )


_BIG = 4_611_686_018_427_387_904
_FAR = 10_000_000_000_000
_PLAN = "dimensions={}, slice={[0:1]}"
_WINDOW = f"size={_FAR} pad={_FAR}_0 stride={10 * _FAR}"


def of_window(line: str) -> str:
    lines = "p = f32[4] parameter(0)", "z = f32[] constant(0)", f"ROOT r = {line}"
    return module("ENTRY e { ", "\n ".join(lines), " }\n")


def dilated() -> str:
    """A kernel of three elements that are 10^13 apart."""
    window = f"size=3 pad={_FAR}_{_FAR} rhs_dilate={_FAR} stride={10 * _FAR}"
    lines = (
        "p = f32[1,4,1] parameter(0)", "k = f32[3,1,1] constant({{{1}},{{2}},{{3}}})",
        f"ROOT r = f32[1,1,1] convolution(p, k), window={{{window}}}, dim_labels=b0f_0io->b0f",
    )  # fmt: skip
    return module("ENTRY e { ", "\n ".join(lines), " }\n")


def programs() -> Iterator[tuple[str, Callable[[], str]]]:
    """Each with its name."""
    yield "tuple of 2^40", shared_tuples
    yield "tuples 2000 deep", nested_tuples
    for how in DOUBLED:
        yield f"2^60 by {how}", lambda how=how: doubling(how, 60)  # type: ignore[misc]
    yield "2^60 by reduce", reducing
    for how in ("call", "conditional", "while"):
        yield f"2^20 collectives by {how}", lambda how=how: doubling(how, 20, ALL_REDUCE, ", replica_count=2")  # type: ignore[misc]
    yield "2^60 collectives", lambda: doubling("call", 60, ALL_REDUCE, ", replica_count=2")
    yield (
        "2^60 beside a collective",
        lambda: (
            doubling("call", 60)
            .replace(
                "ENTRY e { x = f32[] parameter(0)\n",
                "ENTRY e { x0 = f32[] parameter(0)\n x = f32[] all-reduce(x0), to_apply=add\n",
            )
            .replace("HloModule m", "HloModule m, replica_count=2")
        ),
    )
    yield "30 loops", nested_loops
    for how in ("call", "fusion", "while"):
        yield f"chain of 20,000 by {how}", lambda how=how: chain(how)  # type: ignore[misc]
    yield "50,000 replicas", lambda: devices(", replica_count=50000")
    yield "50,000 partitions", lambda: devices(", num_partitions=50000", f"{ALL_REDUCE}, channel_id=1")
    yield (
        "25,000 groups",
        lambda: devices(", replica_count=50000", "all-reduce(x), to_apply=add, replica_groups=[25000,2]<=[50000]"),
    )
    yield "50,000 replicas, one apart", apart
    yield "window of 10^13", lambda: of_window(f"f32[1] reduce-window(p, z), window={{{_WINDOW}}}, to_apply=add")
    yield "padding of 10^13", lambda: of_window(f"f32[{_FAR + 4}] pad(p, z), padding={_FAR}_0")
    yield "dilated convolution", dilated
    yield (
        "2^62 elements",
        lambda: of_arrays(f"b = f32[{_BIG}] broadcast(x), dimensions={{}}", "n = f32[1] slice(b), slice={[0:1]}"),
    )
    yield (
        "iota of 2^62",
        lambda: of_arrays(f"b = s8[{_BIG}] iota(), iota_dimension=0", "n = s8[1] slice(b), slice={[0:1]}"),
    )
    yield "sum of 10^13", lambda: of_arrays(
        "b = f32[10000000000,1000] broadcast(x), dimensions={}", "z = f32[] constant(0)",
        "r = f32[] reduce(b, z), dimensions={0,1}, to_apply=add",
    )  # fmt: skip
    yield (
        "product of 10^15",
        lambda: of_arrays(
            "b = f32[20000,2000000000] broadcast(x), dimensions={}",
            "r = f32[20000,20000] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        ),
    )
    yield "100,000 ops", straight
    yield "a name of 1,000,000", named
    yield "30,000 parameters", parameters
    yield "3,000,000 numbers", constant
    yield "20,000 constants", constants
    yield "100,000 braces", nested_braces
    yield "5,000 inline", inline


PROGRAMS = dict(programs())
