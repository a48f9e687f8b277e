"""Cuts: a module without some of its instructions, results, calls or loop-carried values.

Sections:

    Names of parts, and the walk that changes computations
    Cuts of instructions and results: what replaces a value that is removed and still used
    Calls: inlined, one trip of a loop, one branch of a conditional
    Loop-carried values
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve

from shape_inference import AnyShape, Shape, TokenShape, TupleShape, compatible, leaves

from ..core.graph import NOTHING, Computation, Instruction, Module
from ..core.op import OPS
from ..editing.rebuild import kept_annotations
from ..editing.refusals import infer_edited_shape
from ..properties.effects import DONE_OF, START_OF, has_effect
from ..properties.order import live_instructions, ordered, users_of
from ..properties.rewriting import inlined, rewired, with_called

# ----------------------------------------------------------------------------
# Names of parts, and the walk that changes computations

Part: TypeAlias = tuple[str, str]
"""An instruction, by the name of its computation and its own."""

Done: TypeAlias = Mapping[Computation, Computation]
"""What computations have become."""


def callers_first(module: Module) -> list[Computation]:
    """The entry and the computations that it calls, each after its callers."""
    return [*reversed(module.entry.reachable())]


class Remainder:
    """A computation under construction: instructions on what their operands have become, with fresh names."""

    def __init__(self, computation: Computation, done: Done) -> None:
        self.computation, self.done = computation, done
        self.now: dict[Instruction, Instruction] = {}
        self.made: dict[Instruction, None] = {}
        self._names = {each.name for each in computation.instructions}
        self._zeros: dict[str, Instruction] = {}

    def keep(self, instruction: Instruction, **changes: Any) -> Instruction:
        """Add an instruction; its shape is inferred again if an operand, an attribute or a callee has changed."""
        called = [self.done.get(each, each) for each in instruction.called]
        version = rewired(instruction, self.now, called or None, **changes)
        if any(each not in self.made for each in version.control):
            version = evolve(version, control=tuple([each for each in version.control if each in self.made]))
        was, now = ([each.shape for each in side.operands] for side in (instruction, version))
        is_moved = len(was) != len(now) or not all(map(compatible, was, now))
        if is_moved or version.attributes is not instruction.attributes:
            shape = infer_edited_shape(version, version.operands, "a part of the program is removed")
            version = version if compatible(shape, version.shape) else evolve(version, shape=shape)
        return self.add(version, instruction)

    def add(self, version: Instruction, instruction: Instruction | None = None) -> Instruction:
        """Add an instruction as it is, in place of another."""
        self.made[version] = None
        if instruction is not None:
            self.now[instruction] = version
        return version

    def name(self, word: str) -> str:
        """A name that no instruction has: the word, or the word with a number."""
        number, name = 0, word
        while name in self._names:
            number += 1
            name = f"{word}.{number}"
        self._names.add(name)
        return name

    def record(self, opcode: str, operands: Sequence[Instruction] = (), **attributes: Any) -> Instruction:
        """Add a new instruction."""
        schema = OPS[opcode]
        attribute_record = schema.read(attributes) if schema.names else None
        segments = None if schema.is_flat else (len(operands),)
        draft = Instruction(
            opcode, self.name(schema.spelling), TokenShape(), tuple(operands), segments, attribute_record
        )
        return self.add(evolve(draft, shape=infer_edited_shape(draft, draft.operands, "it replaces a removed part")))

    def zeros(self, shape: AnyShape) -> Instruction:
        """A value of this shape that depends on nothing."""
        key = str(shape.plain())
        if key not in self._zeros:
            if isinstance(shape, TokenShape):
                self._zeros[key] = self.record("after_all")
            elif isinstance(shape, TupleShape):
                self._zeros[key] = self.record("tuple", [self.zeros(each) for each in shape.elements])
            else:
                zero = self.record("constant", literal=np.zeros((), shape.dtype.dtype))
                wide = {"sizes": shape.dims, "dimensions": ()}
                self._zeros[key] = self.record("broadcast", [zero], **wide) if shape.dims else zero
        return self._zeros[key]

    def build(self, root: Instruction) -> Computation:
        """The computation of what the root, an effect or a signature needs."""
        live = live_instructions(self.made, root, is_kept=lambda each: each.opcode == "parameter" or has_effect(each))
        return Computation(self.computation.name, tuple([each for each in self.made if each in live]), root)


Change: TypeAlias = Callable[[Computation, Done], Computation]


def changed(module: Module, change: Change) -> Module:
    """The module with each computation changed, callees first; `change` may return a computation as it is.

    Callers of changed computations are rebuilt. Computations that are no longer called are removed, and so are unused
    parameters of the entry.
    """
    done: dict[Computation, Computation] = {}
    for computation in module.entry.reachable():
        made = change(computation, done)
        if made is computation and any(done[each] is not each for call in computation.calls for each in call.called):
            made = _rebuilt(computation, done)
        done[computation] = made
    entry = _without_unused_parameters(done[module.entry])
    computations = entry.reachable()
    if len({each.name for each in computations}) < len(computations):
        raise ValueError("two computations have the same name")
    annotations = kept_annotations(module.annotations, module.entry, entry)
    return evolve(module, entry=entry, computations=computations, annotations=annotations)


def _rebuilt(computation: Computation, done: Done) -> Computation:
    body = Remainder(computation, done)
    for instruction in ordered(computation):
        body.keep(instruction)
    return body.build(body.now[computation.root])


def _without_unused_parameters(entry: Computation) -> Computation:
    """The entry without parameters that nothing uses; the others are numbered in their order."""
    used = {operand for each in entry.instructions for operand in (*each.operands, *each.control)} | {entry.root}
    kept = [each for each in entry.parameters if each in used]
    numbers = {each: number for number, each in enumerate(kept)}
    if len(kept) == len(entry.parameters) and all(each.attributes.number == numbers[each] for each in kept):
        return entry
    body = Remainder(entry, {})
    for instruction in ordered(entry):
        if instruction in numbers:
            attributes = evolve(instruction.attributes, number=numbers[instruction])
            body.add(evolve(instruction, attributes=attributes), instruction)
        elif instruction.opcode != "parameter":
            body.keep(instruction)
    return body.build(body.now[entry.root])


def has_only_arrays(shape: AnyShape) -> bool:
    return all(isinstance(leaf, Shape) for leaf in leaves(shape))


# ----------------------------------------------------------------------------
# Cuts of instructions and results: what replaces a value that is removed and still used


def instructions(module: Module) -> list[Part]:
    """The instructions that a cut may remove, callers first; a start stands for its updates and its done."""
    return [part for computation in callers_first(module) for part in _instructions(computation)]


def instructions_of_entry(module: Module) -> list[Part]:
    """The instructions of the entry that a cut may remove."""
    return _instructions(module.entry)


def _instructions(computation: Computation) -> list[Part]:
    root = computation.root
    return [
        (computation.name, each.name)
        for each in ordered(computation)
        if each.opcode != "parameter" and not (each is root and each.opcode == "tuple") and not _is_later_half(each)
    ]


def _is_later_half(instruction: Instruction) -> bool:
    """Whether an instruction is the done or an update of a start that is its operand."""
    if instruction.opcode not in START_OF and instruction.opcode != "async_update":
        return False
    return any(each.opcode in DONE_OF or each.opcode == "async_update" for each in instruction.operands)


def channels(module: Module) -> list[int]:
    """The channels of the module, by number."""
    return sorted({number for _, number in _channel_parts(module)})


def without_channels(module: Module, numbers: Collection[int]) -> Iterator[Module]:
    """The module without the instructions on these channels."""
    yield cut(module, [part for part, number in _channel_parts(module) if number in numbers], forward=True)


def _channel_parts(module: Module) -> Iterator[tuple[Part, int]]:
    for computation in callers_first(module):
        for each in computation.instructions:
            number = getattr(each.attributes, "channel_id", None)
            if number is not None and not _is_later_half(each):
                yield (computation.name, each.name), number


def results(module: Module) -> list[int]:
    """The places in the tuple of the entry's results."""
    root = module.entry.root
    return [*range(len(root.operands))] if root.opcode == "tuple" else []


