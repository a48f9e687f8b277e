"""Each claim of a lesson that another engine gives the same, run there; the document has the counts."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from examples.lecture import __main__ as lecture
from interpreter.engines import compare, execute_on_stablehlo
from interpreter.engines.outcomes import argument_leaves, value_of
from tests.oracle import Failure, Job, Oracle
from xbuild.learning import Claim, shelf
from xbuild.learning.lesson import ACCEPTED, REFUSED, outcome_of

ROOT = Path(__file__).parents[2]


@cache
def claims() -> dict[str, Claim]:
    """The claims of all lessons, by lesson and question."""
    return {
        f"{number:02}: {each.words}": each.claim
        for number, lesson in shelf.entries("lessons").items()
        for each in shelf.questions_in(lesson.path)
    }


def claims_of_lectures() -> dict[str, Claim]:
    """The claims of the lectures that have their own, but those that XLA:CPU hangs: lesson 17 has these programs."""
    found = {
        f"{name}: {each.words}": each.claim
        for name in lecture.LECTURES
        if (ROOT / "examples" / "lecture" / f"{name}.py").exists()
        for each in shelf.questions_in(ROOT / "examples" / "lecture" / f"{name}.py")
    }
    return {name: each for name, each in found.items() if each.engine != "hang"}


OF_LESSONS = claims()
CLAIMS = OF_LESSONS | claims_of_lectures()
ON_XLA = {name: each for name, each in CLAIMS.items() if each.program is not None and each.engine in ("xla", "choice")}
HANGS = {name: each for name, each in CLAIMS.items() if each.engine == "hang"}
ON_STABLEHLO = {name: each for name, each in CLAIMS.items() if each.engine == "stablehlo"}


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    pytest.importorskip("jaxlib")
    with Oracle() as found:
        yield found


def job_of(claim: Claim) -> Job:
    """The program of a claim for real XLA, with its arguments as leaves."""
    module = claim.program
    if isinstance(module, str):
        wanted = re.findall(r"(\w+)\[([\d,]*)\] parameter\((\d+)\)", module.partition("ENTRY")[2])
        types = {"f32": np.float32, "s32": np.int32, "pred": np.bool_}
        given = [np.zeros([int(n) for n in dims.split(",") if n], types[kind]) for kind, dims, _ in wanted]
        counts = re.search(r"replica_count=(\d+)", module)
        devices = int(counts[1]) if counts else 1
        return Job(module, [given] * devices, devices, 1, "cpu")
    assert isinstance(module, xb.Module)
    rows = argument_leaves([module] * module.num_devices, [tuple(map(np.asarray, row)) for row in typed(claim)])
    return Job(module.to_hlo(), rows, module.num_replicas, module.num_partitions, "cpu")


def typed(claim: Claim) -> list[list[Any]]:
    """The arguments in the types of the parameters."""
    assert isinstance(claim.program, xb.Module)
    shapes = [each.shape.dtype.dtype for each in claim.program.entry.parameters]  # type: ignore[union-attr]
    return [[np.asarray(value, dtype) for value, dtype in zip(row, shapes, strict=True)] for row in claim.inputs]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ON_XLA)
def test_xla_gives_the_same(name: str, oracle: Oracle) -> None:
    claim = ON_XLA[name]
    outcome = oracle.run(job_of(claim))
    if isinstance(claim.program, str):
        assert outcome_of(claim.program) == (REFUSED if isinstance(outcome, Failure) else ACCEPTED), outcome
        return
    assert not isinstance(outcome, Failure), outcome
    assert isinstance(claim.program, xb.Module)
    shape = claim.program.entry.root.shape
    theirs = [value_of(shape, iter(device)) for device in outcome]
    ours = xb.execute(claim.program, claim.inputs)
    assert [str(each) for each in compare(ours, theirs, [shape] * len(ours)) if not each.same] == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", ON_STABLEHLO)
def test_stablehlo_gives_the_same(name: str) -> None:
    pytest.importorskip("jaxlib")
    claim = ON_STABLEHLO[name]
    assert isinstance(claim.program, xb.Module | xb.ModuleGroup)
    theirs = execute_on_stablehlo(claim.program, claim.inputs)
    ours = xb.execute(claim.program, claim.inputs)
    assert all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", HANGS)
def test_xla_waits_and_ends_its_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA:CPU waits for 40 seconds; a flag of its own makes them 1."""
    pytest.importorskip("jaxlib")
    options = ("warn_stuck", "terminate")
    flags = " ".join(f"--xla_cpu_collective_call_{each}_timeout_seconds=1" for each in options)
    monkeypatch.setenv("XLA_FLAGS", flags)
    with Oracle(60) as oracle:
        outcome = oracle.run(job_of(HANGS[name]))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "died"
    assert "SIGABRT" in outcome.message


