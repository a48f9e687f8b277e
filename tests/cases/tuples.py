"""Cases of tuples and tokens."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

TUPLE, ELEMENT = "Operation Semantics, Tuple", "Operation Semantics, GetTupleElement"
BARRIER = "StableHLO, optimization_barrier"
V, S = np.arange(10, dtype=np.float32), np.int32(5)
NESTED = "((f32[2], s32[]), pred[])"


def ordered(x: xb.Value) -> xb.Value:
    """A value beside tokens that do nothing but order."""
    first = xb.create_token(x.builder)
    second = xb.after_all(first, xb.after_all(builder=x.builder))
    xb.after_all([first, second])
    return x


CASES = [
    Case("tuple", xb.tuple_, (V, S), (V, 5), source=TUPLE),
    Case("tuple-strict", lambda x, y: xb.ops.tuple_((x, y)), (V, S), (V, 5), source=TUPLE),
    Case("tuple-of-one", xb.tuple_, (V,), (V,), source=TUPLE),
    Case("tuple-of-none", lambda x: xb.tuple_(builder=x.builder), (V,), (), source=TUPLE),
    Case("tuple-same-twice", lambda x: xb.tuple_(x, x), (V,), (V, V), source=TUPLE),
    Case("tuple-of-list", lambda x, y: xb.tuple_([x, y]), (V, S), (V, 5), source=TUPLE),
    Case(
        "tuple-nested",
        lambda x, y: xb.tuple_(x, (y, [x]), ()),
        (V, S),
        (V, (np.int32(5), (V,)), ()),
        source=TUPLE,
    ),
    Case(
        "tuple-of-numbers",
        lambda x: xb.tuple_(x, 1, 2.5, True, np.int8(3)),
        (V,),
        (V, np.int32(1), np.float32(2.5), np.bool_(True), np.int8(3)),
        source=TUPLE,
    ),
    Case("element", lambda x, y: xb.get_tuple_element(xb.tuple_(x, y), 1), (V, S), 5, source=ELEMENT),
    Case("element-strict", lambda x, y: xb.ops.get_tuple_element(xb.tuple_(x, y), index=0), (V, S), V, source=ELEMENT),
    Case("element-by-index", lambda x, y: xb.tuple_(x, y)[-2], (V, S), V, source=ELEMENT),
    Case("element-of-nested", lambda x, y: xb.tuple_(x, (y, x))[1][0], (V, S), 5, source=ELEMENT),
    Case("unpacked", lambda x, y: next(reversed([*xb.tuple_(x, y)])), (V, S), 5, source=ELEMENT),
    Case("barrier", xb.ops.opt_barrier, (V,), V, source=BARRIER),
    Case("barrier-tuple", lambda x, y: xb.optimization_barrier((x, (y, x))), (V, S), (V, (5, V)), source=BARRIER),
    Case("barrier-none", lambda x: xb.optimization_barrier((), builder=x.builder), (V,), (), source=BARRIER),
    Case(
        "domain",
        xb.ops.domain,
        (V,),
        V,
        {"entry": "{maximal device=0}", "exit": "{maximal device=1}"},
        source="HLO text, 5",
    ),
    Case("tokens", ordered, (V,), V, source="xla_builder.h, AfterAll"),
]

REFUSALS = [
    Refusal(
        "element-range",
        xb.get_tuple_element,
        ("(f32[2], s32[])",),
        "index_out_of_range",
        ("2", "(f32[2], s32[])"),
        {"index": 2},
    ),
    Refusal(
        "element-negative", xb.get_tuple_element, ("(f32[2], s32[])",), "index_out_of_range", ("-1", "2"), {"index": -1}
    ),
    Refusal("element-of-empty", xb.get_tuple_element, ("()",), "index_out_of_range", ("0",), {"index": 0}),
    Refusal("element-of-array", xb.get_tuple_element, ("f32[2]",), "not_tuple", ("f32[2]",), {"index": 0}),
    Refusal("element-of-token", xb.get_tuple_element, ("token[]",), "not_tuple", ("token[]",), {"index": 0}),
    Refusal(
        "element-no-number",
        xb.get_tuple_element,
        ("(f32[2])",),
        "invalid_attribute",
        ("index", "one"),
        {"index": "one"},
    ),
    Refusal("domain-entry", xb.ops.domain, ("f32[2]",), "invalid_attribute", ("exit",), {"entry": "{}"}),
    Refusal("barrier-two", xb.ops.opt_barrier, ("f32[]", "f32[]"), "arity_mismatch", ("2", "1", "operand")),
    Refusal("index-range", lambda t: t[2], (NESTED,), "index_out_of_range", ("2", "-2..1", NESTED)),
    Refusal("index-of-empty", lambda t: t[0], ("()",), "index_out_of_range", ("0",)),
    Refusal("index-slice", lambda t: t[1:], (NESTED,), "invalid_attribute", (NESTED,)),
    Refusal("tokens", xb.after_all, ("token[]", "f32[2]"), "token_expected", ("f32[2]", "tokens[1]")),
    Refusal("number-as-token", lambda x: xb.after_all(x, 5), ("token[]",), "invalid_operand", ("5",)),
    Refusal("no-builder", lambda x: xb.tuple_(1, 2), ("f32[]",), "no_builder", ("builder",)),
    Refusal(
        "foreign",
        lambda x: xb.tuple_(x, xb.parameter(xb.Builder("other"), number=0, shape=xb.f32[2])),
        ("f32[]",),
        "foreign_value",
        ("other",),
    ),
]


def after_outfeed(x: xb.Value) -> xb.Value:
    return xb.add_dependency(x, xb.outfeed(x))


DEPENDENCY = "HloOpcode, add-dependency"
CASES += [
    Case(
        "dependency",
        lambda x: xb.add_dependency(x, xb.create_token(x.builder)),
        (V,),
        V,
        source=DEPENDENCY,
        oracle=False,
    ),
    Case("dependency-on-outfeed", after_outfeed, (V,), V, source=DEPENDENCY, oracle=False),
]
REFUSALS += [
    Refusal("dependency-token", xb.add_dependency, ("f32[2]", "f32[2]"), "token_expected", ("token", "f32[2]")),
]
