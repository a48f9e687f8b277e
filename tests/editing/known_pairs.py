"""Pairs of programs whose matching instructions are known: renamed, reordered, fused, or with a layer inserted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import evolve, frozen

import xbuild as xb
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.core.op import OPS
from xbuild.properties.effects import has_effect
from xbuild.properties.order import users_of
from xbuild.properties.rewriting import Rewriter

Random = np.random.Generator
Truth = Mapping[Instruction, Instruction]


@frozen(eq=False)
class KnownPair:
    """Two programs, and the instruction of the second that each instruction of the first became."""

    before: Module
    after: Module
    truth: Truth


class _Kept(Rewriter):
    """A pass that keeps what each instruction becomes."""

    def __init__(self, change: Callable[[Instruction], Instruction]) -> None:
        super().__init__()
        self.change = change
        self.became: dict[Instruction, Instruction] = {}

    def instruction(self, instruction: Instruction) -> Instruction:
        made = self.became[instruction] = self.add(self.rewired(self.change(instruction)))
        return made


def renamed(module: Module, random: Random) -> KnownPair:
    """Every instruction has another name, which says nothing of its opcode."""
    numbers = iter(random.permutation(100_000).tolist())
    change = _Kept(lambda each: evolve(each, name=f"v{next(numbers)}"))
    return KnownPair(module, change.module(module), change.became)


def reordered(module: Module, random: Random) -> KnownPair:
    """Every computation has another order, and every instruction another name."""
    pair = renamed(module, random)
    orders: dict[Computation, Computation] = {}

    class Reordered(Rewriter):
        def __init__(self) -> None:
            super().__init__()
            self.became: dict[Instruction, Instruction] = {}

        def instruction(self, instruction: Instruction) -> Instruction:
            made = self.became[instruction] = self.add(self.rewired(instruction))
            return made

        def computation(self, computation: Computation) -> Computation:
            made = super().computation(computation)
            if computation not in orders:
                orders[computation] = Computation(made.name, tuple(_shuffled(made, random)), made.root)
            return orders[computation]

    change = Reordered()
    after = change.module(pair.after)
    return KnownPair(module, after, {old: change.became[new] for old, new in pair.truth.items()})


def _shuffled(computation: Computation, random: Random) -> list[Instruction]:
    """A random order that respects operands, control edges and the order of effects; parameters come first."""
    effects = [each for each in computation.instructions if has_effect(each)]
    after = {each: {*each.operands, *each.control} for each in computation.instructions}
    for first, second in pairwise(effects):
        after[second].add(first)
    order: list[Instruction] = [*computation.parameters]
    placed = set(order)
    rest = [each for each in computation.instructions if each not in placed]
    while rest:
        ready = [each for each in rest if after[each] <= placed]
        chosen = ready[random.integers(len(ready))]
        order.append(chosen)
        placed.add(chosen)
        rest.remove(chosen)
    return order


_OTHER = {"add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply", "maximum": "minimum",
          "exponential": "exponential_minus_one", "tanh": "sine", "and": "xor", "or": "and", "xor": "or"}  # fmt: skip


def edited(module: Module, random: Random) -> KnownPair:
    """Some elementwise instructions have another opcode, and all have other names."""
    names = iter(random.permutation(100_000).tolist())

    def change(each: Instruction) -> Instruction:
        is_edited = each.opcode in _OTHER and random.random() < 0.1
        return evolve(each, name=f"v{next(names)}", opcode=_OTHER[each.opcode] if is_edited else each.opcode)

    made = _Kept(change)
    return KnownPair(module, made.module(module), made.became)


def fused(module: Module, random: Random, groups: int = 4) -> KnownPair:
    """Groups of elementwise instructions of the entry are in fusions, as after a pass of XLA; all have other names."""
    pair = renamed(module, random)
    truth, after = dict(pair.truth), pair.after
    for _ in range(groups):
        after, moved = _fuse_once(after, random)
        truth = {old: moved.get(new, new) for old, new in truth.items()}
    return KnownPair(module, after, truth)


def _fuse_once(module: Module, random: Random) -> tuple[Module, Truth]:
    entry = module.entry
    users = users_of(entry)
    heads = [each for each in entry.instructions if _is_elementwise(each)]
    if not heads:
        return module, {}
    head = heads[random.integers(len(heads))]
    group, waiting = [head], [*head.operands]
    while waiting and len(group) < 8:
        each = waiting.pop(0)
        if each not in group and _is_elementwise(each) and {*users.get(each, ())} <= {*group}:
            group.append(each)
            waiting += each.operands
    members = [each for each in entry.instructions if each in group]
    outside = dict.fromkeys(operand for each in members for operand in each.operands if operand not in group)
    inner: dict[Instruction, Instruction] = {}
    for number, operand in enumerate(outside):
        record = OPS["parameter"].read({"number": number, "shape": operand.shape})
        inner[operand] = Instruction("parameter", f"p{number}", operand.shape, attributes=record)
    for each in members:
        inner[each] = evolve(each, operands=tuple(inner[operand] for operand in each.operands))
    name = f"fused_{random.integers(1 << 30)}"
    called = Computation(name, tuple(inner.values()), inner[head])
    record = OPS["fusion"].read({"kind": "kLoop", "calls": called})
    became: dict[Instruction, Instruction] = {each: inner[each] for each in members}

    class Fused(Rewriter):
        def instruction(self, instruction: Instruction) -> Instruction:
            if instruction in became and instruction is not head:
                return instruction  # it is in the fusion alone
            if instruction is head:
                operands = tuple(self.now[operand] for operand in outside)
                return self.add(Instruction("fusion", f"{name}.call", head.shape, operands, attributes=record))
            made = self.add(self.rewired(instruction))
            became.setdefault(instruction, made)
            return made

    change = Fused()
    made = change.module(module)
    computations = (*(each for each in made.computations if each is not made.entry), called, made.entry)
    return evolve(made, computations=computations), became


def _is_elementwise(instruction: Instruction) -> bool:
    schema = OPS[instruction.opcode]
    return schema.properties.elements == "same_place" and bool(instruction.operands) and not instruction.control


def with_a_layer(module: Module, random: Random) -> KnownPair:
    """A stack of like layers, the second program with one layer more in a random place; the module is not used."""
    layers = int(random.integers(3, 7))
    extra = int(random.integers(layers + 1))
    kinds = [int(each) for each in random.integers(4, size=layers)]
    before, names = _stack([(str(place), kind) for place, kind in enumerate(kinds)])
    inserted = [(str(place), kind) for place, kind in enumerate(kinds)]
    near = {*kinds[max(extra - 1, 0) : extra + 1]}  # the new layer is of another kind than its neighbours
    inserted.insert(extra, ("new", next(kind for kind in random.permutation(4).tolist() if kind not in near)))
    after, others = _stack(inserted)
    pair = renamed(after, random)
    return KnownPair(before, pair.after, {names[tag]: pair.truth[others[tag]] for tag in names})


def _stack(layers: list[tuple[str, int]]) -> tuple[Module, dict[str, Instruction]]:
    """A residual network of these layers, and its instructions by the layer and the place in it."""
    builder = xb.Builder("stack")
    x = xb.parameter(builder, number=0, shape=xb.f32[8, 16])
    found: dict[str, Any] = {"x": x}
    number = 1
    for tag, kind in layers:
        weights = []
        for shape in ((16, 32), (32, 16)):
            weights.append(xb.parameter(builder, number=number, shape=xb.f32[shape]))
            number += 1
        steps = [*weights]
        steps.append(xb.dot(x, weights[0]))
        steps.append([xb.tanh, xb.logistic, xb.exponential, xb.sin][kind](steps[-1]))
        if kind == 1:
            steps.append(xb.multiply(steps[-1], steps[-2]))
        steps.append(xb.dot(steps[-1], weights[1]))
        if kind == 2:
            steps.append(xb.negate(steps[-1]))
        x = xb.add(x, steps[-1])
        steps.append(x)
        found |= {f"{tag}.{place}": step for place, step in enumerate(steps)}
    module = xb.Module("stack", builder.build(x))
    return module, {tag: value.instruction for tag, value in found.items()}


KINDS: Mapping[str, Callable[[Module, Random], KnownPair]] = {
    "renamed": renamed,
    "reordered": reordered,
    "edited": edited,
    "fused": fused,
    "layer": with_a_layer,
}