def without_results(module: Module, places: Collection[int]) -> Iterator[Module]:
    """The module without these results; a single result that is left is returned without its tuple."""
    if len(places) < len(module.entry.root.operands):
        kept = [each for place, each in enumerate(module.entry.root.operands) if place not in places]
        yield changed(module, lambda each, done: _Cut(each, done).cut(kept) if each is module.entry else each)


def cut(module: Module, parts: Iterable[Part], *, forward: bool = False, expose: bool = False) -> Module:
    """The module without these instructions, and without those that only they used.

    With `forward`, an operand of the same shape replaces a removed value that is still used, where it has one;
    otherwise a parameter replaces it in the entry, and zeros in other computations. With `expose`, values of the entry
    of which all users are removed become results, so that they stay.
    """
    removed: dict[str, set[str]] = {}
    for computation, name in parts:
        removed.setdefault(computation, set()).add(name)

    def change(computation: Computation, done: Done) -> Computation:
        if computation.name not in removed:
            return computation
        part = _Cut(computation, done, removed[computation.name], forward=forward)
        if computation is not module.entry:
            return part.cut(None)
        root = computation.root
        return part.cut(root.operands if root.opcode == "tuple" else (root,), expose=expose)

    return changed(module, change)


class _Cut(Remainder):
    """A computation without some of its instructions, which are given by name."""

    def __init__(
        self, computation: Computation, done: Done, names: Collection[str] = (), *, forward: bool = False
    ) -> None:
        super().__init__(computation, done)
        self.forward, self.is_entry = forward, False
        self.inputs = len(computation.parameters)
        self.gone: set[Instruction] = set()
        for each in ordered(computation):
            if each.name in names or (_is_later_half(each) and not self.gone.isdisjoint(each.operands)):
                self.gone.add(each)

    def cut(self, results: Sequence[Instruction] | None, *, expose: bool = False) -> Computation:
        """The computation; `results` are what the entry returns, None where the shape of the root must stay."""
        root, self.is_entry = self.computation.root, results is not None
        for instruction in ordered(self.computation):
            if instruction in self.gone or (self.is_entry and instruction is root and root.opcode == "tuple"):
                continue
            for operand in instruction.operands:
                self.value(operand)
            self.keep(instruction)
        if results is None:
            return self.build(self.value(root))
        kept = [self.now[each] for each in results if each not in self.gone]
        if expose or not kept:
            kept += self._exposed(kept)
        return self.build(self._root(kept))

    def _exposed(self, results: Sequence[Instruction]) -> list[Instruction]:
        """The arrays that nothing uses any more, though a removed instruction did."""
        used = {operand for each in self.made for operand in each.operands} | {*results}
        once = {operand for each in self.gone for operand in each.operands}
        once |= {self.computation.root, *self.computation.root.operands}
        ends = ("parameter", "constant", "iota")
        kept = [self.now[each] for each in ordered(self.computation) if each in once and each in self.now]
        return [
            each for each in dict.fromkeys(kept)
            if each not in used and each.opcode not in ends and has_only_arrays(each.shape)
        ]  # fmt: skip

    def _root(self, results: Sequence[Instruction]) -> Instruction:
        """The root for these results; without one, the last value, or a parameter in place of the root."""
        if len(results) == 1:
            return results[0]
        if results:
            old = self.computation.root
            name = old.name if old.opcode == "tuple" else self.name("tuple")
            shape = TupleShape(each.shape for each in results)
            return self.add(Instruction("tuple", name, shape, tuple(results), (len(results),)))
        made = [each for each in self.made if each.opcode != "parameter"]
        arrays = [each for each in made if has_only_arrays(each.shape)]
        return (arrays or made)[-1] if made else self.value(self.computation.root)

    def value(self, instruction: Instruction) -> Instruction:
        """What an instruction has become, or what replaces it where it is used."""
        if instruction not in self.now:
            found = self._forwarded(instruction) if self.forward else None
            self.now[instruction] = self._stand_in(instruction) if found is None else found
        return self.now[instruction]

    def _forwarded(self, instruction: Instruction) -> Instruction | None:
        """The nearest value of the same shape from which a removed one is computed."""
        queue, seen = [instruction], {instruction}
        for each in queue:
            for operand in each.operands:
                if operand in self.now and compatible(self.now[operand].shape, instruction.shape):
                    return self.now[operand]
                if operand in self.gone and operand not in seen:
                    seen.add(operand)
                    queue.append(operand)
        return None

    def _stand_in(self, instruction: Instruction) -> Instruction:
        """A value of the same name and shape that depends on nothing."""
        shape = instruction.shape.plain()
        if isinstance(shape, TokenShape):
            return self.add(Instruction("after_all", instruction.name, shape, (), (0,)))
        if not self.is_entry or not has_only_arrays(shape):
            return self.zeros(shape)
        self.inputs += 1
        attributes = OPS["parameter"].read({"number": self.inputs - 1, "shape": shape})
        return self.add(Instruction("parameter", instruction.name, shape, attributes=attributes))


