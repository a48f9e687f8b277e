"""Programs as XLA hands them to Shardy: calls inlined, constraints as ops of Shardy's, top_k as a custom call."""

from __future__ import annotations

import itertools
import re

from attrs import evolve

from xbuild.core.graph import Computation, Instruction, Module
from xbuild.properties.rewriting import inlined, mapped, with_called

CONSTRAINT = re.compile(
    r"stablehlo\.custom_call @Sharding\((?P<operand>%\S+)\) \{.*?xla\.sdy\.sharding = \"#sdy\.sharding_per_value"
    r"<\[<(?P<sharding>.*?)>\]>\".*?\} : \(.*?\) -> (?P<type>tensor<[^>]*>)"
)
TOP_K = re.compile(r"chlo\.top_k\((?P<operand>%\S+), k = (?P<k>\d+)\) : (?P<type>tensor<[^>]*>) -> ")


def prepared(module: Module) -> Module:
    """The module without calls, with names of instructions that no two computations share."""
    counter = itertools.count(1)
    return mapped(without_calls(module), lambda each: evolve(each, name=f"v{next(counter)}"))


def without_calls(module: Module) -> Module:
    """The module with the instructions of what is called in place of each call, as Shardy's import wants it."""
    done: dict[Computation, Computation] = {}
    for computation in module.entry.reachable():
        made: dict[Instruction, Instruction] = {}
        listed: list[Instruction] = []
        for instruction in computation.instructions:
            made[instruction] = _inlined(instruction, made, listed, done)
        done[computation] = Computation(computation.name, listed, made[computation.root])
    return evolve(module, entry=done[module.entry], computations=())


def _inlined(
    instruction: Instruction,
    made: dict[Instruction, Instruction],
    listed: list[Instruction],
    done: dict[Computation, Computation],
) -> Instruction:
    if instruction.opcode != "call":
        now = with_called(instruction, [done[each] for each in instruction.called])
        listed.append(evolve(instruction, operands=tuple(made[o] for o in instruction.operands), attributes=now,
                             control=()))  # fmt: skip
        return listed[-1]
    operands = [made[each] for each in instruction.operands]
    added, result = inlined(done[instruction.called[0]], operands, (), lambda name: name)
    listed += added
    return result


def imported(text: str) -> str:
    """The text with `sdy.sharding_constraint` for custom calls of Sharding, and mhlo.topk for chlo.top_k."""
    return TOP_K.sub(_top_k, CONSTRAINT.sub(_constraint, text))


def _constraint(found: re.Match[str]) -> str:
    sharding = found["sharding"].replace("\\22", '"')
    return f"sdy.sharding_constraint {found['operand']} <{sharding}> : {found['type']}"


def _top_k(found: re.Match[str]) -> str:
    attributes = f"{{mhlo.attributes = {{k = {found['k']} : i64, largest = true}}, mhlo.version = 1 : i64}}"
    return f"stablehlo.custom_call @mhlo.topk({found['operand']}) {attributes} : ({found['type']}) -> "
