"""Each property that an op declares holds in all cases of the op, and fails in one where it is not declared."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from attrs import fields, frozen

import xbuild as xb
from interpreter.rules import compute
from interpreter.runtime.instruction_values import DeviceIds, rule_of
from shape_inference import Shape, infer
from tests.ops.test_cases import FAMILIES
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.core.op import OPS, op
from xbuild.core.properties import Properties

PROPERTIES = {opcode: schema.properties for opcode, schema in OPS.items()}
COMPUTED = sorted(compute)
ALONE = [opcode for opcode in COMPUTED if PROPERTIES[opcode].needs == "nobody"]
MOVING = [opcode for opcode in ALONE if PROPERTIES[opcode].moves]
PLACES = 12  # of a result, at which an elementwise op is run by itself


@frozen(eq=False, slots=False)
class Run:
    """An instruction of a case whose operands are arguments or constants, and the values of these."""

    instruction: Instruction
    values: tuple[Any, ...]

    def on(self, *values: Any) -> Any:
        rule = rule_of(self.instruction)
        with np.errstate(all="ignore"):
            if rule is not None:
                return rule(DeviceIds(np.uint32(0), np.uint32(0)), values)
            arguments = OPS[self.instruction.opcode].unflatten(values, self.instruction.segments)
            return compute[self.instruction.opcode](*arguments, **self.instruction.attribute_values())

    @functools.cached_property
    def result(self) -> Any:
        return self.on(*self.values)

    @property
    def is_told(self) -> bool:
        """Whether the result has several elements that differ, so that it tells where they come from."""
        return bool(self.values) and len(elements(self.result)) > 1


@functools.cache
def runs() -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for case in (case for family in FAMILIES.values() for case in family.CASES):
        computation = case.computation()
        known = dict(zip(computation.parameters, case.arguments, strict=True))
        known |= {each: each.attributes.literal for each in computation.instructions if each.opcode == "constant"}
        for each in computation.instructions:
            if each.opcode in compute and all(operand in known for operand in each.operands) and is_of_arrays(each):
                found[each.opcode].append(Run(each, tuple(known[operand] for operand in each.operands)))
    return found


def is_of_arrays(instruction: Instruction) -> bool:
    """Whether operands and result are arrays that have elements, of static sizes, and a rule alone gives the result."""
    shapes = [each.shape for each in (instruction, *instruction.operands)]
    are_arrays = all(isinstance(each, Shape) and not each.is_dynamic and each.size for each in shapes)
    return are_arrays and not (instruction.called and rule_of(instruction) is None)


def elements(value: Any) -> set[bytes]:
    return {each.tobytes() for each in np.ravel(value)}


def same(a: Any, b: Any) -> bool:
    """Bit for bit."""
    a, b = np.asarray(a), np.asarray(b)
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


# Where elements come from


def at_places(run: Run) -> bool:
    """Whether single elements of the operands give the element of the result at their place."""
    dims = np.shape(run.result)
    if any(np.shape(value) not in ((), dims) for value in run.values):
        return False
    parts = [tuple(slice(n, n + 1) for n in place) for place in np.ndindex(dims)]
    return all(is_alone(run, part) for part in parts[:PLACES])


def is_alone(run: Run, part: tuple[slice, ...]) -> bool:
    try:
        alone = run.on(*(value[part] if np.ndim(value) else value for value in run.values))
    except (ValueError, IndexError):
        return False
    return same(alone, np.asarray(run.result)[part])


@pytest.mark.parametrize("opcode", ALONE)
def test_an_elementwise_op_acts_at_each_place_alone_and_no_other_does(opcode: str) -> None:
    told = [run for run in runs()[opcode] if run.is_told]
    if PROPERTIES[opcode].elements == "same_place":
        assert all(map(at_places, told))
    elif told and not PROPERTIES[opcode].is_identity:
        assert not all(map(at_places, told))


def is_moved(run: Run) -> bool:
    """Whether the op, run on the numbers of elements, says which of these the result has."""
    schema = OPS[run.instruction.opcode]
    numbered = list(run.values)
    given: list[bytes] = []
    for place in schema.places(schema.properties.moves, run.instruction.segments):
        value = np.asarray(run.values[place], np.asarray(run.result).dtype)
        numbered[place] = np.arange(len(given), len(given) + value.size).reshape(value.shape)
        given += [each.tobytes() for each in np.ravel(value)]
    numbers = compute[schema.opcode](
        *schema.unflatten(tuple(numbered), run.instruction.segments), **run.instruction.attribute_values()
    )
    return [given[n] for n in np.ravel(numbers)] == [each.tobytes() for each in np.ravel(run.result)]


@pytest.mark.parametrize("opcode", MOVING)
def test_a_moving_op_gives_elements_of_its_operands(opcode: str) -> None:
    assert all(map(is_moved, runs()[opcode]))


CHOSEN_BY_THEMSELVES = {"maximum", "minimum", "sort"}
"""Ops that give elements of their operands, whose own values decide which."""


@pytest.mark.parametrize("opcode", sorted({*ALONE} - {*MOVING} - CHOSEN_BY_THEMSELVES))
def test_an_op_that_is_not_said_to_move_makes_an_element_in_some_case(opcode: str) -> None:
    each, told = PROPERTIES[opcode], [run for run in runs()[opcode] if run.values]
    if told and each.elements != "made" and not each.is_identity:
        assert not all(elements(run.result) <= set().union(*map(elements, run.values)) for run in told)


@pytest.mark.parametrize("opcode", [opcode for opcode, each in PROPERTIES.items() if each.moves])
def test_what_a_moving_op_takes_is_moved_or_chooses(opcode: str) -> None:
    each = PROPERTIES[opcode]
    assert sorted(each.moves + each.chosen_by) == sorted(OPS[opcode].operands)
    assert each.elements in ("moved", "same_place")


@pytest.mark.parametrize("opcode", ALONE)
def test_a_view_shares_memory_and_an_identity_gives_its_operand(opcode: str) -> None:
    each, found = PROPERTIES[opcode], [run for run in runs()[opcode] if run.values]
    assert not each.is_view or any(np.shares_memory(run.result, run.values[0]) for run in found)
    assert not each.is_identity or found
    if found:
        assert all(same(run.result, run.values[0]) for run in found) == each.is_identity


def test_ops_that_make_elements_of_nothing_take_sizes_and_bounds_alone() -> None:
    made = {opcode for opcode, each in PROPERTIES.items() if each.elements == "made" and OPS[opcode].operands}
    assert made == {"get_dimension_size", "rng"}


# Order and precision

BINARY = [
    opcode for opcode in ALONE
    if OPS[opcode].operands == ("lhs", "rhs") and not OPS[opcode].names and PROPERTIES[opcode].elements == "same_place"
]  # fmt: skip


def numbers_for(opcode: str) -> Array:
    """All numbers of 8 bits in the first of a few types that the op takes."""
    for dtype in (xb.s8, xb.f32):
        try:
            infer[opcode](dtype[2], dtype[2])
        except xb.XbuildError:
            continue
        return np.arange(-128, 128).astype(dtype.dtype)
    raise AssertionError(opcode)


@pytest.mark.parametrize("opcode", BINARY)
def test_order(opcode: str) -> None:
    values, rule = numbers_for(opcode), compute[opcode]
    a, b = np.repeat(values, 256), np.tile(values, 256)
    c = np.random.default_rng(0).choice(values, a.size)
    with np.errstate(all="ignore"):
        commutes = same(rule(a, b), rule(b, a))
        associates = commutes and values.dtype.kind == "i" and same(rule(rule(a, b), c), rule(a, rule(b, c)))
    assert PROPERTIES[opcode].order == ("any" if associates else "swapped" if commutes else "fixed")


def test_only_elementwise_ops_of_two_operands_have_an_order() -> None:
    assert {opcode for opcode, each in PROPERTIES.items() if each.order != "fixed"} <= {*BINARY}


IN_TEXT_TOO = {"convolution", "dot", "ragged_dot", "scaled_dot"}
"""Ops that mix precisions in HLO text as well."""


def takes_two_precisions(run: Run) -> bool | None:
    """Whether the last floating point operand may have another precision; None where there is one operand."""
    instruction = run.instruction
    shapes = [operand.shape for operand in instruction.operands if isinstance(operand.shape, Shape)]
    floats = [n for n, shape in enumerate(shapes) if shape.dtype in (xb.f32, xb.f64)]
    if len(floats) < 2:
        return None
    last = shapes[floats[-1]]
    shapes[floats[-1]] = last.with_dtype(xb.f64 if last.dtype is xb.f32 else xb.f32)
    try:
        infer[instruction.opcode](
            *OPS[instruction.opcode].unflatten(tuple(shapes), instruction.segments), **instruction.attribute_values()
        )
    except xb.XbuildError:
        return False
    return True


@pytest.mark.parametrize("opcode", [opcode for opcode in ALONE if PROPERTIES[opcode].calls == "nothing"])
def test_precisions(opcode: str) -> None:
    found = {takes_two_precisions(run) for run in runs()[opcode]} - {None}
    assert not found or opcode in IN_TEXT_TOO or found == {PROPERTIES[opcode].mixes_precisions}


# Communication, pairs and calls


@pytest.mark.parametrize("opcode", OPS)
def test_who_is_needed(opcode: str) -> None:
    schema, each = OPS[opcode], PROPERTIES[opcode]
    is_transfer = "is_host_transfer" in schema.names
    meets = not is_transfer and bool({"replica_groups", "source_target_pairs"} & schema.names)
    is_feed = "token" in schema.operands and not is_transfer and not each.is_identity
    assert each.needs == ("peer" if is_transfer else "group" if meets else "host" if is_feed else "nobody")


@pytest.mark.parametrize("opcode", OPS)
def test_halves(opcode: str) -> None:
    each = PROPERTIES[opcode]
    assert (each.half != "none") == (opcode.endswith(("_start", "_done", "_update")) or opcode in ("send", "recv"))
    assert bool(each.done) == (each.half == "start")
    assert each.half != "start" or PROPERTIES[each.done].half == "done"
    assert each.half != "done" or sum(other.done == opcode for other in PROPERTIES.values()) == 1


@pytest.mark.parametrize("opcode", OPS)
def test_an_op_calls_by_its_attributes(opcode: str) -> None:
    assert bool(getattr(OPS[opcode].attributes, "calling", ())) == (PROPERTIES[opcode].calls != "nothing")


@pytest.mark.parametrize("opcode", COMPUTED)
def test_what_a_value_rule_computes_depends_on_operands(opcode: str) -> None:
    """Value rules get operands and attributes alone; what depends on more is written into the plan."""
    of_chance = opcode in ("rng_bit_generator", "stochastic_convert")
    of_the_device = opcode in ("replica_id", "partition_id")
    expected = "implementation" if of_chance else "device" if of_the_device else "operands"
    assert PROPERTIES[opcode].depends_on == expected


# The declaration itself


def test_no_property_is_the_same_for_all_ops() -> None:
    for each in fields(Properties):
        assert len({getattr(properties, each.name) for properties in PROPERTIES.values()}) > 1, each.name


def test_an_op_without_properties_is_no_op() -> None:
    with pytest.raises(TypeError, match="properties"):
        op()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="elements"):
        Properties()  # type: ignore[call-arg]


def test_a_property_of_an_unknown_operand_is_refused() -> None:
    def swirl(operand: xb.Value) -> xb.Value: ...  # type: ignore[empty-body]

    swirl.__annotations__ = {"operand": xb.Value, "return": xb.Value}
    with pytest.raises(ValueError, match="'operands', but the operands are operand"):
        op(Properties("moved", moves=("operands",)))(swirl)
    assert "swirl" not in OPS
