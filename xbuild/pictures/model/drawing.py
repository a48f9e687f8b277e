"""Builds the picture of a program: a box for each instruction, a frame for each computation, lines for uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from attrs import Factory, define, evolve

from shape_inference import AnyShape, TokenShape

from ...core.graph import Computation, Instruction, Module, ModuleGroup
from ...core.op import OPS
from ...properties.async_pairs import origin, wrapped_in
from ...text.codecs.sugar import ASYNC
from .data import Mark
from .folding import Folding, simple_reducer
from .kinds import OTHER, Kind, kind_of
from .picture import Box, Cluster, Edge, Picture, Words
from .words import scope_of, title_of, tooltip, worded, words_of
from .words import shape_words as shape_words
from .words import short_shape as short_shape

_DEEPEST = 100  # nested frames


def draw(program: Computation | Module | ModuleGroup, marks: Mapping[Instruction, Mark] | None = None) -> Picture:
    """The picture of a program; of a group of modules, the programs of devices and the channels between them."""
    marks = marks or {}
    if isinstance(program, ModuleGroup):
        return _group(program, marks)
    entry = program.entry if isinstance(program, Module) else program
    drawing = _Drawing("", marks)
    clusters = (drawing.cluster(entry, program.name),)
    return Picture(program.name, clusters, (*drawing.edges, *_channels([drawing])))


def _group(group: ModuleGroup, marks: Mapping[Instruction, Mark]) -> Picture:
    drawings, clusters = [], []
    for device, module in group.modules.items():
        drawing = _Drawing(f"d{device}/", marks)
        drawings.append(drawing)
        clusters.append(drawing.cluster(module.entry, f"device {device}: {module.name}"))
    edges = tuple(edge for drawing in drawings for edge in drawing.edges)
    return Picture("group", tuple(clusters), (*edges, *_channels(drawings)))


def _channels(drawings: list[_Drawing]) -> Iterator[Edge]:
    """The edges from each send to each recv of its channel, in another device of a group or in the same module."""
    for sender in drawings:
        for receiver in drawings:
            if sender is receiver and len(drawings) > 1:
                continue
            for channel, tail in sender.sends:
                for other, head in receiver.recvs:
                    if channel == other:
                        yield Edge(tail, head, "channel", hover=f"channel {channel}")


@define
class _Drawing:
    """Builds the frames and edges of one device's program; a computation that is called twice is drawn once."""

    prefix: str
    marks: Mapping[Instruction, Mark]
    edges: list[Edge] = Factory(list)
    sends: list[tuple[int, str]] = Factory(list)
    recvs: list[tuple[int, str]] = Factory(list)
    _ids: dict[Computation, str] = Factory(dict)
    _operands: dict[tuple[Computation, int], list[tuple[Instruction, Folding]]] = Factory(dict)
    _taken: set[str] = Factory(set)
    _depth: int = 0

    def cluster(self, computation: Computation, title: str, role: str = "", caller: str = "") -> Cluster:
        """The frame of a computation, with the frames of the computations that it calls."""
        self._ids[computation] = self._fresh(computation.name)
        self._depth += 1
        folding = Folding(computation)
        boxes = [self._foreign_box(computation, each) for each in _foreign_operands(computation)]
        clusters: list[Cluster] = []
        for instruction in folding.drawn():
            box = self._box(computation, instruction, folding)
            self._enter(computation, instruction, folding)
            if self._depth < _DEEPEST or not OPS[instruction.opcode].regions:
                clusters += self._regions(computation, instruction, folding)
            else:
                box = evolve(box, added=("called computations are not drawn: too deep",))
            boxes.append(box)
        self._depth -= 1
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
        given = self._given(computation, instruction) if instruction.opcode == "parameter" else ()
        return Box(
            self._id(computation, instruction),
            instruction.name,
            title_of(instruction),
            partial(words_of, instruction, folding, given),
            _kind(instruction),
            (),
            partial(tooltip, instruction),
            instruction is computation.root,
            scope_of(instruction),
            frozenset(folding.names(instruction)),
            mark=self.marks.get(instruction),
        )

    def _foreign_box(self, computation: Computation, instruction: Instruction) -> Box:
        """A box for an operand outside its computation, which an unverified computation may have."""
        name, shape = instruction.name, short_shape(instruction.shape)
        return Box(self._id(computation, instruction), name, "not in this computation", Words(shape), OTHER)

    def _given(self, computation: Computation, parameter: Instruction) -> list[tuple[Instruction, Folding]]:
        """The operands that calls pass to a parameter, in a list that grows as further calls are drawn."""
        number = parameter.attributes.number
        return self._operands.setdefault((computation, number), [])

    def _enter(self, computation: Computation, instruction: Instruction, folding: Folding) -> None:
        """The edges into a box: operands (equal ones together), then control predecessors."""
        head = self._id(computation, instruction)
        self.edges += self._operand_edges(computation, instruction, folding, head)
        for before in instruction.control:
            self.edges.append(Edge(self._id(computation, before), head, "control", hover="runs after it"))
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
            hover = partial("{0.name}{1} -> {2.name}: {3}".format, tail, path, instruction, shape)
            what = "token" if isinstance(shape, TokenShape) else "value"
            yield Edge(self._id(computation, tail), head, what, path, label, hover)

    def _regions(self, computation: Computation, instruction: Instruction, folding: Folding) -> Iterator[Cluster]:
        if not OPS[instruction.opcode].regions:
            return
        caller = self._id(computation, instruction)
        for place, (role, region) in enumerate(worded(instruction).regions()):
            if simple_reducer(region):
                continue
            for number, operand in enumerate(_passed(instruction, place)):
                self._operands.setdefault((region, number), []).append((operand, folding))
            if region not in self._ids:
                word = role.replace("branch_computations", "branch ").translate({ord("["): "", ord("]"): ""})
                yield self.cluster(region, f"{word} of {instruction.name}: {region.name}", word, caller)
            self.edges.append(Edge(self._id(region, region.root), caller, "call", hover=role))


def _passed(instruction: Instruction, place: int) -> Sequence[Instruction]:
    """The operands that an op passes unchanged to the parameters of one of its computations."""
    if instruction.opcode in ("call", "fusion"):
        return instruction.operands
    return instruction.operands[place + 1 : place + 2] if instruction.opcode == "conditional" else ()


def _kind(instruction: Instruction) -> Kind:
    """The kind of an instruction; an async op has the kind of the op that it wraps."""
    start = instruction if instruction.opcode == "async_start" else origin(instruction)
    is_async = instruction.opcode in ASYNC and start is not None and start.opcode == "async_start"
    wrapped = wrapped_in(start) if is_async and start is not None else None
    return kind_of(instruction.opcode if wrapped is None else wrapped.opcode)


def _foreign_operands(computation: Computation) -> dict[Instruction, None]:
    own = set(computation.instructions)
    used = (each for i in computation.instructions for each in (*i.operands, *i.control))
    return dict.fromkeys(each for each in (*used, computation.root) if each not in own)
