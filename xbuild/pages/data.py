"""The data of a step page as JSON: events by device, facts of instructions, values in the detail that fits.

Sections:

    Encoding of arrays
    Marks on the time axis
    The picture of the program, and the boxes of each instruction
    Facts of an instruction
    A stopped run
    A partitioned program
    Detail of values
    The data of a page as JSON
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import Shape, XbuildError, primitive_type, refuse
from shape_inference.escaping import in_line
from shape_inference.trees import map_leaves

from ..core.attributes import Array
from ..core.graph import Instruction, Module, ModuleGroup
from ..core.op import OPS
from ..core.source_lines import line_of
from ..costs.report import short as amount
from ..pictures.data import Scale
from ..pictures.drawing import kind_of_instruction, shape_words
from ..pictures.picture import Picture
from ..pictures.showing import add_reasons, picture_of
from ..pictures.svg import svg_text
from ..pictures.views import View
from ..process.progress import over
from ..properties.mesh import Mesh, mesh_of
from ..properties.scopes import scopes_of
from ..sharding.partition import Communication, Partitioned, Tiling
from ..sharding.propagation import Origins, Propagated, short
from ..sharding.stated_shardings import mesh_of_shardings
from ..text.codec_table import spellings
from ..text.literals import excerpt_text
from ..text.spelling import NameWriter
from ..traces import Across, Spot, Summary, Trace, TracedMeeting
from ..traces.data import bringing
from ..traces.pool import Pool
from ..traces.questions import births, is_stated
from ..traces.summary import coarser, summaries

# ----------------------------------------------------------------------------
# Encoding of arrays
#
# Base64 of bytes, in element types that a browser has.


def format_of(array: Array) -> tuple[str, Array]:
    """The format of a browser's typed arrays that holds the elements exactly, and the array in this format."""
    kind, width = primitive_type(array.dtype).kind, array.itemsize
    if kind == "pred":
        return "u1", array.astype(np.uint8)
    if kind in ("signed", "unsigned"):
        name = f"{'i' if kind == 'signed' else 'u'}{8 if width == 8 else 4}"
        return name, array.astype(np.dtype(name))
    if kind == "complex":
        return ("c8", array) if width == 8 else ("c16", array)
    return ("f8", array) if width == 8 else ("f4", array.astype(np.float32))


def shades(cells: Array) -> Array:
    """Numbers as 127ths of the largest, in one byte each, which is exact enough for a picture."""
    plain = np.nan_to_num(np.asarray(cells, np.float64))
    largest = np.abs(plain).max(initial=0.0)
    shaded: Array = np.rint(plain / largest * 127 if largest else plain).astype(np.int8)
    return shaded


def in_base64(array: Array) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


