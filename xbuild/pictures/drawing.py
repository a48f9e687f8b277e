"""Draws a program as a picture: a box for each instruction, a frame for each computation, lines for uses.

Sections:

    Kind of an instruction
    Folding: instructions without a box
    Words in a box
    The picture of a program
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from attrs import Factory, define, evolve, field

from shape_inference import AnyShape, Layout, Shape, TokenShape, TupleShape
from shape_inference.escaping import in_line

from ..core.diagnostics import operand_labels
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.memos import remembered
from ..core.op import OPS
from ..process.progress import over
from ..properties.effects import origin, wrapped_in
from ..properties.scopes import Scopes, scopes_of
from ..properties.structure import Structure, structure_without_channels
from ..properties.variances import declared, typed_text
from ..text.async_sugar import ASYNC, spelled_opcode, sugared
from ..text.codec_table import spellings
from ..text.literals import excerpt_text, literal_text
from ..text.spelling import NameWriter
from ..variance.types import marks_of
from .data import BoxData
from .picture import (
    CHANNEL,
    COLLECTIVE,
    CONTRACTION,
    OTHER,
    REDUCTION,
    Box,
    Cluster,
    Edge,
    Kind,
    Picture,
    Words,
    kind_of,
)

# ----------------------------------------------------------------------------
# Kind of an instruction
#
# That of its op, of the op that it starts, or of the main op of a fusion.

_MAIN = (COLLECTIVE, CHANNEL, CONTRACTION, REDUCTION)
"""The kinds that decide what a fusion costs, the first that occurs before the others."""


def kind_of_instruction(instruction: Instruction) -> Kind:
    """The kind of an instruction; an async op has the kind of the op that it wraps, a fusion that of its main op."""
    start = instruction if instruction.opcode == "async_start" else origin(instruction)
    is_async = instruction.opcode in ASYNC and start is not None and start.opcode == "async_start"
    wrapped = wrapped_in(start) if is_async and start is not None else None
    named = instruction if wrapped is None else wrapped
    return _main(named.called[0]) if named.opcode == "fusion" and named.called else kind_of(named.opcode)


@remembered
def _main(fused: Computation) -> Kind:
    """The first of the main kinds that occurs in a fused computation; without any of them, the kind of its result."""
    found = {kind_of(each.opcode).letter for each in fused.instructions}
    result = fused.root
    while result.opcode == "tuple" and result.operands:
        result = result.operands[0]
    return next((kind for kind in _MAIN if kind.letter in found), None) or kind_of(result.opcode)


# ----------------------------------------------------------------------------
# Folding: instructions without a box
#
# Small constants and tuple elements become words in the boxes of their users.

_ELEMENTS, _CHARACTERS = 8, 24


@define(repr=False)
class HiddenBoxes:
    """The instructions of a computation without a box: small constants and their broadcasts, and tuple elements."""

    computation: Computation
    _texts: dict[Instruction, str] = field(factory=dict, init=False)
    _tied: set[Instruction] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        instructions = self.computation.instructions
        self._tied = {self.computation.root, *(before for i in instructions for before in i.control)}
        for instruction in instructions:
            if self._may_fold(instruction) and (text := self._value(instruction)) is not None:
                self._texts[instruction] = text

    def drawn(self) -> tuple[Instruction, ...]:
        return tuple(i for i in self.computation.instructions if i not in self._texts and not self._is_element(i))

    def text(self, operand: Instruction) -> str | None:
        """The operand as a word, or None where it has a box."""
        return self._texts.get(operand)

    def origin(self, operand: Instruction) -> tuple[Instruction, str]:
        """The box that the operand comes from, and which of its elements it is: `[1][0]`."""
        path = ""
        while self._is_element(operand):
            path = f"[{operand.attributes.index}]{path}"
            operand = operand.operands[0]
        return operand, path

    def names(self, user: Instruction) -> Iterator[str]:
        """The instructions that stand as words in a user's box, or on the lines to it."""
        for operand in user.operands:
            while operand in self._texts or self._is_element(operand):
                yield operand.name
                if not operand.operands:
                    break
                operand = operand.operands[0]

    def _may_fold(self, instruction: Instruction) -> bool:
        return instruction not in self._tied and not instruction.control

    def _is_element(self, instruction: Instruction) -> bool:
        return instruction.opcode == "get_tuple_element" and self._may_fold(instruction)

    def _value(self, instruction: Instruction) -> str | None:
        if instruction.opcode == "constant":
            literal = instruction.attributes.literal
            text = literal_text(literal) if literal.size <= _ELEMENTS else ""
            return text if 0 < len(text) <= _CHARACTERS else None
        if instruction.opcode == "broadcast":
            return self._texts.get(instruction.operands[0])
        return None


def simple_reducer(computation: Computation) -> str | None:
    """The op of a computation that only applies one op to its two parameters, in order; else None."""
    if len(computation.instructions) != 3:
        return None
    root = computation.root
    fits = root.operands == computation.parameters and len(root.operands) == 2
    return root.opcode.replace("_", "-") if fits else None


