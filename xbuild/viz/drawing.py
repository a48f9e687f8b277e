"""From a program to its picture."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from attrs import Factory, define

from shape_inference import AnyShape, TokenShape, TupleShape

from ..diagnostics import operand_labels
from ..graph import Computation, Instruction, Module, ModuleGroup
from ..op import OPS
from ..starts import origin, wrapped_in
from ..text.codecs import spellings
from ..text.literals import literal_text
from ..text.sugar import ASYNC, spelled_opcode, sugared
from ..text.writer import Writer
from .folding import Folding, simple_reducer
from .kinds import OTHER, Kind, kind_of
from .picture import Box, Cluster, Edge, Picture

_WIDTH = 44


def draw(program: Computation | Module | ModuleGroup) -> Picture:
    """The picture of a program; of a group of modules, each device's program and the channels between them."""
    if isinstance(program, ModuleGroup):
        return _group(program)
    entry = program.entry if isinstance(program, Module) else program
    drawing = _Drawing("")
    clusters = (drawing.cluster(entry, program.name),)
    return Picture(program.name, clusters, (*drawing.edges, *_channels([drawing])))


def _group(group: ModuleGroup) -> Picture:
    drawings, clusters = [], []
    for device, module in group.modules.items():
        drawing = _Drawing(f"d{device}/")
        drawings.append(drawing)
        clusters.append(drawing.cluster(module.entry, f"device {device}: {module.name}"))
    edges = tuple(edge for drawing in drawings for edge in drawing.edges)
    return Picture("group", tuple(clusters), (*edges, *_channels(drawings)))


def _channels(drawings: list[_Drawing]) -> Iterator[Edge]:
    """From each send to each recv of its channel: of another device in a group, of the same program in a module."""
    for sender in drawings:
        for receiver in drawings:
            if sender is receiver and len(drawings) > 1:
                continue
            for channel, tail in sender.sends:
                for other, head in receiver.recvs:
                    if channel == other:
                        yield Edge(tail, head, "channel", tooltip=f"channel {channel}")


@define
class _Drawing:
    """One device's program on its way into a picture; a computation that is called twice is drawn once."""

    prefix: str
    edges: list[Edge] = Factory(list)
    sends: list[tuple[int, str]] = Factory(list)
    recvs: list[tuple[int, str]] = Factory(list)
    _ids: dict[Computation, str] = Factory(dict)
    _taken: set[str] = Factory(set)

    def cluster(self, computation: Computation, title: str, role: str = "", caller: str = "") -> Cluster:
        self._ids[computation] = self._fresh(computation.name)
        folding = Folding(computation)
        boxes = [self._stranger(computation, each) for each in _strangers(computation)]
        clusters: list[Cluster] = []
        for instruction in folding.drawn():
            boxes.append(self._box(computation, instruction, folding))
            self._enter(computation, instruction, folding)
            clusters += self._regions(computation, instruction)
        return Cluster(self._ids[computation], title, tuple(boxes), tuple(clusters), role, caller, computation.name)

    def _fresh(self, name: str) -> str:
        name, count = f"{self.prefix}{name}", 0
        while (found := f"{name}.{count}" if count else name) in self._taken:
            count += 1
        self._taken.add(found)
        return found

    def _id(self, computation: Computation, instruction: Instruction) -> str:
        return f"{self._ids[computation]}/{instruction.name}"

    def _box(self, computation: Computation, instruction: Instruction, folding: Folding) -> Box:
        return Box(
            self._id(computation, instruction),
            instruction.name,
            _title(instruction),
            short_shape(instruction.shape),
            _kind(instruction),
            tuple(_details(instruction, folding)),
            tuple(_argument(operand, folding) for operand in instruction.operands),
            partial(_tooltip, instruction),
            instruction is computation.root,
            instruction.annotations.get("metadata", {}).get("op_name", ""),
            frozenset(folding.names(instruction)),
        )

    def _stranger(self, computation: Computation, instruction: Instruction) -> Box:
        """What a computation made by hand uses and does not hold."""
        name, shape = instruction.name, short_shape(instruction.shape)
        return Box(self._id(computation, instruction), name, "not in this computation", shape, OTHER)

    def _enter(self, computation: Computation, instruction: Instruction, folding: Folding) -> None:
        """The edges into a box: operands (equal ones together), then control predecessors."""
        head = self._id(computation, instruction)
        self.edges += self._operand_edges(computation, instruction, folding, head)
        for before in instruction.control:
            self.edges.append(Edge(self._id(computation, before), head, "control", tooltip="runs after it"))
        if instruction.opcode in ("send", "recv"):
            known = self.sends if instruction.opcode == "send" else self.recvs
            known.append((instruction.attributes.channel_id, head))

    def _operand_edges(
        self, computation: Computation, instruction: Instruction, folding: Folding, head: str
    ) -> Iterator[Edge]:
        places: dict[tuple[Instruction, str], list[int]] = {}
        shapes: dict[tuple[Instruction, str], AnyShape] = {}
        for number, operand in enumerate(instruction.operands):
            if folding.text(operand) is None:
                origin = folding.origin(operand)
                places.setdefault(origin, []).append(number)
                shapes[origin] = operand.shape
        for (tail, path), numbers in places.items():
            shape = shapes[tail, path]
            label = ",".join(map(str, numbers)) if len(instruction.operands) > 1 else ""
            tooltip = f"{tail.name}{path} -> {instruction.name}: {shape}"
            what = "token" if isinstance(shape, TokenShape) else "value"
            yield Edge(self._id(computation, tail), head, what, path, label, tooltip)

    def _regions(self, computation: Computation, instruction: Instruction) -> Iterator[Cluster]:
        caller = self._id(computation, instruction)
        for role, region in _worded(instruction).regions():
            if simple_reducer(region):
                continue
            if region not in self._ids:
                word = role.replace("branch_computations", "branch ").translate({ord("["): "", ord("]"): ""})
                yield self.cluster(region, f"{word} of {instruction.name}: {region.name}", word, caller)
            self.edges.append(Edge(self._id(region, region.root), caller, "call", tooltip=role))