def small_ints(array: Array) -> dict[str, Any]:
    """Integers in the narrowest format that holds them."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    name = "i1" if low >= -128 and high < 128 else "i2" if low >= -(1 << 15) and high < 1 << 15 else "i4"
    return {"f": name, "b": in_base64(array.astype(name))}


# ----------------------------------------------------------------------------
# Marks on the time axis
#
# Births of NaN and infinity, findings of a strict run.

MOST_MARKS = 2000
"""The greatest number of births that a page marks."""


def marks(trace: Trace, place: Sequence[int]) -> Mapping[int, list[list[Any]]]:
    """For each device its marks: the place of the event on the lane, and the text."""
    found = {
        (birth.event, birth.what): f"{birth.what} is born in {trace.standing(birth.event)}" for birth in _born(trace)
    }
    for finding in trace.findings:
        if finding["event"] is not None:
            what = {"nan_born": "NaN", "inf_born": "infinity"}.get(finding["kind"], finding["kind"])
            found[finding["event"], what] = f"{finding['kind']}: {_words(finding)}"
    by_device: dict[int, list[list[Any]]] = {}
    for (event, _), text in sorted(found.items()):
        by_device.setdefault(int(trace.device[event]), []).append([place[event], text])
    return by_device


def _born(trace: Trace) -> Sequence[Any]:
    """The births of a trace without constant infinities, such as the init value of a maximum or a mask."""
    return [birth for birth in births(trace) if not is_stated(trace, birth)][:MOST_MARKS]


def _words(finding: Mapping[str, Any]) -> str:
    """The text of a finding, such as `operand -3.0, gives nan, and 2 more`."""
    values = [f"{name} {value}" for name, value in finding["values"].items()]
    index = [f"at {finding['index']}"] if finding["index"] else []
    further = [f"and {finding['further']:,} more"] if finding["further"] else []
    return ", ".join([*index, *values, finding["what"], *further])


# ----------------------------------------------------------------------------
# The picture of the program, and the boxes of each instruction

MOST_BOXES = 240


def drawn(program: Module | ModuleGroup, partitioned: Partitioned | None = None) -> tuple[Picture, str]:
    """The picture of a program, folded if the program is large, and its SVG text, which has both themes."""
    picture = picture_of(program, View(max_nodes=MOST_BOXES))
    assert isinstance(picture, Picture)
    if partitioned is not None and partitioned.communications:
        scale = Scale("bytes that an inserted collective sends", None, None)
        picture = evolve(add_reasons(picture, partitioned), scale=scale)
    return picture, svg_text(picture, "page")


def boxes(picture: Picture, spots: Sequence[Spot]) -> list[list[str]]:
    """For each spot the ids of the boxes that show its instruction: its own boxes, or those that it is folded into."""
    places: dict[str, list[str]] = {}
    for box in picture.all_boxes():
        for name in (box.name, *box.folded):
            places.setdefault(name, []).append(box.id)
    return [places.get(spot.instruction.name, []) for spot in spots]


# ----------------------------------------------------------------------------
# Facts of an instruction
#
# Attributes, the op's documentation, the user's source line.

_LONG = 160
_RULES = ("Formula", "Shapes", "Types", "Result", "Groups", "Pairs")


def told(spot: Spot, root: Path | None = None) -> dict[str, Any]:
    """The facts of the instruction of a spot; `root` is the folder under which source files may be opened."""
    instruction = spot.instruction
    return {
        "n": instruction.name,
        "o": instruction.opcode.replace("_", "-"),
        "s": shape_words(instruction),
        "k": kind_of_instruction(instruction).letter,
        "p": list(spot.path),
        "a": _attributes(instruction),
        "w": _source(instruction, root),
        "c": _channel(instruction),
    }


def sentence(opcode: str) -> str:
    """The first sentence of an op's documentation."""
    documentation = (OPS[opcode].declaration.__doc__ or "").strip()
    return " ".join(documentation.split("\n\n")[0].split()).replace("`", "")


def rules(opcode: str) -> list[list[str]]:
    """The formula of an op, and its rules of shapes and types, as pairs of a name and a text."""
    paragraphs = (OPS[opcode].declaration.__doc__ or "").strip().split("\n\n")
    found: list[list[str]] = []
    for line in paragraphs[1].split("\n") if len(paragraphs) > 1 else ():
        name, colon, rest = line.strip().partition(": ")
        if name == "Raises" or line.strip().startswith(">>>"):
            break
        if colon and name in _RULES:
            found.append([name.lower(), rest])
        elif found:
            found[-1][1] += f" {line.strip()}"
    return [[name, text.replace("`", "")] for name, text in found]


def _attributes(instruction: Instruction) -> list[list[str]]:
    """The attributes of an instruction as pairs of a name and a text, in the spelling of HLO."""
    if instruction.opcode == "constant":
        return [["literal", _cut(excerpt_text(instruction.attributes.literal, 64))]]
    if instruction.attributes is None:
        return []
    texts = (spelling.text(NameWriter(), instruction).removeprefix(", ") for spelling in spellings(instruction.opcode))
    pairs = (text.partition("=") for text in texts if text)
    return [[name, _cut(text)] for name, equals, text in pairs if equals]


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _channel(instruction: Instruction) -> int | None:
    return getattr(instruction.attributes, "channel_id", None)


def _source(instruction: Instruction, root: Path | None) -> list[str] | None:
    """The user's source line: its place and its text."""
    source = instruction.source
    return None if source is None else [str(source), _cut(line_of(instruction, root))]


