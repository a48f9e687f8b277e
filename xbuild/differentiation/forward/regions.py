"""Tangents through ops that call computations: what is called takes and gives tangents beside its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from .. import trees
from ..recorder import Recorder
from ..regions.copying import Copies
from ..regions.expansion import expanded
from ..regions.loops import elements_once
from ..rules import activities
from .pushing import Push, dense, leaves_in, pushed, pushes, shapes_in, tree_of


def _varies(each: Instruction, tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Which leaves of the operands have a tangent."""
    shapes = [operand.shape for operand in each.operands]
    return trees.of_several(shapes, lambda n, path: trees.at(tangents[n], path) is not None)


def _region(push: Push, region: Computation) -> Computation:
    return expanded(region, push.context.calls, push.context.known)


def _joint(push: Push, each: Instruction, region: Computation, varies: Sequence[Any], result: Any) -> Computation:
    """A region that takes tangents after its parameters, and gives the tuple of its result and of tangents of that."""
    body = _region(push, region)
    inner = push.recorder.inner(f"{region.name}.jvp", each)
    values = [ops.parameter(inner, number=n, shape=p.shape.plain()) for n, p in enumerate(body.parameters)]
    shapes = [s for v, p in zip(varies, body.parameters, strict=True) for s in shapes_in(v, p.shape)]
    given = iter([ops.parameter(inner, number=len(values) + n, shape=shape) for n, shape in enumerate(shapes)])
    tangents = [trees.mapped(lambda leaf: next(given) if leaf else None, v) for v in varies]
    root, tangent = pushed(push.context, inner, body, values, tangents)
    return inner.built(ops.tuple_((root, *dense(inner, result, tangent, body.root.shape))))