@pytest.mark.oracle
def test_jax_has_the_types_of_gathered_values() -> None:
    """The claims of lesson 19 on JAX: all_gather gives a varying value, all_gather_invariant one that may leave."""
    assert [name[:2] for name, each in CLAIMS.items() if each.engine == "jax"] == ["19", "19"]
    jax = pytest.importorskip("jax")
    if "to" in inspect.signature(jax.lax.all_gather).parameters:
        all_gather_invariant = partial(jax.lax.all_gather, to="invarying")
    else:
        from jax._src.lax.parallel import all_gather_invariant  # type: ignore[no-redef]

    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:2])
    cut, whole = jax.sharding.PartitionSpec("i"), jax.sharding.PartitionSpec()

    def gathered(function: Any) -> Any:
        mapped = jax.shard_map(lambda x: function(x, "i", tiled=True), mesh=mesh, in_specs=cut, out_specs=whole)
        return mapped(np.arange(4, dtype=np.float32))

    with pytest.raises(ValueError, match="could not infer replication"):
        gathered(jax.lax.all_gather)
    assert gathered(all_gather_invariant).tolist() == [0, 1, 2, 3]


@pytest.mark.oracle
def test_jax_has_the_gradients_of_collectives() -> None:
    """Lesson 20: its gradients are those of shard_map without types; with types, an invariant value's are summed."""
    jax = pytest.importorskip("jax")
    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:2])
    cut, whole = jax.sharding.PartitionSpec("i"), jax.sharding.PartitionSpec()

    def back(function: Any, *cotangent: float) -> Any:
        mapped = jax.shard_map(function, mesh=mesh, in_specs=cut, out_specs=cut, check_vma=False)
        return jax.vjp(mapped, np.float32([3, 4]))[1](np.float32(cotangent))[0].tolist()

    assert back(lambda x: jax.lax.psum(x, "i"), 1, 10) == [11, 11]
    assert back(lambda x: jax.lax.ppermute(x, "i", [(0, 1)]), 7, 10) == [10, 0]
    assert back(lambda x: jax.lax.all_gather(x, "i", tiled=True), 1, 2, 10, 20) == [11, 22]

    def gradient(has_types: bool) -> Any:
        def local(w: Any, x: Any) -> Any:
            return jax.grad(lambda w: (w * x)[0])(w)[None]

        mapped = jax.shard_map(local, mesh=mesh, in_specs=(whole, cut), out_specs=cut, check_vma=has_types)
        return mapped(np.float32(5), np.float32([3, 4])).tolist()

    assert gradient(has_types=False) == [3, 4]
    assert gradient(has_types=True) == [7, 7]