# ----------------------------------------------------------------------------
# A stopped run
#
# Where each device is, what it waits for, the cause and the repair.


def with_standing(trace: Trace) -> Trace:
    """The trace with additional spots for instructions at which devices wait and which no device has executed."""
    known = set(trace.spots)
    wanted = dict.fromkeys(spot for spot in _standing(trace).values() if spot not in known)
    return evolve(trace, spots=(*trace.spots, *wanted)) if wanted else trace


def stopped(trace: Trace) -> dict[str, Any] | None:
    """The report of a stopped run, in which each device has the number of its spot and a short text of its wait."""
    if trace.stop is None:
        return None
    number = {spot: place for place, spot in enumerate(trace.spots)}
    stands = {device: number[spot] for device, spot in _standing(trace).items()}
    cycle = {(step["device"], step["instruction"]): step for finding in _findings(trace) for step in finding["cycle"]}
    devices = [
        {**each, "spot": stands.get(each["device"], -1), "wants": _wants(each, cycle)} for each in trace.stop["devices"]
    ]
    return {**trace.stop, "devices": devices}


def reasons(trace: Trace) -> list[list[str]]:
    """The cause, the fix and a note, each with its label, from the refusing verdict, or from the run without one."""
    if not (trace.verdict and trace.verdict["refused"]):
        told = trace.stop or {}
        through = told.get("let_through")
        check = through and f"left this to the run, since data decide: {through}"
        pairs = [("cause", told.get("cause")), ("fix", told.get("repair")), ("check", check)]
        return [[name, text] for name, text in pairs if text]
    found = [pair for finding in _findings(trace)[:1] for pair in _of_finding(finding, trace.verdict.get("repair"))]
    return found + ([["further", "the report has more findings"]] if len(_findings(trace)) > 1 else [])


def _of_finding(finding: Mapping[str, Any], edit: Mapping[str, Any] | None) -> Iterator[list[str]]:
    yield ["cause", finding["explanation"] or finding["message"]]
    if edit is not None:
        yield ["fix", f"{edit['text']} (checked: ok)"]
    elif finding["repair"]:
        yield ["fix", finding["repair"]]
    if finding["note"]:
        yield ["note", finding["note"]]


def _findings(trace: Trace) -> list[Mapping[str, Any]]:
    return list((trace.verdict or {}).get("findings", ()))