def _called(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """call and fusion"""
    (region,) = each.called
    varies = _varies(each, tangents)
    result = push.context.activity.root(_region(push, region), varies)
    key = "jvp", region, varies
    known = push.context.known
    if key not in known:
        known[key] = _joint(push, each, region, varies, result)
    more = [leaf for seen, tree in zip(varies, tangents, strict=True) for leaf in leaves_in(seen, tree)]
    operands = [*push.operands(each), *more]
    if each.opcode == "fusion":
        value = ops.fusion(tuple(operands), kind=each.attributes.kind, calls=known[key], builder=push.recorder)
    else:
        value = ops.call(tuple(operands), to_apply=known[key], builder=push.recorder)
    root, *found = elements_once(value)
    return root, tree_of(result, found)


pushes.enter("call", _called)
pushes.enter("fusion", _called)


@pushes
def map(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The map itself, and one of the tangent alone."""
    value, varies = push.copied(each), _varies(each, tangents)
    region = _region(push, each.attributes.to_apply)
    inner = push.recorder.inner(f"{region.name}.jvp", each)
    count = len(region.parameters)
    parameters = [ops.parameter(inner, number=n, shape=p.shape.plain()) for n, p in enumerate(region.parameters)]
    chosen = [n for n in range(count) if varies[n]]
    shapes = [p.shape.plain() for p in region.parameters]
    given = {n: ops.parameter(inner, number=count + k, shape=shapes[n]) for k, n in enumerate(chosen)}
    tangent = pushed(push.context, inner, region, parameters, [given.get(n) for n in range(count)])[1]
    if tangent is None:
        return value, None
    operands = (*push.operands(each), *(tangents[n] for n in chosen))
    dimensions = each.attributes.dimensions
    return value, ops.map(operands, to_apply=inner.built(tangent), dimensions=dimensions)


@pushes
def conditional(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    _, *varies = _varies(each, tangents)
    result = activities["conditional"](push.context.activity, each, False, *varies)
    index, *values = push.operands(each)
    operands, branches = [], []
    rows = zip(each.attributes.branch_computations, values, varies, tangents[1:], strict=True)
    for region, value, seen, tangent in rows:
        operand = ops.tuple_((value, *leaves_in(seen, tangent)), builder=push.recorder)
        operands.append(operand)
        branches.append(_branch(push, each, region, seen, operand.shape, result))
    value = ops.conditional(index, tuple(operands), branch_computations=tuple(branches))
    root, *found = elements_once(value)
    return root, tree_of(result, found)


def _branch(push: Push, each: Instruction, region: Computation, seen: Any, shape: Any, result: Any) -> Computation:
    inner = push.recorder.inner(f"{region.name}.jvp", each)
    value, *given = elements_once(ops.parameter(inner, number=0, shape=shape))
    root, tangent = pushed(push.context, inner, _region(push, region), [value], [tree_of(seen, given)])
    return inner.built(ops.tuple_((root, *dense(inner, result, tangent, region.root.shape))))


@pushes
def while_(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The state has a tangent for each leaf that varies in it; any loop can be differentiated so."""
    varies = activities["while"](push.context.activity, each, _varies(each, tangents)[0])
    recorder, (init,) = push.recorder, push.operands(each)
    is_tuple = isinstance(each.shape, TupleShape)
    own = elements_once(init) if is_tuple else (init,)
    state = ops.tuple_((*own, *dense(recorder, varies, tangents[0], each.shape)), builder=recorder)
    count = len(own)
    body = recorder.inner(f"{each.attributes.body.name}.jvp", each)
    values = elements_once(ops.parameter(body, number=0, shape=state.shape))
    before = values[:count] if is_tuple else values[0]
    tangent = tree_of(varies, values[count:])
    root, after = pushed(push.context, body, _region(push, each.attributes.body), [before], [tangent])
    results = elements_once(root) if is_tuple else (root,)
    made = body.built(ops.tuple_((*results, *dense(body, varies, after, each.shape)), builder=body))
    test = _test(recorder, each, state.shape, count, is_tuple)
    value = elements_once(ops.while_(state, condition=test, body=made))
    found = value[:count] if is_tuple else value[0]
    return found, tree_of(varies, value[count:])


def _test(recorder: Recorder, each: Instruction, shape: Any, count: int, is_tuple: bool) -> Computation:
    """The condition on a state with tangents."""
    test = each.attributes.condition
    inner = recorder.inner(f"{test.name}.jvp", each)
    values = elements_once(ops.parameter(inner, number=0, shape=shape))
    copies = Copies(inner, {test.parameters[0]: values[:count] if is_tuple else values[0]})
    copies.take(test.instructions)
    return inner.built(copies.value(test.root))


@pushes
def scan(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    attributes, seen = each.attributes, _varies(each, tangents)
    found = activities["scan"](push.context.activity, each, *seen)
    is_tuple = isinstance(each.shape, TupleShape)
    results = list(found) if is_tuple else [found]
    carries = attributes.num_carries
    inputs, outputs = len(each.operands) - carries, len(results) - carries
    carried = results[outputs:]
    values = push.operands(each)
    slices = [tangents[n] for n in range(inputs) if seen[n]]
    firsts = [
        value
        for n, varies in enumerate(carried)
        for value in dense(push.recorder, varies, tangents[inputs + n], each.operands[inputs + n].shape)
    ]
    operands = (*values[:inputs], *slices, *values[inputs:], *firsts)
    region = _step(push, each, (*seen[:inputs], *carried), results, inputs)
    value: Value = ops.scan(
        operands,
        dimension=attributes.dimension,
        num_carries=carries + len(firsts),
        is_reverse=attributes.is_reverse,
        to_apply=region,
        length=attributes.length,
        builder=push.recorder,
    )
    parts = elements_once(value) if isinstance(value.shape, TupleShape) else (value,)
    more = sum(map_true(results[:outputs]))
    whole = (*parts[:outputs], *parts[outputs + more : outputs + more + carries])
    given = iter((*parts[outputs : outputs + more], *parts[outputs + more + carries :]))
    tree = tuple([next(given) if varies else None for varies in results])
    return (whole, tree) if is_tuple else (whole[0], tree[0])


def map_true(varies: Sequence[Any]) -> list[int]:
    """1 for each that varies."""
    return [int(bool(each)) for each in varies]


def _step(push: Push, each: Instruction, varies: Sequence[Any], results: Sequence[Any], inputs: int) -> Computation:
    """The region of a scan with tangents: slices, their tangents, carries, their tangents."""
    body = _region(push, each.attributes.to_apply)
    inner = push.recorder.inner(f"{body.name}.jvp", each)
    count, carries = len(body.parameters), each.attributes.num_carries
    order = [*range(inputs), *(count + n for n in range(inputs) if varies[n])]
    order += [*range(inputs, count), *(count + n for n in range(inputs, count) if varies[n])]
    shapes = [p.shape.plain() for p in body.parameters]
    given = {place: ops.parameter(inner, number=n, shape=shapes[place % count]) for n, place in enumerate(order)}
    tangents = [given.get(count + n) for n in range(count)]
    root, tangent = pushed(push.context, inner, body, [given[n] for n in range(count)], tangents)
    is_tuple = isinstance(body.root.shape, TupleShape)
    parts = elements_once(root) if is_tuple else (root,)
    outputs = len(parts) - carries
    found = [
        dense(inner, seen, tree, part.shape)
        for seen, tree, part in zip(results, _parts(tangent, len(parts), is_tuple), parts, strict=True)
    ]
    first = [value for each_found in found[:outputs] for value in each_found]
    last = [value for each_found in found[outputs:] for value in each_found]
    return inner.built(ops.tuple_((*parts[:outputs], *first, *parts[outputs:], *last), builder=inner))


def _parts(tangent: Any, count: int, is_tuple: bool) -> Sequence[Any]:
    if not is_tuple:
        return [tangent]
    return tangent if tangent is not None else [None] * count


@pushes
def async_start(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The start itself; the tangents of what it begins are found here and now."""
    value = push.copied(each)
    region = _region(push, each.attributes.calls)
    tangent = pushed(push.context, push.recorder, region, push.operands(each), tangents)[1]
    rest = [None] * (len(each.shape) - 2)  # type: ignore[arg-type]
    return value, (None, tangent, *rest)