# ----------------------------------------------------------------------------
# Words in a box
#
# Title, attributes, operands without a box, shape, and the text shown on hover.

_WIDTH = 44
_NAMED = 3  # operands of callers that are named

PassedOperands: TypeAlias = Sequence[tuple[Instruction, HiddenBoxes]]


def words_of(instruction: Instruction, folding: HiddenBoxes, passed: PassedOperands = ()) -> Words:
    """The words of a box; `given` are the operands that callers give a parameter."""
    arguments = tuple(argument(operand, folding) for operand in instruction.operands)
    details = (*_details(instruction, folding), *_origins(passed))
    return Words(shape_words(instruction), details, arguments)


def title_of(instruction: Instruction) -> str:
    """The title of a box: the op, and the number of a parameter."""
    spelling = spelled_opcode(instruction)
    return f"{spelling} {instruction.attributes.number}" if instruction.opcode == "parameter" else spelling


def attribute_source(instruction: Instruction) -> Instruction:
    """The instruction whose attributes a box shows: for sugared async-starts, the wrapped one."""
    wrapped = sugared(instruction) if instruction.opcode == "async_start" else None
    return instruction if wrapped is None else wrapped


def _details(instruction: Instruction, folding: HiddenBoxes) -> Iterator[str]:
    """The attributes in HLO's words, then the operands that have no box."""
    for mark in marks_of(instruction):
        yield from _shorten(in_line(mark))
    shown = attribute_source(instruction)
    if shown.attributes is not None:
        for spelling in spellings(shown.opcode):
            if not _is_region(shown, spelling.names):
                yield from _shorten(spelling.text(NameWriter(), shown).removeprefix(", "))
        if instruction.opcode in ("send", "recv") and instruction.attributes.source_target_pairs:
            yield from _shorten("pairs " + ", ".join(f"{s}→{t}" for s, t in instruction.attributes.source_target_pairs))
    if instruction.opcode == "constant":
        yield from _shorten(excerpt_text(instruction.attributes.literal, 8))
    yield from (f"by {word}" for _, region in shown.regions() if (word := simple_reducer(region)))
    labels = operand_labels(OPS[instruction.opcode], len(instruction.operands), instruction.segments)
    for label, operand in zip(labels, instruction.operands, strict=True):
        if (text := folding.text(operand)) is not None:
            yield f"{label} = {text}"


def _origins(passed: PassedOperands) -> Iterator[str]:
    """The operands that the calls of its computation pass to a parameter."""
    names = list(dict.fromkeys(argument(operand, folding) for operand, folding in passed))
    if names:
        more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
        yield from _shorten(f"from {', '.join(names[:_NAMED])}{more}")


def _is_region(instruction: Instruction, names: tuple[str, ...]) -> bool:
    return any(name in OPS[instruction.opcode].regions for name in names)


def _shorten(text: str) -> Iterator[str]:
    if text and text != "replica_groups={}":
        yield text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def argument(operand: Instruction, folding: HiddenBoxes) -> str:
    """An operand in words: its value where it has no box, else the name of the box that it comes from."""
    text = folding.text(operand)
    if text is not None:
        return text
    origin, path = folding.origin(operand)
    return f"{origin.name}{path}"


def tooltip(instruction: Instruction) -> str:
    """The text on hover: the instruction as text, its source and its scope."""
    scope = in_line(str(instruction.annotations.get("metadata", {}).get("op_name", "")))
    large = instruction.opcode == "constant" and instruction.attributes.literal.size > 8
    first = f"{instruction.name} = {instruction.shape} constant" if large else repr(instruction)
    lines = (first, str(instruction.source or ""), f"scope {scope}" if scope else "")
    return "\n".join(line if len(line) <= 400 else f"{line[:399]}…" for line in lines if line)


def shape_words(instruction: Instruction) -> str:
    """The shape of an instruction, shortened to the width of a box, with its type on a mesh where one is declared."""
    short = short_shape(instruction.shape)
    if declared(instruction) is None:
        return short
    text = typed_text(instruction, lambda leaf: repr(_without_usual_layouts(leaf)))
    return text if len(text) <= _WIDTH or not isinstance(instruction.shape, TupleShape) else short


def short_shape(shape: AnyShape) -> str:
    """A shape, shortened to the width of a box: row-major layouts are omitted, the rest of a long tuple is counted."""
    if not isinstance(shape, TupleShape) or shape.count <= _WIDTH:
        text = repr(_without_usual_layouts(shape))
        if len(text) <= _WIDTH or not isinstance(shape, TupleShape):
            return text
    shown: list[str] = []
    for element in shape.elements:
        if sum(map(len, shown)) + len(short := short_shape(element)) > _WIDTH - 12:
            break
        shown.append(short)
    return f"({', '.join([*shown, f'… {len(shape) - len(shown)} more'])})"


def _without_usual_layouts(shape: AnyShape) -> AnyShape:
    if isinstance(shape, TokenShape):
        return shape
    if isinstance(shape, Shape):
        return shape.plain() if shape.layout == Layout(tuple(range(shape.rank))[::-1]) else shape
    return TupleShape(map(_without_usual_layouts, shape.elements))