Pair: TypeAlias = tuple[str, str]
"""A parameter of the entry, and an earlier one of the same shape."""


def alike_parameters(module: Module) -> list[Pair]:
    """The parameters of the entry that an earlier one could replace."""
    parameters = module.entry.parameters
    return [
        (each.name, other.name)
        for place, each in enumerate(parameters)
        for other in parameters[:place]
        if compatible(each.shape, other.shape)
    ]


def with_merged_parameters(module: Module, pairs: Collection[Pair]) -> Iterator[Module]:
    """The module with one parameter in place of another."""
    names = dict(pairs)

    def change(computation: Computation, done: Done) -> Computation:
        if computation is not module.entry:
            return computation
        body = Remainder(computation, done)
        for instruction in (*computation.parameters, *ordered(computation)):
            if instruction.name in names and instruction.opcode == "parameter":
                body.now[instruction] = body.now[computation[names[instruction.name]]]
            elif instruction not in body.now:
                body.keep(instruction)
        return body.build(body.now[computation.root])

    yield changed(module, change)


# ----------------------------------------------------------------------------
# Calls: inlined, one trip of a loop, one branch of a conditional


def calls(module: Module) -> list[Part]:
    """The calls, fusions, loops and conditionals, which a callee can replace."""
    return [
        (computation.name, each.name)
        for computation in callers_first(module)
        for each in computation.calls
        if each.opcode in ("call", "fusion", "while", "conditional")
    ]


