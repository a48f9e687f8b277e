"""What the values of a run were computed from: across calls, branches and the trips of loops."""

from __future__ import annotations

from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.trees import Path as TreePath
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import IDENTITIES, LOOPS, PLAIN_CALLS, START_OF, branch_number, start_of
from xbuild.properties.placement import is_same
from xbuild.properties.sites import reached
from xbuild.properties.sources import operands_behind

from .rules.calls import earlier_calls
from .value_matching import Key, ObservedValue, ValueRecorder

_PASSED = (IDENTITIES - {"copy"}) | {"get_tuple_element", "tuple"}
"""Ops whose value is that of an operand, and that nobody would call the cause of a difference."""


@frozen
class ValueSite:
    """An instruction on a path of calls, at trips of the loops among them."""

    around: tuple[Instruction, ...]
    trips: tuple[int, ...]
    instruction: Instruction

    @property
    def key(self) -> Key:
        return tuple(map(id, (*self.around, self.instruction))), self.trips

    def beside(self, instruction: Instruction) -> ValueSite:
        """Another instruction of the same computation, at the same trips."""
        return ValueSite(self.around, self.trips, instruction)


@frozen
class Origin:
    """The instruction that computes an array at a site, and the key under which a run has recorded the array.

    The two differ if a call or a tuple returns what another instruction computes. `path` is the place in its results.
    """

    site: ValueSite
    key: Key
    path: TreePath = ()

    @property
    def instruction(self) -> Instruction:
        """The instruction; the start of an op that is done there."""
        own = self.site.instruction
        return (own.opcode in START_OF and start_of(own)) or own

    @property
    def opcode(self) -> str:
        return self.instruction.opcode


@define(eq=False)
class ValueHistory:
    """The values that a run has recorded, and the instructions that compute them."""

    recorder: ValueRecorder
    entry: Computation
    homes: dict[Instruction, Computation] = field(factory=dict, init=False)
    walked: set[Key] = field(factory=set, init=False)
    _operands: dict[Origin, tuple[Origin, ...]] = field(factory=dict, init=False)
    _trips: dict[ValueSite, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for computation in reached(self.entry):
            self.homes.update(dict.fromkeys(computation.instructions, computation))
        self.walked = {(path[:-1], trips) for path, trips in self.recorder.kept}

    def kept(self, origin: Origin) -> ObservedValue | None:
        """The array of each device; None if the run has not recorded it."""
        return self.recorder.kept.get(origin.key)

    def results(self) -> list[Origin]:
        """The origins of the arrays of the result, in order."""
        root = ValueSite((), (), self.entry.root)
        return [self.origin(root, path) for path in _paths(self.entry.root.shape)]

    def operands(self, origin: Origin) -> tuple[Origin, ...]:
        """The origins of the arrays from which an instruction computes its value."""
        if origin not in self._operands and origin.opcode == "while":
            self._operands[origin] = (self.result_of_loop(origin),)
        elif origin not in self._operands:
            given = origin.instruction.operands
            found = [self.origin(origin.site.beside(each), path) for each in given for path in _paths(each.shape)]
            self._operands[origin] = tuple(found)
        return self._operands[origin]

    def origin(self, site: ValueSite, path: TreePath = ()) -> Origin:
        """The instruction that computes the value at a site, or an array of the tuple there."""
        key = site.key
        while True:
            if not path and isinstance(site.instruction.shape, Shape):
                key = site.key
            step = self._step(site, path)
            if step is None:
                return Origin(site, key, path)
            site, path = step

    def _step(self, site: ValueSite, path: TreePath) -> tuple[ValueSite, TreePath] | None:
        """Where the value comes from unchanged; None if the instruction computes it."""
        instruction = site.instruction
        if instruction.opcode in _PASSED or (path and instruction.opcode == "copy"):
            ((operand, inside),) = operands_behind(instruction, path)
            return site.beside(operand), inside
        if instruction.opcode == "custom_call" and is_same(instruction):
            return site.beside(instruction.operands[0]), path
        if instruction.opcode == "parameter":
            return self._argument(site, path)
        if instruction.opcode == "conditional":
            return self._taken(site, path)
        if instruction.opcode == "async_done" and path == () and instruction.operands[0].opcode == "async_start":
            return self._called(site.beside(instruction.operands[0]), path)
        return self._called(site, path) if instruction.opcode in PLAIN_CALLS else None

    def _called(self, site: ValueSite, path: TreePath) -> tuple[ValueSite, TreePath] | None:
        """The result of a call; of an equal earlier one if the run has taken its value."""
        inside = ValueSite((*site.around, site.instruction), site.trips, site.instruction.called[0].root)
        if (inside.key[0][:-1], inside.trips) in self.walked:
            return inside, path
        earlier = earlier_calls(self.homes[site.instruction]).get(site.instruction)
        return None if earlier is None else (site.beside(earlier), path)

    def _taken(self, site: ValueSite, path: TreePath) -> tuple[ValueSite, TreePath] | None:
        index = self.recorder.kept.get(site.beside(site.instruction.operands[0]).key)
        if index is None:
            return None
        number = branch_number(site.instruction, next(iter(index.values.values())))
        root = site.instruction.called[number].root
        return ValueSite((*site.around, site.instruction), site.trips, root), path

    def _argument(self, site: ValueSite, path: TreePath) -> tuple[ValueSite, TreePath] | None:
        """What the caller passes for a parameter, or the trip before returns."""
        if not site.around:
            return None
        caller, number = site.around[-1], site.instruction.attributes.number
        outside = ValueSite(site.around[:-1], site.trips, caller)
        if caller.opcode == "while":
            trip = site.trips[-1]
            if trip > 1:
                before = (*site.trips[:-1], trip - 1)
                return ValueSite(site.around, before, caller.attributes.body.root), path
            return ValueSite(site.around[:-1], site.trips[:-1], caller.operands[0]), path
        if caller.opcode == "conditional":
            number = 1 + caller.called.index(self.homes[site.instruction])
        return (outside.beside(caller.operands[number]), path) if caller.opcode not in LOOPS else None

    def result_of_loop(self, origin: Origin) -> Origin:
        """What computes a result of a loop in its last trip."""
        site, count = origin.site, self.count_trips(origin.site)
        if not count:
            return self.origin(site.beside(site.instruction.operands[0]), origin.path)
        return self.origin(self._inside(site, count, site.instruction.attributes.body), origin.path)

    def condition(self, site: ValueSite, trip: int) -> Origin:
        """What decides whether a loop makes a trip."""
        return self.origin(self._inside(site, trip, site.instruction.attributes.condition))

    def _inside(self, site: ValueSite, trip: int, computation: Computation) -> ValueSite:
        return ValueSite((*site.around, site.instruction), (*site.trips, trip), computation.root)

    def count_trips(self, site: ValueSite) -> int:
        """How many trips of a loop the run has made, by the values of its condition."""
        if site not in self._trips:
            condition, count = site.instruction.attributes.condition, 0
            while self._is_true(self._inside(site, count + 1, condition)):
                count += 1
            self._trips[site] = count
        return self._trips[site]

    def _is_true(self, site: ValueSite) -> bool:
        kept = self.recorder.kept.get(site.key)
        return kept is not None and bool(next(iter(kept.values.values())))


def _paths(shape: AnyShape) -> list[TreePath]:
    """The places of the arrays of a shape."""
    elements = shape.elements if isinstance(shape, TupleShape) else ()
    inside = [(number, *path) for number, each in enumerate(elements) for path in _paths(each)]
    return [()] if isinstance(shape, Shape) else inside