ROWS, COLUMNS, WHOLE = ("i",), (None, "i"), ()
BY_XLA: list[tuple[str, list[tuple[Any, ...]], tuple[Any, ...], set[str]]] = [
    ("18, case 1: the contracted dimension is not sharded", [ROWS, WHOLE], ROWS, set()),
    ("18, case 2: both are sharded along it", [COLUMNS, ROWS], WHOLE, {"all-reduce"}),
    ("18, case 3: one is sharded along it", [COLUMNS, WHOLE], WHOLE, {"all-gather"}),
    ("18, case 4: rows and columns along one axis", [ROWS, COLUMNS], ROWS, {"all-gather"}),
    ("21: two products, by the model", [WHOLE, COLUMNS, ROWS], WHOLE, {"all-reduce"}),
    ("21: two products, by the rows", [ROWS, WHOLE, WHOLE], ROWS, set()),
]
"""What lessons 18 and 21 say about the collectives of products: the shardings of the operands and of the result."""


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "operands", "result", "expected"), BY_XLA, ids=[name for name, *_ in BY_XLA])
def test_xla_inserts_the_collectives_that_the_lessons_name(
    name: str, operands: list[tuple[Any, ...]], result: tuple[Any, ...], expected: set[str]
) -> None:
    jax = pytest.importorskip("jax")
    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:2])

    def sharding(spec: tuple[Any, ...]) -> Any:
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))

    def products(first: Any, *others: Any) -> Any:
        for other in others:
            first = jax.numpy.maximum(first, 0) @ other
        return first

    shapes = [jax.ShapeDtypeStruct((8, 8), np.float32, sharding=sharding(spec)) for spec in operands]
    text = jax.jit(products, out_shardings=sharding(result)).lower(*shapes).compile().as_text()
    assert {*re.findall(r" (all-\w[\w-]*?|reduce-scatter|collective-permute)(?:-start)?\(", text)} == expected


@pytest.mark.oracle
def test_jax_has_the_names_of_casts_that_lesson_19_states() -> None:
    jax = pytest.importorskip("jax")
    text = shelf.entry("lessons", 19).path.read_text()
    assert 'lax.all_gather(x, axis, to="invarying")' in text
    assert 'lax.pcast(x, axis, to="varying")' in text
    if "to" in inspect.signature(jax.lax.all_gather).parameters:
        assert "to" in inspect.signature(jax.lax.pcast).parameters
    else:
        assert hasattr(jax.lax, "pvary")  # JAX before the new names


def test_numpy_and_python_do_what_the_lessons_say() -> None:
    one_to_three, ten = np.array([1, 2, 3]), np.arange(10)
    assert (one_to_three + np.zeros((2, 3))).shape == (2, 3)  # lesson 2: NumPy aligns shapes from the right
    with pytest.raises(ValueError, match="broadcast"):
        np.broadcast_to(np.array([1, 2]), (2, 3))
    assert np.array([1, 2])[:, None].repeat(3, 1).tolist() == [[1, 1, 1], [2, 2, 2]]
    table = 10 * np.arange(3)[:, None] + np.arange(4)
    assert np.take(table, [2, 0], axis=0).tolist() == [[20, 21, 22, 23], [0, 1, 2, 3]]  # lesson 4
    assert ten[-3] == 7  # lesson 5: in NumPy, a negative index counts from the end
    assert -7 // 2 == -4  # lesson 10
    assert np.convolve([1, 2, 3, 4, 5], [1, 0, -1], "valid").tolist() == [2, 2, 2]  # lesson 9: NumPy flips the kernel


def test_the_document_counts_the_claims() -> None:
    counts = Counter("xla" if each.engine == "xla" else each.engine for each in OF_LESSONS.values())
    text = (ROOT / "docs" / "learning.md").read_text()
    stated = {word: int(number) for number, word in re.findall(r"^\| (\d+) \| `(\w+)` ", text, re.MULTILINE)}
    assert stated == counts


@pytest.mark.slow
def test_a_claim_that_is_wrong_is_found(oracle: Oracle) -> None:
    """The comparison is one that can fail."""
    text = "HloModule ok\nENTRY main { ROOT x = f32[] parameter(0) }"
    assert not isinstance(oracle.run(job_of(Claim("xla", "", text))), Failure)
    wrong = text.replace("parameter(0)", "parameter(0), no_such_attribute={1}")
    assert isinstance(oracle.run(job_of(Claim("xla", "", wrong))), Failure)
