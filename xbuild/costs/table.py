"""The page that a person reads of a `Cost`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shape_inference import AnyShape, Shape
from shape_inference.escaping import in_line

from .memory import Memory
from .report import By, Cost, CostRow, rows_of

_UNITS = ("", "k", "M", "G", "T", "P", "E")
_WIDEST = 48


def short(number: float, unit: str = "") -> str:
    """A number in three figures with a prefix of a power of 1000: `1.23 G`.

    >>> short(1234567, "FLOP")
    '1.23 MFLOP'
    """
    place = 0
    while number >= 999.5 and place < len(_UNITS) - 1:
        number, place = number / 1000, place + 1
    return f"{number:.3g} {_UNITS[place]}{unit}".rstrip()


def page(cost: Cost, by: By | None, top: int) -> Iterator[str]:
    """The lines of the page."""
    yield from _totals(cost)
    if by is not None:
        yield from _sums(cost, by, top)
        return
    yield from _largest(cost, top)
    if cost.collectives:
        yield from _collectives(cost, top)
    yield from _alive(cost.memory, top)


def _totals(cost: Cost) -> Iterator[str]:
    devices = _count(cost.num_devices, "device")
    mesh = f", mesh {' x '.join(f'{name}={size}' for name, size in cost.mesh.sizes)}" if cost.mesh else ""
    yield f"{in_line(cost.name)}: {devices}{mesh if cost.num_devices > 1 else ''}"
    yield f"  each device  {short(cost.flops, 'FLOP')}, {short(cost.transcendentals)} transcendentals"
    yield f"  memory       {short(cost.bytes, 'B')} read and written{_intensity(cost)}"
    memory = cost.memory
    order = "a compiler's order" if memory.is_scheduled else "the recorded order"
    where = f" on device {cost.memory_device}" if len(cost.programs) > 1 else ""
    yield f"  at most      {short(memory.peak, 'B')} alive at once{where}, in {order}: {_kinds(memory)}"
    if cost.collectives:
        steps = f"{short(cost.steps)} step{'s' * (cost.steps != 1)}"
        yield f"  links        {short(cost.link_bytes, 'B')} of {_count(len(cost.collectives), 'collective')}, {steps}"
    if not cost.is_known:
        yield "  a loop whose trips are unknown is counted as one trip"


def _kinds(memory: Memory) -> str:
    """`1.02 kB arguments, 1.02 kB outputs, 1.02 kB temporaries`"""
    parts = {name: getattr(memory, name) for name in ("arguments", "outputs", "temporaries")}
    aliased = f" ({short(memory.aliased, 'B')} in arguments)" if memory.aliased else ""
    return ", ".join(
        f"{short(size, 'B')} {name}{aliased if name == 'outputs' else ''}" for name, size in parts.items() if size
    )


def _alive(memory: Memory, top: int) -> Iterator[str]:
    """The largest arrays that are alive where the program takes the most."""
    place = memory.curve.instructions[memory.peak_position] if memory.alive else None
    if place is not None:
        yield ""
        yield f"alive at {place.name} ({min(top, len(memory.alive))} of {len(memory.alive)})"
        yield from columns(
            ("instruction", "part", "bytes", "kind", "shape", "source"),
            (
                (each.instruction.name, ",".join(map(str, each.index)), short(each.bytes, "B"), each.kind,
                 shown(each.shape), str(each.source or ""))
                for each in memory.alive[:top]
            ),
        )  # fmt: skip


def _intensity(cost: Cost) -> str:
    return f", {cost.flops / cost.bytes:.3g} FLOP for each byte" if cost.bytes else ""


def _largest(cost: Cost, top: int) -> Iterator[str]:
    rows = sorted((row for row in rows_of(cost) if row.flops), key=lambda row: -row.flops)
    if rows:
        yield ""
        yield f"largest by FLOPs ({min(top, len(rows))} of {len(rows)})"
        yield from columns(
            ("instruction", "times", "FLOPs", "", "shape", "scope"),
            (
                (*_named(row), short(row.flops, "FLOP"), _part(row.flops, cost.flops), _shape(row), row.scope)
                for row in rows[:top]
            ),
        )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + "s" * (number != 1)


def _shape(row: CostRow) -> str:
    """The shape of the result without its layout."""
    return shown(row.instruction.shape)


def shown(shape: AnyShape) -> str:
    """A shape without its layout."""
    return f"{shape.dtype}[{','.join(map(str, shape.dims))}]" if isinstance(shape, Shape) else "(...)"


def _named(row: CostRow) -> tuple[str, str]:
    return row.instruction.name, f"{row.times}" + "?" * (not row.is_known)


def _part(some: int, whole: int) -> str:
    return f"{some / whole:.1%}" if whole else ""


def _collectives(cost: Cost, top: int) -> Iterator[str]:
    """Collectives of one kind, along the same axes, together."""
    kinds: dict[tuple[str, str], list[CostRow]] = {}
    for row in rows_of(cost):
        if row.collective is not None:
            kinds.setdefault((row.op, str(row.collective).partition(" ")[2]), []).append(row)
    order = sorted(kinds.items(), key=lambda item: -sum(row.link_bytes for row in item[1]))
    if order:
        yield ""
        yield f"collectives ({min(top, len(order))} of {_count(len(order), 'kind')})"
        yield from columns(
            ("op", "groups", "executed", "on a link", "steps"), (_kind(*key, rows) for key, rows in order[:top])
        )


def _kind(op: str, groups: str, rows: Sequence[CostRow]) -> tuple[str, ...]:
    sent, steps = sum(row.link_bytes for row in rows), sum(row.steps for row in rows)
    return op, groups, str(sum(row.times for row in rows)), short(sent, "B"), short(steps)


def _sums(cost: Cost, by: By, top: int) -> Iterator[str]:
    sums = cost.by(by)
    yield ""
    yield f"by {by} ({min(top, len(sums))} of {len(sums)})"
    yield from columns(
        (by, "instructions", "FLOPs", "transcendentals", "memory", "on a link"),
        (
            (each.name, str(each.rows), short(each.flops, "FLOP"), short(each.transcendentals),
             short(each.bytes, "B"), short(each.link_bytes, "B"))
            for each in sums[:top]
        ),
    )  # fmt: skip


def columns(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Rows of words under their heads, each column as wide as its widest word; a long word keeps its end, an empty
    column is left out."""
    words = [tuple(_cut(in_line(word)) for word in row) for row in rows]
    used = [place for place in range(len(heads)) if any(row[place] for row in words)]
    table = [tuple(row[place] for place in used) for row in (heads, *words)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def _cut(word: str) -> str:
    return word if len(word) <= _WIDEST else f"…{word[1 - _WIDEST :]}"