def inlined_calls(module: Module, parts: Collection[Part]) -> Iterator[Module]:
    """The module with the callee in place of these calls: the body of a loop once, or one branch of a conditional."""
    most = max(
        (len(each.called) for c in callers_first(module) for each in c.calls if (c.name, each.name) in parts), default=1
    )
    chosen = {*parts}
    for branch in range(most):

        def change(computation: Computation, done: Done, branch: int = branch) -> Computation:
            if not any((computation.name, each.name) in chosen for each in computation.calls):
                return computation
            body = Remainder(computation, done)
            for instruction in ordered(computation):
                if (computation.name, instruction.name) in chosen:
                    _inline(body, instruction, branch)
                else:
                    body.keep(instruction)
            return body.build(body.now[computation.root])

        yield changed(module, change)


def _inline(body: Remainder, call: Instruction, branch: int) -> None:
    operands = [body.now[each] for each in call.operands]
    if call.opcode == "while":
        called = call.attributes.body
    elif call.opcode == "conditional":
        number = min(branch, len(call.called) - 1)
        called, operands = call.called[number], [operands[1 + number]]
    else:
        (called,) = call.called
    added, result = inlined(body.done.get(called, called), operands, (), body.name)
    for each in added:
        body.add(each)
    body.now[call] = result


# ----------------------------------------------------------------------------
# Loop-carried values

Carried: TypeAlias = tuple[str, str, str]
"""A loop-carried value: the computation and the name of the loop, and the value with which it begins."""


def carried_values(module: Module) -> list[Carried]:
    """The loop-carried values that can be removed: elements of a tuple that is taken apart wherever it is used."""
    return [
        (computation.name, loop.name, name)
        for computation in callers_first(module)
        for loop in _open_loops(module, computation)
        for name in _names_of_elements(loop)
    ]


def _names_of_elements(loop: Instruction) -> list[str]:
    """The names of the elements of the initial tuple, each with its number among equal names."""
    init = loop.operands[0]
    if init.opcode == "parameter":
        return [f"{init.name}#{place}" for place in range(len(init.shape.elements))]  # type: ignore[union-attr]
    seen: Counter[str] = Counter()
    names = []
    for operand in init.operands:
        names.append(f"{operand.name}#{seen[operand.name]}")
        seen[operand.name] += 1
    return names