def _wants(state: Mapping[str, Any], cycle: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    """What a device waits for and, in the cycle, the instruction after which the other device executes it."""
    step = cycle.get((state["device"], state["instruction"]))
    if step is not None:
        behind = re.match(r"after \S+", step["behind"] or "")
        return [step["waits_for"], *([behind[0]] if behind else [])]
    words = state["waits_for"] or ""
    if not state["missing"]:
        return [part for part in words.partition(", ")[::2] if part]
    return [words.partition(" to ")[2].removeprefix("come to ").removeprefix("reach ")]


def _standing(trace: Trace) -> dict[int, Spot]:
    """The spot of each device that waits at an instruction, read from the report: `sum in while.20, trip 2`."""
    found: dict[int, Spot] = {}
    for state in (trace.stop or {}).get("devices", ()):
        if state["stands_at"]:
            inner, *around = state["stands_at"].split(" in ")
            instruction = _named(trace, state["device"], inner.partition(",")[0], state["instruction"])
            if instruction is not None:
                found[state["device"]] = Spot(instruction, tuple(map(_label, reversed(around))))
    return found


def _label(place: str) -> str:
    """The label in the path of a spot of a place in the report, such as `conditional.2, branch 0, trip 3`."""
    name, *rest = place.split(", ")
    branch = next((_BRANCHES.get(each, each) for each in rest if each.startswith(("branch ", *_BRANCHES))), None)
    return name if branch is None else f"{name} {branch}"


_BRANCHES = {"true_computation": "branch 0", "false_computation": "branch 1"}


def _named(trace: Trace, device: int, *names: str) -> Instruction | None:
    module = trace.program if isinstance(trace.program, Module) else trace.program.modules[device]
    found = {each.name: each for computation in module.computations for each in computation.instructions}
    return next((found[name] for name in names if name in found), None)


# ----------------------------------------------------------------------------
# A partitioned program
#
# Of which global array each value is a tile, and why.


@define
class Tiled:
    """The tables of a page: layouts of devices, global arrays on them, and by name what an instruction has a tile of.

    A spot has the number of its array as `g`; of an inserted collective it has the reason as `r`.
    """

    layouts: list[Any] = field(factory=list)
    arrays: list[Any] = field(factory=list)
    of_spot: dict[str, dict[str, Any]] = field(factory=dict)
    _known: dict[Any, int] = field(factory=dict)

    def layout(self, tiling: Tiling) -> int:
        """The number of the layout of an array, which arrays of equal extents and shardings share."""
        key = (tiling.shape.dims, tiling.sharding)
        if key not in self._known:
            self._known[key] = len(self.layouts)
            part = tiling.part.tolist()
            self.layouts.append({
                "n": tiling.tiles, "l": tiling.local, "d": tiling.shape.dims, "at": tiling.place.tolist(),
                "part": part if any(part) else None,
            })  # fmt: skip
        return self._known[key]

    def add(self, name: str, tiling: Tiling, origins: Origins | None) -> None:
        key = (tiling.value, tiling.shape, tiling.sharding)
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append({
                "v": in_line(tiling.value), "t": in_line(f"{tiling.shape}  {short(tiling.sharding)}"),
                "at": self.layout(tiling), "why": [] if origins is None else [*_causes(origins, tiling)],
            })  # fmt: skip
        self.of_spot.setdefault(name, {})["g"] = self._known[key]


def tiled(trace: Trace, found: Partitioned | None) -> Tiled:
    """The tables for the program of a trace; empty where it is none that was partitioned.

    Raises invalid_operand where the trace belongs to a program other than `found` has.
    """
    tables = Tiled()
    if found is None:
        return tables
    if not isinstance(trace.program, Module) or _names(trace.program) != _names(found.module):
        refuse(
            "invalid_operand",
            f"the trace does not record a run of {found.module.name} with this partitioning",
        )
    origins = None if found.propagated is None else Origins(found.propagated)
    used = {spot.instruction.name for spot in trace.spots}
    for name, tiling in found.held.items():
        if name in used and tiling.shape.rank:
            tables.add(name, tiling, origins)
    for each in found.communications:
        tables.of_spot.setdefault(each.name, {})["r"] = _reason(each)
    return tables


def _names(module: Module) -> set[str]:
    return {each.name for each in module.entry.instructions}


def _reason(communication: Communication) -> list[str]:
    """The sentence of a collective, and what it costs."""
    axes = ", ".join(dict.fromkeys(axis.name for axis in communication.axes))
    cost = f"inserted by the partitioner: {amount(communication.bytes, 'B')} sent by a device over {axes}"
    return [in_line(communication.reason), in_line(cost)]


def _causes(origins: Origins, tiling: Tiling) -> Iterator[str]:
    """A sentence for each sharded dimension, which names the values from which its axes came."""
    causes = origins.found
    if not _is_array(causes, tiling.value):
        return
    stated = causes.sharding(tiling.value)
    if short(stated) != short(tiling.sharding):  # type: ignore[arg-type]
        yield f"the program states {in_line(short(stated))}, and the value is resharded for a use"  # type: ignore[arg-type]
    kind = causes.cause(tiling.value).kind
    if kind in _KINDS:
        yield _KINDS[kind]
        return
    for each in origins.ways(tiling.value):
        names = in_line(", ".join(axis.name for axis in each.axes))
        way = "".join(f", from %{in_line(name)}" for name in each.through) + f", from {each.more} more" * bool(
            each.more
        )
        line = "" if each.where is None else f" ({in_line(str(each.where))})"
        yield f"dimension {each.dim} by {names}{way}, from %{in_line(each.origin)}, which states it{line}"


_KINDS = {
    "stated": "the program states its sharding",
    "whole": "no sharding propagated to this value, so every device holds all of it",
}


def _is_array(causes: Propagated, name: str) -> bool:
    try:
        return isinstance(causes.shape(name), Shape) and not isinstance(causes.sharding(name), tuple)
    except XbuildError:
        return False


# ----------------------------------------------------------------------------
# Detail of values
#
# All values get coarser before any is left out.

ROOM = 12 << 20
"""The greatest number of characters that the values of a page take."""

_LETTERS = 4 / 3
_FIGURES = 40


@frozen
class Detail:
    """A level of detail: arrays of up to `whole` elements are kept, others become means of `cells` x `cells` blocks."""

    whole: int
    cells: int

    def __str__(self) -> str:
        blocks = "range, mean and the means of blocks" if self.cells else "range and mean"
        return f"arrays of more than {self.whole} element{'s' * (self.whole > 1)} are summarized by {blocks}"


LEVELS = (Detail(256, 16), Detail(96, 8), Detail(32, 4), Detail(8, 2), Detail(1, 0))


@frozen
class Fitted:
    """The values of a page; `refs` has the number of each event's value, or -1; `left_out` says what is missing."""

    data: dict[str, Any]
    refs: list[int]
    left_out: str


def fitted(trace: Trace, room: int = ROOM) -> Fitted:
    """All values in the finest detail that fits; if even summaries do not fit, the values of every n-th step."""
    values = dict(trace.values)
    sizes = np.array([*_sizes(values.values())], np.int64).reshape(-1, 2)
    level = next((level for level in LEVELS if _cost(sizes, level) <= room), LEVELS[-1])
    every = max(1, -int(-_cost(sizes, level) // room)) if level is LEVELS[-1] else 1
    while True:
        pool, refs = _pooled(trace, values, level, every)
        if pool.size * _LETTERS <= room or every > len(trace):
            break
        every *= 2
    told = [f"to keep the page small, {level}"] if level is not LEVELS[0] else []
    if every > 1:
        told.append(f"values are shown for one step in {every}")
    kind, _, letters = pool.columns
    data = {"kinds": pool.kinds, "kind": small_ints(kind), "bytes": in_base64(letters)}
    return Fitted(data, refs, "; ".join(told))


def _sizes(values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """The number of elements and the bytes of an element of each distinct array."""
    known: set[int] = set()
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += value
        elif value is not None and id(value) not in known:
            known.add(id(value))
            size = int(np.prod(value.dims)) if isinstance(value, Summary) else value.size
            yield (size, 1 << 30) if isinstance(value, Summary) else (size, max(4, value.itemsize))


def _cost(sizes: Any, level: Detail) -> float:
    """The estimated number of characters that all arrays need."""
    if not len(sizes):
        return 0.0
    size, width = sizes[:, 0], sizes[:, 1]
    short = _FIGURES + np.minimum(size, level.cells**2)
    whole = (size <= level.whole) & (width < 1 << 30)
    return float(np.where(whole, size * np.minimum(width, 16), short).sum() * _LETTERS + len(size) * 2)


def _pooled(trace: Trace, values: Mapping[int, Any], level: Detail, every: int) -> tuple[Pool, list[int]]:
    if every > 1:
        values = {number: values[number] for number in values if trace.time[number] % every == 0}
    pool, refs, short = Pool(format_of, shades), [-1] * len(trace), _shortened(values.values(), level)
    for number, value in values.items():
        refs[number] = pool.add(_in_detail(value, short))
    return pool, refs


def _shortened(values: Iterable[Any], level: Detail) -> dict[int, tuple[Any, Any]]:
    """The arrays that this level of detail summarises, by identity, each with its summary."""
    large: dict[int, Any] = {}
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += value
        elif isinstance(value, Summary):
            if level is not LEVELS[0]:
                large[id(value)] = value
        elif value is not None and value.size > level.whole:
            large[id(value)] = value
    arrays = [value for value in large.values() if not isinstance(value, Summary)]
    short = {id(value): (value, told) for value, told in zip(arrays, summaries(arrays, level.cells), strict=True)}
    told = (value for value in large.values() if isinstance(value, Summary))
    return short | {id(value): (value, coarser(value, level.cells)) for value in told}


def _in_detail(value: Any, short: dict[int, tuple[Any, Any]]) -> Any:
    def picture_of(leaf: Any) -> Any:
        found = short.get(id(leaf))
        return leaf if found is None or found[0] is not leaf else found[1]

    return map_leaves(picture_of, value)


# ----------------------------------------------------------------------------
# The data of a page as JSON
#
# Columns of events by device, each value and each table once.


def page_data(trace: Trace, source_root: Path | None = None, partitioned: Partitioned | None = None) -> dict[str, Any]:
    """The data of a step page as values of JSON; `graph` is the picture of the program as svg."""
    cut = tiled(trace, partitioned)
    trace = with_standing(trace)
    place = _places(trace)
    values = fitted(trace)
    picture, graph = drawn(trace.program, partitioned)
    tables = _Tables()
    scopes = scopes_of(trace.program)
    of_events = {number: tables.add(each, _table) for number, each in trace.origins.items()}
    of_events |= {number: tables.add(each, _across) for number, each in trace.across.items()}
    return {
        "title": _name(trace.program),
        "facts": [*_facts(trace, partitioned)],
        "verdict": trace.verdict and {key: trace.verdict[key] for key in ("kind", "refused", "text")},
        "stop": stopped(trace),
        "reasons": reasons(trace),
        "left_out": "; ".join(filter(None, (trace.left_out, values.left_out))),
        "devices": trace.num_devices,
        "labels": _labels(trace.program, partitioned),
        "layouts": cut.layouts,
        "arrays": cut.arrays,
        "end": trace.end,
        "spots": [
            told(spot, source_root)
            | cut.of_spot.get(spot.instruction.name, {})
            | {
                "b": in_line(scopes.of(spot.instruction)),
                "in": operands,
                "up": caller,
                "l": [[loop.name, loop.condition, loop.itself] for loop in loops],
            }
            for spot, operands, caller, loops in zip(
                over(trace.spots, "writing the page", "instructions"),
                _operands(trace),
                _callers(trace),
                trace.loops,
                strict=True,
            )
        ],
        "ops": {each: [sentence(each.replace("-", "_")), rules(each.replace("-", "_"))] for each in _opcodes(trace)},
        "boxes": boxes(picture, trace.spots),
        "cut": any(note.startswith("large") for note in picture.notes),
        "lanes": [
            _lane(trace, events, values.refs, of_events)
            for events in over(trace.of_device.values(), "writing the page", "devices")
        ],
        "meets": [_meeting(trace, meeting, place) for meeting in trace.meetings],
        "sends": [[t.source, place[t.send], t.target, place[t.done], t.channel] for t in trace.transfers],
        "values": values.data,
        "tables": tables.items,
        "marks": marks(trace, place),
        "graph": graph,
    }


def _name(program: Module | ModuleGroup) -> str:
    if isinstance(program, Module):
        return program.name
    names = [*dict.fromkeys(module.name for module in program.modules.values())]
    return " · ".join([*names[:3], f"and {len(names) - 3} more"] if len(names) > 4 else names)


def _facts(trace: Trace, partitioned: Partitioned | None) -> Iterator[str]:
    program = trace.program
    if partitioned is not None:
        yield in_line(" x ".join(f"{axis}={size}" for axis, size in partitioned.mesh.sizes))
    modules = [program] if isinstance(program, Module) else list(program.modules.values())
    if isinstance(program, Module) and program.num_partitions == 1:
        yield f"{program.num_replicas} replica{'s' * (program.num_replicas != 1)}"
    else:
        yield f"{trace.num_devices} device{'s' * (trace.num_devices != 1)}"
    count = sum(len(c.instructions) for module in dict.fromkeys(modules) for c in module.computations)
    yield f"{count:,} instruction{'s' * (count != 1)}"
    yield f"{len(trace):,} event{'s' * (len(trace) != 1)}"


def _labels(program: Module | ModuleGroup, partitioned: Partitioned | None) -> list[str]:
    """The names of the devices, with their coordinates if the mesh is known."""
    if isinstance(program, ModuleGroup):
        return [f"device {d}" for d in sorted(program.modules)]
    if program.num_partitions == 1 and partitioned is None:
        return [f"replica {r}" for r in range(program.num_replicas)]
    if program.num_replicas > 1:
        pairs = (divmod(d, program.num_partitions) for d in range(program.num_devices))
        return [f"replica {r}, partition {p}" for r, p in pairs]
    mesh = _known_mesh(program) if partitioned is None else partitioned.mesh
    if mesh is None or mesh.num_devices != program.num_devices:
        return [f"device {d}" for d in range(program.num_devices)]
    return [in_line(f"device {d} ({mesh.coordinates_text(d)})") for d in range(program.num_devices)]


def _known_mesh(program: Module) -> Mesh | None:
    """The mesh of a program that its header or its shardings name."""
    try:
        return mesh_of(program) or mesh_of_shardings(program)
    except XbuildError:
        return None


def _opcodes(trace: Trace) -> list[str]:
    return sorted({spot.instruction.opcode.replace("_", "-") for spot in trace.spots})


def _places(trace: Trace) -> list[int]:
    """The place of each event on the lane of its device."""
    place = np.empty(len(trace), np.int64)
    for events in trace.of_device.values():
        place[events] = np.arange(len(events))
    return place.tolist()


def _callers(trace: Trace) -> Iterator[int]:
    """For each spot the spot of the op that calls its computation, -1 where the op was not executed."""
    known = {(*spot.path, spot.instruction.name): number for number, spot in enumerate(trace.spots)}
    for spot in trace.spots:
        label = spot.path[-1].partition(" branch ")[0] if spot.path else ""
        yield known.get((*spot.path[:-1], label), -1)


def _operands(trace: Trace) -> Iterator[list[int]]:
    """For each spot the spots of its operands, -1 where an operand was not executed."""
    known = {(spot.path, spot.instruction): number for number, spot in enumerate(trace.spots)}
    for spot in trace.spots:
        yield [known.get((spot.path, operand), -1) for operand in spot.instruction.operands]


def _lane(trace: Trace, events: Array, refs: Sequence[int], tables: Mapping[int, int]) -> dict[str, Any]:
    """The lane of a device: its spots in order, its waits, and the values and tables of its events."""
    waited = trace.time[events] - trace.since[events]
    places = np.flatnonzero(waited)
    numbers = events.tolist()
    return {
        "spots": small_ints(trace.spot[events]),
        "waits": np.stack([places, waited[places]], axis=1).tolist(),
        "values": small_ints(np.array([refs[number] for number in numbers], np.int64)),
        "tables": small_ints(np.array([tables.get(number, -1) for number in numbers], np.int64)),
    }


def _meeting(trace: Trace, meeting: TracedMeeting, place: Sequence[int]) -> dict[str, Any]:
    """The time of a meeting, the places of the members' events, and those of the events that brought the operands."""
    events = [[int(trace.device[event]), place[event]] for event in meeting.events]
    brought = [place[bringing(trace, event)] for event in meeting.events]
    same = all(b == e for b, (_, e) in zip(brought, events, strict=True))
    return {"n": meeting.instruction.name, "t": meeting.time, "e": events} | ({} if same else {"b": brought})


def _table(table: Array | None) -> dict[str, Any] | None:
    return None if table is None else {"k": table.shape[1], **small_ints(table)}


def _across(across: Across) -> dict[str, Any]:
    """The provenance across devices as one array: the tables of devices, operands and elements, one after the other."""
    columns = np.stack([across.device, across.operand, across.element])
    return {"part": across.part, "k": across.element.shape[1], **small_ints(columns)}


@define
class _Tables:
    """The tables of origins, each stored once."""

    items: list[Any] = field(factory=list)
    _known: dict[int, int] = field(factory=dict)

    def add(self, tables: Sequence[Any], spelled: Callable[[Any], Any]) -> int:
        number = self._known.get(id(tables))
        if number is None:
            number = self._known[id(tables)] = len(self.items)
            self.items.append([spelled(each) for each in tables])
        return number
