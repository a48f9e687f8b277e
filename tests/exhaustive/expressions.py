"""Random scalars that are computed from ids, constants and what the pool holds, by every kind of integer operation."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder, tabled
from .program import Instruction

INTEGERS = ("s32", "s32", "s32", "u32", "u32", "s8", "u8", "s64", "u16")
ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum")
BITWISE = ("and", "or", "xor")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")

Maker = Callable[[Builder, str, int], Instruction]


def integer(b: Builder, of: str, depth: int) -> Instruction:
    """A scalar of an integer type."""
    if depth <= 0:
        return _leaf(b, of)
    return b.rng.choice(MAKERS)(b, of, depth - 1)


def _leaf(b: Builder, of: str) -> Instruction:
    draw = b.rng.random()
    if draw < 0.3 and b.pool:
        return as_integer(b, b.rng.choice(b.pool), of)
    if draw < 0.8:
        return b.convert(own_id(b), of)
    return b.constant(b.rng.choice((0, 1, 1, 2, 3, 4, 7)), of)


def own_id(b: Builder) -> Instruction:
    """The replica or the partition, or the number of the device that both are."""
    replicas, partitions = b.module.replicas, b.module.partitions
    if partitions == 1 or (replicas > 1 and b.rng.random() < 0.3):
        return b.emit("replica-id", "u32[]")
    mine = b.emit("partition-id", "u32[]")
    if replicas == 1 or b.rng.random() < 0.4:
        return mine
    replica = b.emit("replica-id", "u32[]")
    return b.binary("add", b.binary("multiply", replica, b.constant(partitions, "u32")), mine)


def as_integer(b: Builder, a: Instruction, of: str) -> Instruction:
    return b.convert(a, of)


def _small(b: Builder, of: str, least: int = 0, most: int = 3) -> Instruction:
    return b.constant(b.rng.randint(least, most), of)


def _arithmetic(b: Builder, of: str, depth: int) -> Instruction:
    return b.binary(b.rng.choice(ARITHMETIC), integer(b, of, depth), integer(b, of, depth - 1))


def _bitwise(b: Builder, of: str, depth: int) -> Instruction:
    return b.binary(b.rng.choice(BITWISE), integer(b, of, depth), _small(b, of))


def _divided(b: Builder, of: str, depth: int) -> Instruction:
    return b.binary(b.rng.choice(("divide", "remainder")), integer(b, of, depth), _small(b, of, 1))


def _shifted(b: Builder, of: str, depth: int) -> Instruction:
    way = b.rng.choice(("shift-left", "shift-right-logical", "shift-right-arithmetic"))
    return b.binary(way, integer(b, of, depth), _small(b, of, 0, 2))


def _power(b: Builder, of: str, depth: int) -> Instruction:
    return b.binary("power", integer(b, of, depth), _small(b, of, 0, 3))


def _unary(b: Builder, of: str, depth: int) -> Instruction:
    opcodes = ["not", "popcnt", "count-leading-zeros", "copy"] + ["negate", "abs", "sign"] * (of[0] == "s")
    return b.unary(b.rng.choice(opcodes), integer(b, of, depth))


def _converted(b: Builder, of: str, depth: int) -> Instruction:
    return b.convert(integer(b, b.rng.choice(INTEGERS), depth), of)


def _selected(b: Builder, of: str, depth: int) -> Instruction:
    return b.emit("select", f"{of}[]", [predicate(b, depth), integer(b, of, depth), integer(b, of, 0)])


def _predicate(b: Builder, of: str, depth: int) -> Instruction:
    return b.convert(predicate(b, depth), of)


def _clamped(b: Builder, of: str, depth: int) -> Instruction:
    low = b.rng.randint(0, 1)
    return b.emit(
        "clamp", f"{of}[]", [b.constant(low, of), integer(b, of, depth), b.constant(low + b.rng.randint(0, 2), of)]
    )


def _float(b: Builder, of: str, depth: int) -> Instruction:
    a = b.convert(integer(b, of, depth), "f32")
    for _ in range(b.rng.randint(1, 3)):
        draw = b.rng.random()
        if draw < 0.5:
            opcode = b.rng.choice(("multiply", "add", "divide", "subtract", "maximum"))
            a = b.binary(opcode, a, b.constant(b.rng.choice((0.5, 1.5, 2.0, 0.25)), "f32"))
        elif draw < 0.65:
            a = b.unary("sqrt", b.unary("abs", a))
        else:
            a = b.unary(b.rng.choice(("floor", "ceil", "round-nearest-even", "negate", "abs", "sign")), a)
    return b.convert(a, of)


def _table(b: Builder, of: str, depth: int) -> Instruction:
    numbers = [b.rng.randint(0, 3) for _ in range(b.rng.randint(2, 6))]
    return tabled(b, numbers, integer(b, b.rng.choice(("s32", "u32")), depth), of)


def _bits(b: Builder, of: str, depth: int) -> Instruction:
    other = {"s": "u", "u": "s"}[of[0]] + of[1:]
    if of in ("s32", "u32") and b.rng.random() < 0.3:
        number = b.convert(integer(b, "s32", depth), "f32")
        raw = b.emit("bitcast-convert", f"{of}[]", [number])
        return b.binary("shift-right-logical", raw, b.constant(23, of))
    if other not in INTEGERS:
        return integer(b, of, depth)
    return b.emit("bitcast-convert", f"{of}[]", [integer(b, other, depth)])


def _vector(b: Builder, of: str, depth: int) -> Instruction:
    """A scalar against all numbers, reduced; or one of several put side by side."""
    a = integer(b, of, depth)
    if b.rng.random() < 0.5:
        size = b.rng.randint(2, 5)
        numbers = b.emit("iota", f"{of}[{size}]", (), ", iota_dimension=0", given=size)
        same = b.compare(b.rng.choice(DIRECTIONS), b.broadcast(a, size), numbers)
        if b.rng.random() < 0.5:
            return b.convert(b.reduce(same, "or" if b.rng.random() < 0.5 else "and", b.rng.randint(0, 1)), of)
        return b.reduce(b.convert(same, of), "add", 0)
    parts = [b.reshape(each, "[1]") for each in (a, integer(b, of, 0), _small(b, of))]
    whole = b.concatenate(parts)
    if b.rng.random() < 0.4:
        whole = b.emit("reverse", whole.shape, [whole], ", dimensions={0}")
    if b.rng.random() < 0.5:
        return b.reduce(whole, b.rng.choice(("add", "maximum", "minimum", "xor")), 0)
    start = b.rng.randint(0, 2)
    return b.reshape(b.slice(whole, start, start + 1), "[]")


def _called(b: Builder, of: str, depth: int) -> Instruction:
    operands = [integer(b, of, depth - 1), integer(b, "s32", 0)]

    def body(inside: Builder, *parameters: Instruction) -> Instruction:
        inside.pool = [*parameters]
        return integer(inside, of, max(depth, 1))

    return b.traced(b.rng.choice(("fusion", "call")), operands, body)


def _barrier(b: Builder, of: str, depth: int) -> Instruction:
    return b.emit("opt-barrier", f"{of}[]", [integer(b, of, depth)])


def _loop(b: Builder, of: str, depth: int) -> Instruction:
    """A loop that counts to a small number and gathers something on its way."""
    limit = b.binary("and", integer(b, "s32", depth), b.constant(3, "s32"))
    state = b.tuple([b.constant(0, "s32"), limit, integer(b, of, 0)])
    shapes = ["s32[]", "s32[]", f"{of}[]"]
    test, step = b.inner("holds"), b.inner("next")
    now = test.parameter(0, state.shape)
    condition = test.build(test.compare("LT", test.element(now, 0, "s32[]"), test.element(now, 1, "s32[]")))
    now = step.parameter(0, state.shape)
    count, most, total = (step.element(now, n, shape) for n, shape in enumerate(shapes))
    more = step.binary(b.rng.choice((*ARITHMETIC, *BITWISE)), total, step.convert(count, of))
    following = step.tuple([step.binary("add", count, step.constant(1, "s32")), most, more])
    body = step.build(following)
    attributes = f", condition={condition.name}, body={body.name}"
    return b.element(b.emit("while", state.shape, [state], attributes, inner=[condition, body]), 2, f"{of}[]")


def _branch(b: Builder, of: str, depth: int) -> Instruction:
    """A conditional that only computes."""
    index = index_of(b, integer(b, "s32", depth), 3)
    operands = [integer(b, of, 0) for _ in range(3)]
    branches = []
    for operand in operands:
        inside = b.inner("chosen")
        parameter = inside.parameter(0, operand)
        inside.pool = [parameter]
        branches.append(inside.build(integer(inside, of, 1)))
    names = ", ".join(each.name for each in branches)
    return b.emit("conditional", f"{of}[]", [index, *operands], f", branch_computations={{{names}}}", inner=branches)


def predicate(b: Builder, depth: int) -> Instruction:
    """A comparison, or two that are joined."""
    of = b.rng.choice(INTEGERS)
    if depth > 0 and b.rng.random() < 0.25:
        joined = b.binary(b.rng.choice(BITWISE), predicate(b, depth - 1), predicate(b, 0))
        return b.unary("not", joined) if b.rng.random() < 0.3 else joined
    left = integer(b, of, depth)
    right = left if b.rng.random() < 0.05 else _small(b, of) if b.rng.random() < 0.7 else integer(b, of, 0)
    return b.compare(b.rng.choice(DIRECTIONS), left, right)


def index_of(b: Builder, a: Instruction, count: int) -> Instruction:
    """A number of s32 in 0..count-1, out of any integer of s32."""
    draw = b.rng.random()
    if count == 2 and draw < 0.5:
        return b.binary("and", a, b.constant(1, "s32"))
    if draw < 0.7:
        unsigned = b.convert(a, "u32")
        return b.convert(b.binary("remainder", unsigned, b.constant(count, "u32")), "s32")
    return b.emit("clamp", "s32[]", [b.constant(0, "s32"), a, b.constant(count - 1, "s32")])


MAKERS: tuple[Maker, ...] = (
    _arithmetic, _arithmetic, _bitwise, _bitwise, _divided, _divided, _shifted, _shifted, _power, _unary, _unary,
    _converted, _selected, _selected, _predicate, _predicate, _clamped, _float, _table, _table, _bits, _vector,
    _vector, _called, _called, _barrier, _loop, _branch,
)  # fmt: skip