# ----------------------------------------------------------------------------
# The picture of a program
#
# A box for each instruction, a frame for each computation, lines for uses.

_DEEPEST = 100  # nested frames


def draw(program: Computation | Module | ModuleGroup, marks: Mapping[Instruction, BoxData] | None = None) -> Picture:
    """The picture of a program; of a group of modules, the programs of devices and the channels between them."""
    marks = marks or {}
    if isinstance(program, ModuleGroup):
        return _group(program, marks)
    entry = program.entry if isinstance(program, Module) else program
    drawing = _Drawing("", marks, scopes_of(program))
    clusters = (drawing.cluster(entry, program.name),)
    return Picture(program.name, clusters, (*drawing.edges, *_channels([drawing])))


def _group(group: ModuleGroup, marks: Mapping[Instruction, BoxData]) -> Picture:
    drawings, clusters, scopes = [], [], scopes_of(group)
    for device, module in group.modules.items():
        drawing = _Drawing(f"d{device}/", marks, scopes)
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
    marks: Mapping[Instruction, BoxData]
    scopes: Scopes
    edges: list[Edge] = Factory(list)
    sends: list[tuple[int, str]] = Factory(list)
    recvs: list[tuple[int, str]] = Factory(list)
    _ids: dict[Computation, str] = Factory(dict)
    _operands: dict[tuple[Computation, int], list[tuple[Instruction, HiddenBoxes]]] = Factory(dict)
    _taken: set[str] = Factory(set)
    _structure: Structure | None = None
    _depth: int = 0

    def cluster(self, computation: Computation, title: str, role: str = "", caller: str = "") -> Cluster:
        """The frame of a computation, with the frames of the computations that it calls."""
        self._ids[computation] = self._fresh(computation.name)
        self._depth += 1
        folding = HiddenBoxes(computation)
        boxes = [self._foreign_box(computation, each) for each in _foreign_operands(computation)]
        clusters: list[Cluster] = []
        for instruction in over(folding.drawn(), "drawing the picture", "instructions"):
            box = self._box(computation, instruction, folding)
            self._enter(computation, instruction, folding)
            if self._depth < _DEEPEST or not OPS[instruction.opcode].regions:
                clusters += self._regions(computation, instruction, folding)
            else:
                box = evolve(box, added=("called computations are nested too deeply to be drawn",))
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

    def _box(self, computation: Computation, instruction: Instruction, folding: HiddenBoxes) -> Box:
        passed = self._passed_operands(computation, instruction) if instruction.opcode == "parameter" else ()
        return Box(
            self._id(computation, instruction),
            instruction.name,
            title_of(instruction),
            partial(words_of, instruction, folding, passed),
            kind_of_instruction(instruction),
            (),
            partial(tooltip, instruction),
            instruction is computation.root,
            in_line(self.scopes.of(instruction)),
            frozenset(folding.names(instruction)),
            mark=self.marks.get(instruction),
            alike=partial(self._label, instruction),
        )

    def _label(self, instruction: Instruction) -> bytes:
        if self._structure is None:
            self._structure = structure_without_channels(next(iter(self._ids)))
        return self._structure.label(instruction)

    def _foreign_box(self, computation: Computation, instruction: Instruction) -> Box:
        """A box for an operand outside its computation, which an unverified computation may have."""
        name, shape = instruction.name, short_shape(instruction.shape)
        return Box(self._id(computation, instruction), name, "not in this computation", Words(shape), OTHER)

    def _passed_operands(
        self, computation: Computation, parameter: Instruction
    ) -> list[tuple[Instruction, HiddenBoxes]]:
        """The operands that calls pass to a parameter, in a list that grows as further calls are drawn."""
        number = parameter.attributes.number
        return self._operands.setdefault((computation, number), [])

    def _enter(self, computation: Computation, instruction: Instruction, folding: HiddenBoxes) -> None:
        """The edges into a box: operands (equal ones together), then control predecessors."""
        head = self._id(computation, instruction)
        self.edges += self._operand_edges(computation, instruction, folding, head)
        for before in instruction.control:
            self.edges.append(Edge(self._id(computation, before), head, "control", hover="runs after it"))
        if instruction.opcode in ("send", "recv"):
            known = self.sends if instruction.opcode == "send" else self.recvs
            known.append((instruction.attributes.channel_id, head))

    def _operand_edges(
        self, computation: Computation, instruction: Instruction, folding: HiddenBoxes, head: str
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

    def _regions(self, computation: Computation, instruction: Instruction, folding: HiddenBoxes) -> Iterator[Cluster]:
        if not OPS[instruction.opcode].regions:
            return
        caller = self._id(computation, instruction)
        for place, (role, region) in enumerate(attribute_source(instruction).regions()):
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


def _foreign_operands(computation: Computation) -> dict[Instruction, None]:
    own = set(computation.instructions)
    used = (each for i in computation.instructions for each in (*i.operands, *i.control))
    return dict.fromkeys(each for each in (*used, computation.root) if each not in own)