def _worded(instruction: Instruction) -> Instruction:
    """The instruction whose attributes a box shows: of what an async-start is named after, those."""
    wrapped = sugared(instruction) if instruction.opcode == "async_start" else None
    return instruction if wrapped is None else wrapped


def _kind(instruction: Instruction) -> Kind:
    """Of an async op that of what it wraps."""
    start = instruction if instruction.opcode == "async_start" else origin(instruction)
    is_async = instruction.opcode in ASYNC and start is not None and start.opcode == "async_start"
    wrapped = wrapped_in(start) if is_async and start is not None else None
    return kind_of(instruction.opcode if wrapped is None else wrapped.opcode)


def _strangers(computation: Computation) -> dict[Instruction, None]:
    own = set(computation.instructions)
    used = (each for i in computation.instructions for each in (*i.operands, *i.control))
    return dict.fromkeys(each for each in (*used, computation.root) if each not in own)


def _title(instruction: Instruction) -> str:
    spelling = spelled_opcode(instruction)
    return f"{spelling} {instruction.attributes.number}" if instruction.opcode == "parameter" else spelling


def _details(instruction: Instruction, folding: Folding) -> Iterator[str]:
    """The attributes in HLO's words, then the operands that have no box."""
    worded = _worded(instruction)
    if worded.attributes is not None:
        for spelling in spellings(worded.opcode):
            if not _is_region(worded, spelling.names):
                yield from _cut(spelling.text(Writer(), worded).removeprefix(", "))
        if instruction.opcode in ("send", "recv") and instruction.attributes.source_target_pairs:
            yield from _cut("pairs " + ", ".join(f"{s}→{t}" for s, t in instruction.attributes.source_target_pairs))
    if instruction.opcode == "constant":
        yield from _cut(literal_text(instruction.attributes.literal.reshape(-1)[:8]))
    yield from (f"by {word}" for _, region in worded.regions() if (word := simple_reducer(region)))
    labels = operand_labels(OPS[instruction.opcode], len(instruction.operands), instruction.segments)
    for label, operand in zip(labels, instruction.operands, strict=True):
        if (text := folding.text(operand)) is not None:
            yield f"{label} = {text}"


def _is_region(instruction: Instruction, names: tuple[str, ...]) -> bool:
    return any(name in OPS[instruction.opcode].regions for name in names)


def _cut(text: str) -> Iterator[str]:
    if text and text != "replica_groups={}":
        yield text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _argument(operand: Instruction, folding: Folding) -> str:
    text = folding.text(operand)
    if text is not None:
        return text
    origin, path = folding.origin(operand)
    return f"{origin.name}{path}"


def _tooltip(instruction: Instruction) -> str:
    scope = instruction.annotations.get("metadata", {}).get("op_name", "")
    large = instruction.opcode == "constant" and instruction.attributes.literal.size > 8
    first = f"{instruction.name} = {instruction.shape} constant" if large else repr(instruction)
    lines = (first, str(instruction.source or ""), f"scope {scope}" if scope else "")
    return "\n".join(line if len(line) <= 400 else f"{line[:399]}…" for line in lines if line)


def short_shape(shape: AnyShape) -> str:
    """A shape in the room that a box has; the elements of a long tuple are counted."""
    text = repr(shape.plain())
    if len(text) <= _WIDTH or not isinstance(shape, TupleShape):
        return text
    shown: list[str] = []
    for element in shape.elements:
        if sum(map(len, shown)) + len(short := short_shape(element)) > _WIDTH - 12:
            break
        shown.append(short)
    return f"({', '.join([*shown, f'… {len(shape) - len(shown)} more'])})"
