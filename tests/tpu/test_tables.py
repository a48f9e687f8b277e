"""Sentences of TensorFlow's reference that no other test holds: section, sentence, what is found, what is wanted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from tests.tpu.support import F32, plain, refused

tpu = xb.tpu
NUMBERS = ["f16", "bf16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "c64", "c128"]
ROWS = [[F32([1, 2, 3])], [F32([1, 2, 3, 4, 5])]]


def instructions(opcode: str, computation: Any, rows: Any, **options: Any) -> list[Any]:
    module = tpu.replicate.program(computation, rows, **options).module
    return [each for each in module.entry.instructions if each.opcode == opcode]


def the_sum(computation: Any, rows: Any) -> Any:
    (found,) = instructions("all_reduce", computation, rows)
    return found


def of_each(computation: Any, values: Any) -> Any:
    return plain([y for (y,) in tpu.replicate(computation, [[value] for value in values])])


def kept(types: list[str], op: Callable[[Any], Any]) -> list[str]:
    """The types of which the op takes a value."""
    return [t for t in types if tpu.rewrite.program(op, [getattr(xb, t)[2]]).module.entry.root.shape.elements]


def unequal() -> Any:
    builder = xb.Builder("unequal")
    x = xb.parameter(builder, number=0, shape=xb.f32[()])
    module = xb.Module("unequal", builder.build(xb.all_reduce(x, xb.add, replica_groups=[[0, 1], [2]])), num_replicas=3)
    return plain(list(execute(module, [[F32(1)], [F32(2)], [F32(4)]])))


def by_replica(x: Any) -> Any:
    return x + xb.convert(xb.replica_id(x.builder), xb.f32)


def gradient(computation: Any, shape: Any, cotangents: Any) -> Any:
    program = tpu.replicate.program(computation, [[shape] for _ in cotangents])
    zeros = np.zeros(shape.dims, shape.dtype.dtype)
    return plain([each[0] for each in execute(xb.vjp(program.module), [[zeros, ct] for ct in cotangents])])


def turned(concat: int, split: int) -> Any:
    return lambda x: tpu.all_to_all(x, concat, split, 2, [[1, 0], [2, 3]])


TURNED = [np.arange(8, dtype=np.float32).reshape(2, 4) + 10 * replica for replica in range(4)]


def permuted(pairs: Any) -> Any:
    return lambda x: tpu.collective_permute(x, pairs)


def grad_groups() -> Any:
    """The groups of the sums in the gradient of a sum."""
    groups = [[0, 2], [1, 3]]
    program = tpu.replicate.program(lambda x: tpu.cross_replica_sum(x, groups), [[1.0]] * 4)
    sums = [i for i in xb.vjp(program.module).entry.instructions if i.opcode == "all_reduce"]
    return [each.attributes.replica_groups for each in sums]


def unknown(value: Any) -> Any:
    return tpu.placeholder_with_default(value, [None] * np.ndim(value))


def lengths(rows: Any, maximum: Any = None, spec: Any = None) -> Any:
    found, dims = tpu.pad_replica_inputs(rows, maximum, spec)
    sizes = [[plain(each) for each in row[len(rows[0]) :]] for row in found]
    return [each.shape for each in found[0][: len(rows[0])]], sizes, [(d.arg_index, d.shape_index) for d in dims]


def scales(reduction: str, replicas: int) -> list[float]:
    """The constants by which the loss is multiplied."""
    w = tpu.Variable(2.0)
    optimizer = tpu.CrossShardOptimizer(tpu.GradientDescentOptimizer(1.0), reduction)

    def computation(x: Any) -> Any:
        ((found_gradient, _),) = optimizer.compute_gradients(w * x, [w])
        return found_gradient

    return [float(each) for (each,) in tpu.replicate(computation, [[1.0]] * replicas)]


def clusters() -> Any:
    """The numbers of outside_compilation in two programs."""

    def computation(x: Any) -> Any:
        return tpu.outside_compilation(lambda a: None, x), tpu.outside_compilation(lambda a: None, x)

    def numbers() -> Any:
        sends = instructions("send", computation, [[1.0]])
        return [send.annotations["frontend_attributes"]["_xla_outside_compilation"] for send in sends]

    return numbers(), numbers()


def infeeds() -> Any:
    queue = tpu.InfeedQueue(tuple_types=[xb.f32, xb.s32], tuple_shapes=[[4], [2]])
    return [str(each.shape) for each in instructions("infeed", lambda x, y: (x, y), [[], []], infeed_queue=queue)]


def has_sizes(padder: bool) -> int:
    options = tpu.XLAOptions(enable_xla_dynamic_padder=padder)
    return len(instructions("set_dimension_size", lambda x: x, ROWS, maximum_shapes=[[None]], xla_options=options))


def size_of_mean_and_concat() -> Any:
    mean = the_sum(lambda x: tpu.cross_replica_mean(x, 2), [[1.0]] * 4)
    joined = the_sum(tpu.cross_replica_concat, [[F32([1, 2, 3])]] * 4)
    return mean.attributes.replica_groups, str(joined.shape)


def root_of(computation: Any) -> list[str]:
    return list(map(str, tpu.replicate.program(computation, [[1.0]] * 2).module.entry.root.shape.elements))


SENTENCES: list[tuple[str, str, Callable[[], Any], Any]] = [
    ("1", "the output has the shape of the input", lambda: of_each(
        tpu.cross_replica_sum, F32([[[1]]] * 2)), [[[2]]] * 2),
    ("1", "the order in a row is without meaning", lambda: [
        of_each(lambda x, g=g: tpu.cross_replica_sum(x, g), F32([1, 2, 4, 8]))
        for g in ([[0, 2], [1, 3]], [[2, 0], [3, 1]], [[3, 1], [2, 0]])
    ], [[5, 10, 5, 10]] * 3),
    ("1", "the computation is a scalar add, without channel", lambda: (
        [i.opcode for i in the_sum(tpu.cross_replica_sum, [[F32([1, 2])]] * 2).attributes.to_apply.instructions][-1],
        the_sum(tpu.cross_replica_sum, [[F32([1, 2])]] * 2).attributes.channel_id,
    ), ("add", None)),
    ("1", "groups of unequal sizes are legal in HLO", unequal, [3.0, 3.0, 4.0]),
    ("1", "the gradient has the same groups", grad_groups, [((0, 2), (1, 3))]),
    ("1", "the gradient is the sum of the cotangents", lambda: gradient(
        lambda x: tpu.cross_replica_sum(x, [[0, 2], [1, 3]]), xb.f32[()], F32([1, 2, 4, 8])), [5, 10, 5, 10]),
    ("2", "AllToAll takes every number and bool", lambda: kept(
        [*NUMBERS, "pred"], lambda x: tpu.all_to_all(x, 0, 0, 1)), [*NUMBERS, "pred"]),
    ("2", "CollectivePermute takes every number", lambda: kept(NUMBERS, permuted([[0, 0]])), NUMBERS),
    ("2", "AllToAll multiplies one extent and divides the other", lambda: [
        str(y.shape) for y in instructions("tuple", lambda x: tpu.all_to_all(x, 1, 0, 2), [[xb.f32[4, 3]]] * 2)
    ], ["(f32[2,6])"]),
    ("2", "its gradient has split and concat swapped", lambda: gradient(
        turned(0, 1), xb.f32[1, 8], TURNED) == of_each(turned(1, 0), TURNED), True),
    ("2", "a source that is no target gets zeros", lambda: of_each(permuted([[0, 1]]), F32([3, 4])), [0, 3]),
    ("2", "the gradient has the columns swapped", lambda: gradient(
        permuted([[0, 1], [1, 2]]), xb.f32[()], F32([1, 2, 4])), [2, 4, 0]),
    ("2", "means are over runs of ids, a concatenation sends all", size_of_mean_and_concat,
     (((0, 1), (2, 3)), "f32[4,3]")),
    ("3", "the replicas differ by data and by their number", lambda: of_each(by_replica, F32([1, 1, 2])), [1, 2, 4]),
    ("3", "inputs of rewrite are None or those of one replica", lambda: (
        plain(tpu.rewrite(lambda: 1)), plain(tpu.rewrite(lambda x, y: x - y, [3, 1]))), ([1], [2])),
    ("3", "rows may be tuples", lambda: plain(tpu.replicate(lambda x: x, [(1,), (2,)])), [[1], [2]]),
    ("3", "a collective runs though no result needs it", lambda: len(instructions(
        "all_reduce", lambda x: (tpu.cross_replica_sum(x), x)[1], [[1.0]] * 2)), 1),
    ("4", "all axes of batch_parallel are 0", lambda: plain(tpu.batch_parallel(
        lambda x, y: (x, y), [F32([[1, 2], [3, 4]]), np.int32([5, 6])], num_shards=2)), [[[1, 2], [3, 4]], [5, 6]]),
    ("4", "each output has its axis and its flag", lambda: plain(tpu.shard(
        lambda x: (x, x), [F32([[1, 2], [3, 4]])], 2, output_shard_axes=[1, 0], outputs_from_all_shards=[True, False]
    )), [[[1, 2, 3, 4]], [[1, 2]]]),
    ("5", "an extent that replica 0 alone does not tell is padded", lambda: lengths(
        [[unknown(F32([1, 2, 3]))], [F32([1, 2, 3])]]), ([(3,)], [[3], [3]], [(0, 0)])),
    ("5", "an extent that a later replica does not tell is padded", lambda: lengths(
        [[F32([1, 2, 3])], [unknown(F32([1, 2, 3]))]]), ([(3,)], [[3], [3]], [(0, 0)])),
    ("5", "a maximum may be given for some dimensions", lambda: lengths(
        [[np.ones((1, 3))], [np.ones((2, 5))]], [[None, 9]]), ([(2, 9)], [[1, 3], [2, 5]], [(0, 0), (0, 1)])),
    ("5", "the maximum 8 is 8 for both", lambda: lengths(ROWS, [[8]]), ([(8,)], [[3], [5]], [(0, 0)])),
    ("5", "a maximum is not rounded", lambda: lengths(ROWS, [[6]], tpu.PaddingSpec(1)), ([(6,)], [[3], [5]], [(0, 0)])),
    ("5", "sizes are in the order of inputs and dimensions", lambda: lengths(
        [[np.ones((3, 1)), np.ones(4)], [np.ones((2, 2)), np.ones(5)]]
    ), ([(3, 2), (5,)], [[3, 1, 4], [2, 2, 5]], [(0, 0), (0, 1), (1, 0)])),
    ("5", "sizes are s32", lambda: tpu.pad_replica_inputs(ROWS)[0][0][1].dtype.name, "int32"),
    ("5", "the size is set inside unless the padder is off", lambda: (has_sizes(True), has_sizes(False)), (1, 0)),
    ("6", "one shard is not scaled, the sum neither", lambda: (
        scales("weighted_mean", 1), scales("weighted_mean", 4), scales("weighted_sum", 4)
    ), ([1.0], [0.25] * 4, [1.0] * 4)),
    ("7", "outside_compilation is counted anew in each program", clusters, (["0", "1"], ["0", "1"])),
    ("7", "cores are not looked at by their names", lambda: tpu.core(10**6), "device:TPU_REPLICATED_CORE:1000000"),
    ("8", "the root is the tuple of the flat results", lambda: root_of(
        lambda x: {"b": x, "a": (x < 1.0, None)}), ["pred[]", "f32[]"]),
    ("8", "an item is one infeed of a tuple", infeeds, ["((f32[2], s32[1]), token[])"]),
]  # fmt: skip


@pytest.mark.parametrize(("section", "sentence", "found", "wanted"), SENTENCES)
def test_a_sentence_of_the_reference(section: str, sentence: str, found: Any, wanted: Any) -> None:
    assert found() == wanted, f"section {section}: {sentence}"


def with_queue(shape: Any = (2,), **options: Any) -> Any:
    queue = tpu.InfeedQueue(tuple_types=[xb.f32], tuple_shapes=[shape])
    return lambda: tpu.replicate(lambda x, y: x, [[F32([1])], [F32([1, 2])]], queue, **options)


def two(rows: Any, **options: Any) -> Any:
    return lambda: tpu.replicate(lambda x, y: x, rows, **options)


def cross(given: Any, reduction: str) -> Any:
    return lambda: tpu.CrossShardOptimizer(given, reduction)


# Each call breaks the rule of its row and as many later ones as it can: the refusal is that of the first.
ORDER = [
    ("3", two([[1.0], [1, 2]]), "structure_mismatch", "nested structure"),
    ("3", two([[1.0], [F32([1, 2]).astype(np.int32)]]), "element_type_mismatch", "replica 1 had"),
    ("3", two([[F32([1])], [F32([1, 2])]], maximum_shapes=[[2], [2]]), "arity_mismatch", "exactly 2 arguments"),
    ("3", with_queue(maximum_shapes=[[2], [2]]), "invalid_attribute", "with infeed queues"),
    ("3", with_queue((3,)), "shape_mismatch", "are 1 and 2"),
    ("3", lambda: tpu.rewrite(lambda: tpu.replicate(lambda: 1, [])), "no_replicas", "inputs=None"),
    ("4", lambda: tpu.shard(1, (1,), 0, [0, 0]), "non_positive", "Received 0"),
    ("4", lambda: tpu.shard(lambda: 1, [F32([1])], 2, [0, 0]), "attribute_length_mismatch", "2 input_shard_axes"),
    ("4", lambda: tpu.shard(lambda x: x, [F32([1, 2])], 2, None, [True] * 2, [0] * 2), "attribute_length_mismatch",
     "2 output_shard_axes"),
    ("6", cross(0.1, "mean"), "invalid_attribute", "Received: mean"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "call", "kind", "word"), ORDER)
def test_the_first_of_several_refusals(section: str, call: Any, kind: str, word: str) -> None:
    error = TypeError if kind == "arity_mismatch" else ValueError
    assert word in refused(kind, call, error=error), section


@pytest.mark.parametrize("dtype", ["f16", "f64", "s16", "u16", "u64", "c128"])
def test_types_that_no_infeed_takes(dtype: str) -> None:
    call = lambda: tpu.InfeedQueue(tuple_types=[getattr(xb, dtype)])  # noqa: E731
    refused("element_type_unsupported", call, f"element 0 is {dtype}", error=TypeError)


def test_the_message_about_a_type_is_that_of_tensorflow() -> None:
    text = refused(
        "element_type_unsupported", lambda: tpu.rewrite(tpu.cross_replica_sum, [np.int64(1)]), error=TypeError
    )
    wanted = "Value passed to parameter 'input' has DataType int64 not in list of allowed values: "
    assert f"{wanted}float16, bfloat16, float32, float64, int32, uint32" in text


def test_a_concatenation_takes_the_types_of_the_sum() -> None:
    call = lambda: tpu.rewrite(tpu.cross_replica_concat, [np.int8([1])])  # noqa: E731
    refused("element_type_unsupported", call, "int8", error=TypeError)


@pytest.mark.parametrize("rows", [[[None], [3]], [[3], [None]]])
def test_none_beside_a_number_is_refused(rows: Any) -> None:
    refused("element_type_mismatch", lambda: tpu.replicate(lambda x: x, rows), "[None]", "[int32]")


def test_the_neighbours_of_the_sum_assume_one_replica_outside(caplog: pytest.LogCaptureFixture) -> None:
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    with caplog.at_level(logging.WARNING, "xbuild.tpu"):
        found = tpu.all_to_all(x, 0, 0, 1)
    assert found.shape == x.shape
    assert "all_to_all should be used within" in caplog.text
