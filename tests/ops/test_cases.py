"""Every case of every family: shape, value, text, real XLA; every refusal: kind, facts, op, the user's line."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import numpy as np
import pytest

import tests.cases
import xbuild as xb
from interpreter import evaluate
from shape_inference import TupleShape, parse_shape
from tests.cases.case import Case, Inferred, Refusal
from tests.support.compare import assert_same, difference, fits, like, shape_of
from tests.support.facts import internals, missing, own_words
from tests.support.measured import is_newer_jaxlib
from xbuild.core.op import OPS

FAMILIES = {
    info.name: importlib.import_module(f"tests.cases.{info.name}")
    for info in pkgutil.iter_modules(tests.cases.__path__)
    if info.name != "case"
}
CASES = [pytest.param(case, id=f"{family}-{case.id}") for family, module in FAMILIES.items() for case in module.CASES]
REFUSALS = [
    pytest.param(each, id=f"{family}-{each.id}") for family, module in FAMILIES.items() for each in module.REFUSALS
]
INFERRED = [
    pytest.param(each, id=f"{family}-{each.id}")
    for family, module in FAMILIES.items()
    for each in getattr(module, "INFERRED", ())
]
SPELLINGS = {schema.spelling for schema in OPS.values()} | {name.strip("_").replace("_", "-") for name in vars(xb)}
SEVERAL_DEVICES = {"collectives", "transfer"}  # what one device alone cannot show is in test_grid
PER_MODULE = 20
REFUSED_BY_NEWER = frozenset({"compare-LT-c64"})
"""Cases that jaxlib after 0.10 refuses to compile ("Unknown MLIR failure"): the order of complex numbers."""


@pytest.mark.parametrize("case", CASES)
def test_value(case: Case) -> None:
    computation = case.computation()
    result = evaluate(computation, *case.arguments)
    expected = like(case.result, computation.root.shape)
    assert fits(expected, computation.root.shape), (
        f"{computation.root.shape} is inferred, the case is {shape_of(expected)}"
    )
    assert fits(result, computation.root.shape), f"{computation.root.shape} is inferred, {shape_of(result)} came"
    assert_same(result, expected, case.tolerance)


@pytest.mark.parametrize("case", CASES)
def test_arguments_are_not_written_and_results_are_not_shared(case: Case) -> None:
    before = [argument.copy() for argument in case.arguments]
    result = evaluate(case.computation(), *case.arguments)
    assert_same(list(case.arguments), before)
    for leaf in _leaves(result):
        assert not any(np.shares_memory(leaf, argument) for argument in case.arguments)


@pytest.mark.parametrize("case", CASES)
def test_text(case: Case) -> None:
    computation = case.computation()
    text = xb.Module("case", computation).to_hlo()
    read = xb.parse_hlo(text)
    assert read.to_hlo() == text
    assert read.entry.program_shape == computation.program_shape
    assert_same(evaluate(read.entry, *case.arguments), evaluate(computation, *case.arguments))


@pytest.mark.parametrize("inferred", INFERRED)
def test_inferred(inferred: Inferred) -> None:
    assert inferred.shape() == parse_shape(inferred.result)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    with pytest.raises(xb.XbuildError) as caught:
        refusal.attempt()
    text = str(caught.value)
    assert caught.value.kind == refusal.kind, text
    first = text.splitlines()[0]
    spelling, _, clash = first.partition(": ")
    assert spelling in SPELLINGS, first
    assert clash.endswith(f" [{refusal.kind}]"), first
    assert spelling == (called := _spelling(refusal.call) or spelling), f"{called} is called, {spelling} refuses"
    assert missing(own_words(text), refusal.names, [spelling]) == [], text
    assert internals(own_words(text)) == [], text
    assert re.search(r"^  at \S*tests.cases.\w+\.py:\d+ in ", text, re.MULTILINE), text


def _spelling(call: Any) -> str | None:
    """The name that a refusal must have, where a case calls an op without more ado."""
    name = getattr(call, "__name__", "")
    is_ours = call in (getattr(xb, name, None), getattr(xb.ops, name, None))
    return OPS[name.strip("_")].spelling if is_ours and name.strip("_") in OPS else None


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_are_unique(family: str) -> None:
    module = FAMILIES[family]
    for listed in (module.CASES, module.REFUSALS, getattr(module, "INFERRED", ())):
        ids = [each.id for each in listed]
        assert sorted(set(ids)) == sorted(ids)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_case_tells_its_source(family: str) -> None:
    assert [case.id for case in FAMILIES[family].CASES if not case.source] == []


def test_each_op_has_a_case() -> None:
    seen = set()
    for parameters in CASES:
        for computation in parameters.values[0].computation().reachable():
            seen |= {instruction.opcode for instruction in computation.instructions}
    one_device = {o for o, s in OPS.items() if _family(s) not in SEVERAL_DEVICES} - {"replica_id", "partition_id"}
    assert sorted(one_device - seen) == []


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("family", FAMILIES)
def test_real_xla_gives_the_same(family: str) -> None:
    pytest.importorskip("jaxlib")
    refused = REFUSED_BY_NEWER if is_newer_jaxlib() else frozenset()
    cases = [case for case in FAMILIES[family].CASES if case.oracle and case.id not in refused]
    wrong = {
        case.id: found for case, outcome in zip(cases, _on_xla(cases), strict=True) if (found := _judge(case, outcome))
    }
    assert wrong == {}, "\n".join(f"{name}: {found}" for name, found in wrong.items())


def _judge(case: Case, outcome: Any) -> str | None:
    from tests.oracle import Failure

    if isinstance(outcome, Failure):
        return outcome.message
    ours = _leaves(evaluate(case.computation(), *case.arguments))
    return difference(ours, outcome, case.tolerance)


def _on_xla(cases: list[Case]) -> list[Any]:
    """What XLA gives for each case; many go in one module, and those of a module that fails once more alone."""
    from tests.oracle import Failure, run

    groups = [cases[n : n + PER_MODULE] for n in range(0, len(cases), PER_MODULE)]
    outcomes: list[Any] = []
    for group, outcome in zip(groups, run(map(_job, groups)), strict=True):
        if isinstance(outcome, Failure):
            alone = run(_job([case]) for case in group)
            outcomes += [each if isinstance(each, Failure) else each[0] for each in alone]
        else:
            outcomes += _shared_out(group, outcome[0])
    return outcomes


def _job(group: list[Case]) -> Any:
    """One module that computes all cases of the group; its result is the flat tuple of theirs."""
    from tests.oracle import Job

    builder = xb.Builder("cases")
    arguments = [argument for case in group for argument in case.arguments]
    shapes = map(shape_of, arguments)
    parameters = iter([xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(shapes)])
    results = []
    for case in group:
        value = case.call(*(next(parameters) for _ in case.arguments), **case.attributes)
        results += _flat(value)
    return Job(xb.Module("cases", builder.build(xb.tuple_(results, builder=builder))).to_hlo(), [arguments])


def _flat(value: xb.Value) -> list[xb.Value]:
    if isinstance(value.shape, TupleShape):
        return [leaf for element in value for leaf in _flat(element)]
    return [value]


def _shared_out(group: list[Case], leaves: list[Any]) -> list[list[Any]]:
    """The leaves of a module's result, for each case its own."""
    rest = iter(leaves)
    return [[next(rest) for _ in _leaves(like(case.result, case.computation().root.shape))] for case in group]


def _leaves(value: Any) -> list[Any]:
    return (
        [leaf for each in value for leaf in _leaves(each)] if isinstance(value, tuple | list) else [np.asarray(value)]
    )


def _family(schema: Any) -> str:
    return str(schema.declaration.__module__).rpartition(".")[2]
