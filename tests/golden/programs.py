"""Programs whose texts and pictures are kept as files."""

from __future__ import annotations

import numpy as np

import xbuild as xb

o = xb.ops


def _constant(builder: xb.Builder, value: object) -> xb.Value:
    return o.constant(builder, literal=np.asarray(value))


def _spread(value: xb.Value, *sizes: int) -> xb.Value:
    return o.broadcast(value, sizes=sizes, dimensions=())


def attributes() -> xb.Module:
    """Every way in which an attribute is spelled."""
    b = xb.Builder("attributes")
    x = o.parameter(b, number=0, shape=xb.f32[4, 4], name="x")
    i = o.parameter(b, number=1, shape=xb.s32[()], name="i")
    zero = _constant(b, np.float32(0))
    o.iota(b, shape=xb.s32[2, 3], iota_dimension=1)
    o.broadcast(x, sizes=(4, 2, 4), dimensions=(0, 2))
    o.reshape(x, new_sizes=(16,))
    o.transpose(x, permutation=(1, 0))
    o.reverse(x, dimensions=(0, 1))
    o.concatenate([x, x], dimension=1)
    o.pad(x, zero, padding=[(0, 0), (-1, 2, 2)])
    o.slice(x, start_indices=(0, 1), limit_indices=(4, 3), strides=(2, 1))
    o.slice(x, start_indices=(0, 1), limit_indices=(4, 3))
    o.dynamic_slice(x, [i, i], dynamic_slice_sizes=(2, 1))
    o.compare(x, x, direction="LT")
    o.compare(x, x, direction="GE", type="TOTALORDER")
    o.reduce(x, zero, to_apply=o.add, dimensions=(1,))
    o.dot(x, x, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    o.dot(
        x, x, lhs_batch_dims=(0,), rhs_batch_dims=(0,), lhs_contracting_dims=(1,), rhs_contracting_dims=(1,),
        operand_precision=("highest", "highest"),
    )  # fmt: skip
    o.convert(x, new_element_type=xb.bf16)
    o.bitcast_convert(x, new_element_type=xb.s32)
    o.reduce_precision(x, exponent_bits=5, mantissa_bits=10)
    windows = o.reduce_window(x, zero, to_apply=o.add, window="size=2x2 stride=2x2 pad=1_1x0_0")
    o.select_and_scatter(x, windows, zero, select=_at_least, scatter=o.add, window="size=2x2 stride=2x2 pad=1_1x0_0")
    o.convolution(
        o.reshape(x, new_sizes=(1, 16, 1)), o.reshape(x, new_sizes=(4, 4, 1)), window="size=4 rhs_dilate=2",
        dimension_numbers="b0f_0oi->b0f", batch_group_count=1, operand_precision=("high", "default"),
    )  # fmt: skip
    rows = o.gather(
        x, o.iota(b, shape=xb.s32[2, 1], iota_dimension=0), offset_dims=(1,), collapsed_slice_dims=(0,),
        start_index_map=(0,), index_vector_dim=1, slice_sizes=(1, 4), indices_are_sorted=True,
    )  # fmt: skip
    o.scatter(
        x, o.iota(b, shape=xb.s32[2, 1], iota_dimension=0), rows, to_apply=o.add, update_window_dims=(1,),
        inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1, unique_indices=True,
    )  # fmt: skip
    o.map([x, x], to_apply=o.add, dimensions=(0, 1))
    o.sort([x, x], to_apply=_first_is_less, dimension=1, is_stable=True)
    o.topk(x, k=2)
    o.cholesky(x)
    o.triangular_solve(x, x, left_side=True, lower=False, unit_diagonal=True, transpose_a="ADJOINT")
    o.fft(x, fft_type="RFFT", fft_length=(4,))
    scale = o.reshape(o.slice(x, start_indices=(0, 0), limit_indices=(1, 4)), new_sizes=(4,))
    o.batch_norm_training(x, scale, scale, epsilon=1e-5, feature_index=1)
    o.batch_norm_inference(x, scale, scale, scale, scale, epsilon=1.0, feature_index=1)
    o.rng(zero, zero, shape=xb.f32[3], distribution="rng_uniform")
    state = o.broadcast(_constant(b, np.uint64(7)), sizes=(2,), dimensions=())
    o.rng_bit_generator(state, algorithm="rng_three_fry", shape=xb.u32[4])
    o.rng_get_and_update_state(b, delta=4, shape=xb.u64[2])
    o.domain(o.opt_barrier(x), entry="{maximal device=0}", exit="{maximal device=1}")
    o.call(x, to_apply=lambda y: o.negate(y))
    pair = o.tuple_([i, x])
    loop = o.while_(pair, condition=_below_ten, body=_next)
    picked = o.get_tuple_element(loop, index=1)
    o.conditional(o.compare(i, i, direction="EQ"), [x, x], branch_computations=[lambda v: o.abs(v), lambda v: v])
    o.conditional(i, [x, x, x], branch_computations=[lambda v: o.abs(v), lambda v: v, lambda v: o.tanh(v)])
    return xb.Module("attributes", b.build(picked))


def _at_least(kept: xb.Value, other: xb.Value) -> xb.Value:
    return o.compare(kept, other, direction="GE")


def _first_is_less(a: xb.Value, b: xb.Value, *others: xb.Value) -> xb.Value:
    return o.compare(a, b, direction="LT")


def _below_ten(state: xb.Value) -> xb.Value:
    return o.compare(o.get_tuple_element(state, index=0), _constant(state.builder, np.int32(10)), direction="LT")


def _next(state: xb.Value) -> tuple[xb.Value, ...]:
    count, value = (o.get_tuple_element(state, index=index) for index in range(2))
    total = o.all_reduce(value, to_apply=o.add)
    halved = o.multiply(total, _spread(_constant(state.builder, np.float32(0.5)), 4, 4))
    return o.add(count, _constant(state.builder, np.int32(1))), halved


def devices() -> xb.Module:
    """Every collective and transfer, with control predecessors, scopes and annotations."""
    b = xb.Builder("devices")
    x = o.parameter(b, number=0, shape=xb.f32[4, 4], name="x")
    o.all_reduce(x, to_apply=o.maximum, replica_groups=[(0, 1), (2, 3)])
    o.all_reduce([x, x], to_apply=o.add, channel_id=1, use_global_device_ids=True, replica_groups=[(0, 1, 2, 3)])
    o.all_gather(x, all_gather_dimension=1, shard_count=4)
    o.reduce_scatter(x, to_apply=o.add, scatter_dimension=0, shard_count=2, replica_groups=[(0, 1), (2, 3)])
    o.all_to_all(x, split_dimension=1, concat_dimension=1, split_count=4)
    o.all_to_all(x, split_dimension=0, concat_dimension=1, split_count=2, replica_groups=[(0, 1), (2, 3)])
    o.all_to_all([x, x], replica_groups=[(0, 1), (2, 3)])
    o.collective_permute(x, source_target_pairs=[(0, 1), (1, 2)], channel_id=2)
    o.replica_id(b)
    token = o.after_all((), builder=b)
    posted = o.recv(token, shape=xb.f32[4, 4], channel_id=3, source_target_pairs=[(0, 1)])
    with xb.scope("exchange"), xb.control(after=[posted]):
        sent = o.send(x, token, channel_id=3, source_target_pairs=[(0, 1)])
    o.send_done(sent, channel_id=3)
    received = o.recv_done(posted, channel_id=3)
    to_host = o.send(x, token, channel_id=4, is_host_transfer=True)
    o.send_done(to_host, channel_id=4, is_host_transfer=True)
    fed = o.infeed(token, shape=xb.f32[4], infeed_config='say "hi"')
    o.outfeed(x, o.get_tuple_element(fed, index=1), outfeed_shape=xb.f32[4, 4], outfeed_config="")
    return xb.Module("devices", b.build(o.get_tuple_element(received, index=0)), num_replicas=4)


def training_step() -> xb.Module:
    """Two layers, their gradients, the sum of these over the replicas, the step."""
    b = xb.Builder("training_step")
    x = o.parameter(b, number=0, shape=xb.f32[32, 64], name="x")
    labels = o.parameter(b, number=1, shape=xb.f32[32, 10], name="labels")
    first = o.parameter(b, number=2, shape=xb.f32[64, 16], name="first")
    second = o.parameter(b, number=3, shape=xb.f32[16, 10], name="second")
    zero, rate = _constant(b, np.float32(0)), _constant(b, np.float32(0.1))
    with xb.scope("forward"):
        hidden = o.maximum(_product(x, first, 1, 0), _spread(zero, 32, 16))
        error = o.subtract(_product(hidden, second, 1, 0), labels)
    with xb.scope("backward"):
        of_second = _product(hidden, error, 0, 0)
        back = _product(error, second, 1, 1)
        alive = o.compare(hidden, _spread(zero, 32, 16), direction="GT")
        of_first = _product(x, o.select(alive, back, _spread(zero, 32, 16)), 0, 0)
    with xb.scope("update"):
        sums = o.all_reduce([of_first, of_second], to_apply=o.add)
        stepped = [
            o.subtract(weights, o.multiply(o.get_tuple_element(sums, index=n), _spread(rate, *weights.shape.dims)))
            for n, weights in enumerate((first, second))
        ]
    return xb.Module("training_step", b.build(o.tuple_(stepped)), num_replicas=4)


def _product(lhs: xb.Value, rhs: xb.Value, left: int, right: int) -> xb.Value:
    return o.dot(lhs, rhs, lhs_contracting_dims=(left,), rhs_contracting_dims=(right,))


def loop() -> xb.Module:
    """A loop and a choice after it."""
    b = xb.Builder("loop")
    x = o.parameter(b, number=0, shape=xb.f32[4, 4], name="x")
    result = o.get_tuple_element(
        o.while_(o.tuple_([_constant(b, np.int32(0)), x]), condition=_below_ten, body=_next), index=1
    )
    total = o.reduce(result, _constant(b, np.float32(0)), to_apply=o.add, dimensions=(0, 1))
    positive = o.compare(total, _constant(b, np.float32(0)), direction="GT")
    chosen = o.conditional(
        positive, [result, result], branch_computations=[lambda v: o.negate(v), lambda v: o.multiply(v, v)]
    )
    return xb.Module("loop", b.build(chosen), num_replicas=2)


def ring(size: int = 4) -> xb.ModuleGroup:
    """Each device sends to the next, after it has posted its own receive."""
    return xb.ModuleGroup({device: xb.Module("ring", _ring(device, size)) for device in range(size)})


def _ring(device: int, size: int) -> xb.Computation:
    b = xb.Builder("ring")
    x = o.parameter(b, number=0, shape=xb.f32[4], name="x")
    token = o.after_all((), builder=b)
    there, here = 1 + device, 1 + (device - 1) % size
    posted = o.recv(token, shape=xb.f32[4], channel_id=here)
    with xb.control(after=[posted]):
        sent = o.send(x, token, channel_id=there)
    o.send_done(sent, channel_id=there)
    received = o.get_tuple_element(o.recv_done(posted, channel_id=here), index=0)
    return b.build(o.add(received, x))
