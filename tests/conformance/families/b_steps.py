"""Steps of acceptance programs as calls of xbuild: a step is a result, an op, operands and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import xbuild as xb

Values = dict[str, Any]
Step = Sequence[Any]
NAMES = {
    "cos": "cosine", "sin": "sine", "exp": "exponential", "neg": "negate", "sub": "subtract", "mul": "multiply",
    "div": "divide", "max": "maximum", "min": "minimum", "pow": "power",
}  # fmt: skip
REDUCERS = {"reduce_sum": (0, xb.add), "reduce_max": (-np.inf, xb.maximum), "reduce_min": (np.inf, xb.minimum),
            "reduce_prod": (1, xb.multiply)}  # fmt: skip
DIMENSION = {"all_gather": "axis", "all_gather_invariant": "axis", "all_gather_reduced": "axis",
             "psum_scatter": "scatter_dimension", "pscatter": "scatter_dimension"}  # fmt: skip


def spec_of(entry: Mapping[str, Any]) -> Any:
    """The spec of an input or of a result, by its cuts or by the axes that it varies along."""
    given = entry.get("spec")
    if isinstance(given, Mapping):
        return spec_of(given)
    cuts = given if given is not None else [tuple(entry["varying"])] if entry.get("varying") else []
    cuts = [tuple(cut) if isinstance(cut, list) else cut for cut in cuts]
    return xb.P(*cuts, unreduced=entry.get("unreduced", ()), reduced=entry.get("reduced", ()))


def used(apply: Callable[..., Any], operand: Any) -> Any:
    """The op on its operand; a coordinate takes none."""
    found = apply(operand)
    return found if isinstance(found, xb.Value) else xb.constant(operand.builder, found)


def function_of(op: str, attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """The collective that a case names, with its attributes."""
    op = op.removesuffix("_of_unreduced")
    function = getattr(xb.mesh, op)
    axes = attributes["axes"]
    if op in ("axis_index", "axis_size"):
        return lambda *_: function(axes)
    return lambda x: function(x, axes, **_keywords(op, attributes))


def _keywords(op: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    words = {"split": "split_axis", "concat": "concat_axis", "dim": DIMENSION.get(op, "dim")}
    known = ("dim", "tiled", "split", "concat", "perm", "to", "source")
    return {words.get(key, key): attributes[key] for key in known if key in attributes}


def run_steps(steps: Sequence[Step], values: Values) -> Values:
    """The values after all steps."""
    found = dict(values)
    for result, op, operands, attributes in steps:
        found[result] = step(op, [_value(found, each) for each in operands], attributes, found)
    return found


def _value(values: Values, given: Any) -> Any:
    return values[given] if isinstance(given, str) else given


def step(op: str, operands: list[Any], attributes: Mapping[str, Any], values: Values) -> Any:
    """The value of one step."""
    if op in _SPECIAL:
        return _SPECIAL[op](operands, attributes, values)
    if op in REDUCERS:
        start, reducer = REDUCERS[op]
        dtype = operands[0].shape.dtype
        dims = attributes.get("dims", range(operands[0].shape.rank))
        return xb.reduce(operands[0], np.asarray(start, dtype.dtype), reducer, list(dims))
    if hasattr(xb.mesh, op.removesuffix("_of_unreduced")):
        return function_of(op, attributes)(*operands)
    function = getattr(xb, NAMES.get(op, op), None) or getattr(xb, f"{op}_")
    return function(*operands, **{key: value for key, value in attributes.items() if key != "auto_cast"})


def _builder() -> xb.Builder:
    from xbuild.variance.program import current

    return current("step").builder


def _filled(number: float) -> Callable[..., Any]:
    def fill(_: Any, attributes: Mapping[str, Any], __: Values) -> Any:
        dtype = getattr(xb, attributes.get("dtype", "f32"))
        scalar = xb.constant(_builder(), np.asarray(number, dtype.dtype))
        return xb.broadcast(scalar, list(attributes["shape"])) if attributes["shape"] else scalar

    return fill


def _constant(_: Any, attributes: Mapping[str, Any], __: Values) -> Any:
    return xb.constant(_builder(), np.asarray(attributes["value"], getattr(xb, attributes["dtype"]).dtype))


def _compare(operands: list[Any], attributes: Mapping[str, Any], _: Values) -> Any:
    return xb.compare(operands[0], operands[1], attributes["direction"])


def _convert(operands: list[Any], attributes: Mapping[str, Any], _: Values) -> Any:
    return xb.convert(operands[0], getattr(xb, attributes.get("new_element_type") or attributes["dtype"]))


def _pad(operands: list[Any], attributes: Mapping[str, Any], _: Values) -> Any:
    sizes = zip(attributes["low"], attributes["high"], attributes["interior"], strict=True)
    return xb.pad(operands[0], operands[1], [tuple(each) for each in sizes])


def _concatenate(operands: list[Any], attributes: Mapping[str, Any], _: Values) -> Any:
    return xb.concatenate(operands, _first(attributes, ("dim", "dimension", "axis"), 0))


def _reduce_precision(operands: list[Any], attributes: Mapping[str, Any], _: Values) -> Any:
    return xb.reduce_precision(operands[0], attributes.get("exponent_bits", 8), attributes.get("mantissa_bits", 7))


def _dot(operands: list[Any], _: Mapping[str, Any], __: Values) -> Any:
    return xb.dot(*operands)


def _fori(operands: list[Any], attributes: Mapping[str, Any], values: Values) -> Any:
    """A counted loop; what its body takes from outside is carried along."""
    trips, names = attributes["trips"], attributes["carry"]
    outside = _outside([attributes["body"]], values, names)
    counter = xb.constant(_builder(), np.int32(0))

    def body(state: Any) -> Any:
        n, *inside = state
        after = run_steps(attributes["body"], dict(zip([*names, *outside], inside, strict=True)))
        return (n + 1, *(after[each] for each in _list(attributes["yield"])), *inside[len(names) :])

    init = (counter, *operands, *(values[each] for each in outside))
    state = xb.while_(init, lambda s: s[0] < trips, body)
    return _result([state[n + 1] for n in range(len(names))])


def _while(operands: list[Any], attributes: Mapping[str, Any], values: Values) -> Any:
    """A loop with a condition of steps; what both take from outside is carried along."""
    names = attributes["carry"]
    test = _first(attributes, ("cond", "condition", "test"), [])
    if not isinstance(test, Mapping):
        result = _first(attributes, ("cond_yield", "pred", "predicate"), test[-1][0])
        test = {"body": test, "yield": result}
    outside = _outside([attributes["body"], test["body"]], values, names)

    def named(state: Any) -> Values:
        return dict(zip([*names, *outside], state, strict=True))

    def body(state: Any) -> Any:
        after = run_steps(attributes["body"], named(state))
        return (*(after[each] for each in _list(attributes["yield"])), *list(state)[len(names) :])

    def holds(state: Any) -> Any:
        return run_steps(test["body"], named(state))[_list(test["yield"])[0]]

    state = xb.while_((*operands, *(values[each] for each in outside)), holds, body)
    return _result([state[n] for n in range(len(names))])


def _cond(operands: list[Any], attributes: Mapping[str, Any], values: Values) -> Any:
    """A choice between two branches of steps; what they take from outside is their operand."""
    branches = [attributes["true"], attributes["false"]]
    given = [_outside([each["body"]], values, (), _list(each["yield"])) for each in branches]

    def branch(steps: Mapping[str, Any], names: list[str]) -> Callable[..., Any]:
        def run(operand: Any) -> Any:
            after = run_steps(steps["body"], dict(zip(names, operand, strict=True)))
            return _result([after[each] for each in _list(steps["yield"])])

        return run

    first, second = ([values[each] for each in names] for names in given)
    choices = [branch(*pair) for pair in zip(branches, given, strict=True)]
    return xb.conditional(operands[0], tuple(first), choices[0], tuple(second), choices[1])


def _outside(
    bodies: Sequence[Sequence[Step]], values: Values, inside: Sequence[str], yields: Sequence[str] = ()
) -> list[str]:
    """The names that steps take from outside."""
    made = {*inside, *(each[0] for body in bodies for each in body)}
    asked = [name for body in bodies for each in body for name in _names(each)]
    return [name for name in dict.fromkeys([*asked, *yields]) if name in values and name not in made]


def _first(attributes: Mapping[str, Any], names: Sequence[str], default: Any) -> Any:
    """The attribute under the first of these names that it is given by."""
    return next((attributes[name] for name in names if name in attributes), default)


def _select(operands: list[Any], _: Mapping[str, Any], __: Values) -> Any:
    """A choice by element, or as a whole where the predicate is a scalar."""
    pred, on_true, on_false = operands
    dims = on_true.shape.dims
    return xb.select(xb.broadcast(pred, dims) if dims and not pred.shape.dims else pred, on_true, on_false)


def _names(each: Step) -> list[str]:
    return [name for name in each[2] if isinstance(name, str)]


def _list(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _result(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)


_SPECIAL: dict[str, Callable[[list[Any], Mapping[str, Any], Values], Any]] = {
    "zeros": _filled(0),
    "ones": _filled(1),
    "constant": _constant,
    "compare": _compare,
    "convert": _convert,
    "pad": _pad,
    "concatenate": _concatenate,
    "concat": _concatenate,
    "reduce_precision": _reduce_precision,
    "dot": _dot,
    "select": _select,
    "fori": _fori,
    "while": _while,
    "cond": _cond,
}
