"""Our rules beside Shardy's own, which its pass writes down, on the instructions of all cases."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

import xbuild as xb
from shape_inference import Shape, leaves
from tests.sharding.propagation.shardy import RULES, ask
from tests.sharding.rules.test_rules import FAMILIES
from tests.support.measured import is_newer_jaxlib
from xbuild.core.graph import Instruction
from xbuild.core.op import OPS
from xbuild.sharding.rules import role_of, rule_of

Plain = tuple[tuple[tuple[tuple[Any, ...], ...], ...], ...]
"""For each array and dimension the factors that it shares, as (number, size, kind)."""

DIFFERENT = {
    "all_reduce": "operands of one all-reduce are independent of each other",
    "convolution": "places in a window are a sum over parts only where one window covers the dimension",
    "pad": "an array that is padded below and cropped above moves, though its extent stays",
    "scatter": "updates by and, or and xor may come in any order, too",
}
"""Ops with instructions whose rule is another, and why."""
DIFFERENT_NEWER = DIFFERENT.keys() - {"pad"} | {"bitcast", "dynamic_update_slice", "reshape"}
"""The same for Shardy after jaxlib 0.10, which permutes a dimension that an op splits or overwrites in part."""


def plain(maps: list[Any], sizes: dict[Any, int], kinds: dict[Any, str], blocked: set[Any]) -> Plain:
    """A rule without names: factors of one array alone, and blocked ones, tell nothing but that they are there."""
    uses = Counter(f for dims in maps for dim in dims for f in dim)
    names: dict[Any, int] = {}
    found = []
    for dims in maps:
        row = []
        for dim in dims:
            shared = [
                f for f in dim if sizes[f] > 1 and f not in blocked and (uses[f] > 1 or kinds.get(f) == "reduction")
            ]
            row.append(tuple((names.setdefault(f, len(names)), sizes[f], kinds.get(f, "")) for f in shared))
        found.append(tuple(row))
    return tuple(found)


def of_text(text: str) -> Plain:
    """Shardy's text of a rule."""
    given, made, sizes, rest = re.match(r"<\((.*)\)->\((.*?)\)(?: \{(.*?)\})?(.*)>$", text).groups()  # type: ignore[union-attr]
    extents = {name.strip(): int(size) for name, size in (each.split("=") for each in (sizes or "").split(",") if each)}
    listed = {word: {n.strip() for n in names.split(",")} for word, names in re.findall(r"(\w+)=\{(.*?)\}", rest)}
    blocked = listed.pop("blocked_propagation", set())
    kinds = {name: word for word, names in listed.items() for name in names}
    return plain(_maps(given) + _maps(made), extents, kinds, blocked)


def _maps(text: str) -> list[Any]:
    found = []
    for dims in re.findall(r"\[(.*?)\]", text):
        found.append([re.findall(r"[a-z](?:_\d+)?", dim) for dim in dims.split(",")] if dims.strip() else [])
    return found


def of_ours(instruction: Instruction) -> Plain:
    rule = rule_of(instruction)
    assert rule is not None
    sizes = {n: factor.size for n, factor in enumerate(rule.factors)}
    kinds = {n: factor.kind for n, factor in enumerate(rule.factors) if factor.kind != "pass_through"}
    blocked = {n for n, factor in enumerate(rule.factors) if factor.is_blocked}
    return plain([*rule.operands, *rule.results], sizes, kinds, blocked)  # type: ignore[arg-type]


def instructions() -> list[tuple[Instruction, str]]:
    """The instructions of all cases that StableHLO has one operation for, each alone as a program."""
    found, seen = [], set()
    for module in FAMILIES.values():
        for case in module.CASES:
            for instruction in case.computation().instructions:
                shapes = [each.shape for each in (*instruction.operands, instruction)]
                dims = [leaf.dims for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape)]
                key = (instruction.opcode, str(dims), str(instruction.attribute_values()))
                is_plain = all(isinstance(leaf, Shape) and not leaf.is_dynamic and 0 not in leaf.dims
                               for shape in shapes for leaf in leaves(shape))  # fmt: skip
                if key not in seen and is_plain and instruction.operands and role_of(instruction.opcode) == "rule":
                    seen.add(key)
                    text = _text(instruction)
                    found += [(instruction, text)] if text else []
    return found


def _text(instruction: Instruction) -> str:
    builder, schema = xb.Builder("alone"), OPS[instruction.opcode]
    parameters = [xb.parameter(builder, number=n, shape=each.shape) for n, each in enumerate(instruction.operands)]
    call = getattr(xb.ops, instruction.opcode, None) or getattr(xb.ops, f"{instruction.opcode}_")
    try:
        root = call(*schema.unflatten(tuple(parameters), instruction.segments), **instruction.attribute_values())
        return xb.Module("alone", builder.build(root)).to_stablehlo()
    except xb.XbuildError:
        return ""


@pytest.mark.oracle
def test_rules_are_those_of_shardy() -> None:
    pytest.importorskip("jaxlib")
    listed = instructions()
    answers = ask([{"text": text, "mesh": '"x"=2', "stated": {}, "results": None, "parameters": [], "pipeline": RULES,
                    "rules": True} for _, text in listed])  # fmt: skip
    same, other = 0, set()
    for (instruction, _), answer in zip(listed, answers, strict=True):
        if len(answer.get("rules", ())) != 1:
            continue
        if of_text(answer["rules"][0]) == of_ours(instruction):
            same += 1
        else:
            other.add(instruction.opcode)
    assert other == (DIFFERENT_NEWER if is_newer_jaxlib() else DIFFERENT.keys())
    assert same > 700