def _open_loops(module: Module, computation: Computation) -> list[Instruction]:
    """The loops of a computation on a tuple of which each use takes one element."""
    callers = Counter(called for c in module.computations for call in c.calls for called in call.called)
    users = users_of(computation)

    def is_open(value: Instruction, users: Mapping[Instruction, Sequence[Instruction]]) -> bool:
        return all(user.opcode == "get_tuple_element" for user in users[value])

    def is_own_parameter(init: Instruction) -> bool:
        is_input = init.opcode == "parameter" and computation is module.entry and init is not computation.root
        return is_input and isinstance(init.shape, TupleShape) and len(users[init]) == 1

    def is_open_state(called: Computation) -> bool:
        return callers[called] == 1 and is_open(called.parameters[0], users_of(called)) and (
            called.parameters[0] is not called.root
        )  # fmt: skip

    return [
        each
        for each in computation.calls
        if each.opcode == "while"
        and (each.operands[0].opcode == "tuple" or is_own_parameter(each.operands[0]))
        and each.attributes.body.root.opcode == "tuple"
        and (each is not computation.root or computation is module.entry)
        and is_open(each, users)
        and all(map(is_open_state, each.called))
    ]


def without_carried_values(module: Module, values: Collection[Carried]) -> Iterator[Module]:
    """The module whose loops do not carry these values: the body reads zeros, and later users the initial value."""
    chosen = {*values}
    dropped: dict[Instruction, set[int]] = {}  # of each loop
    of_state: dict[Computation, set[int]] = {}  # of each condition and body
    for computation in callers_first(module):
        for loop in _open_loops(module, computation):
            names = _names_of_elements(loop)
            places = {n for n, name in enumerate(names) if (computation.name, loop.name, name) in chosen}
            if places:
                dropped[loop] = places
                of_state.update(dict.fromkeys(loop.called, places))

    def change(computation: Computation, done: Done) -> Computation:
        state = of_state.get(computation)
        if state is None and not any(each in dropped for each in computation.calls):
            return computation
        body = Remainder(computation, done)
        states = {computation.parameters[0]: state} if state is not None else {}
        inputs = {
            loop.operands[0]: places for loop, places in dropped.items() if loop.operands[0].opcode == "parameter"
        }
        for instruction in ordered(computation):
            source = instruction.operands[0] if instruction.opcode == "get_tuple_element" else None
            if source in dropped:
                _take_element(body, instruction, dropped[source], source.operands[0].operands or None)
            elif source is not None and source in states:
                _take_element(body, instruction, states[source], None)
            elif instruction in dropped and instruction.operands[0] in inputs:
                body.add(_loop(body, instruction, body.now[instruction.operands[0]]), instruction)
            elif instruction in dropped:
                elements = [body.now[each] for each in instruction.operands[0].operands]
                init = body.record("tuple", _without(elements, dropped[instruction]))
                body.add(_loop(body, instruction, init), instruction)
            elif instruction in states or (instruction in inputs and computation is module.entry):
                shapes, gone = instruction.shape.elements, states.get(instruction) or inputs[instruction]  # type: ignore[union-attr]
                shape = TupleShape(_without(shapes, gone))
                attributes = evolve(instruction.attributes, shape=shape.plain())
                body.add(evolve(instruction, shape=shape, attributes=attributes), instruction)
            elif state is not None and instruction is computation.root and instruction.opcode == "tuple":
                kept = _without([body.now[each] for each in instruction.operands], state)
                body.now[instruction] = body.record("tuple", kept)
            else:
                body.keep(instruction)
        return body.build(body.now[computation.root])

    if dropped:
        yield changed(module, change)


def _take_element(
    body: Remainder, element: Instruction, dropped: Collection[int], initial: Sequence[Instruction] | None
) -> None:
    """Read an element of a state that has lost some of them: a lost one is its initial value, or zeros in the loop."""
    index = element.attributes.index
    if index in dropped:
        body.now[element] = body.zeros(element.shape) if initial is None else body.now[initial[index]]
    else:
        now = index - sum(place < index for place in dropped)
        body.keep(element, attributes=evolve(element.attributes, index=now))


def _loop(body: Remainder, loop: Instruction, init: Instruction) -> Instruction:
    called = [body.done.get(each, each) for each in loop.called]
    version = evolve(loop, operands=(init,), control=(), attributes=with_called(loop, called), annotations=NOTHING)
    return evolve(version, shape=infer_edited_shape(version, (init,), "a loop-carried value is removed"))


def _without(items: Sequence[Any], places: Collection[int]) -> list[Any]:
    return [each for place, each in enumerate(items) if place not in places]
