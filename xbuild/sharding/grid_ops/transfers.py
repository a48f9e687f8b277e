"""Shifts, and sends and receives by coordinates, of the shard dialect."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from attrs import frozen

from shape_inference import refuse

from ... import derived, ops
from ...core.builder import Builder, Value
from ...derived.support.dressing import dressed
from ...properties.device_groups import Pairs
from ...properties.mesh import Mesh
from .groups import apart_from, axes_of, in_group, next_channel, shape_of


@dressed
def shift(
    input: Value,
    *,
    mesh: Mesh,
    grid_axes: Sequence[int | str] = (),
    shift_axis: int | str,
    offset: int,
    rotate: bool = False,
) -> Value:
    """The tensor of the device that is `offset` places before this one along an axis of the group.

    With `rotate` the places wrap around; without it the result is undefined where no device sends.
    Raises: grid_axis_out_of_range; grid_axes_duplicate; shift_axis_not_in_group.

    Source: MLIR, shard dialect, shard.shift; the direction is that of JAX's examples of ppermute.
    """
    axes = axes_of(mesh, grid_axes)
    (axis,) = axes_of(mesh, [shift_axis], "shift_axis")
    if axis not in axes:
        message = f"invalid shift axis {shift_axis}: it must be one of the grouping grid axes {[*grid_axes]}"
        refuse("shift_axis_not_in_group", message)
    size = mesh.size(axis)
    moved = [(place, place + offset) for place in range(size)]
    moved = [(a, b % size) for a, b in moved if rotate or 0 <= b < size]
    pairs = mesh.pairs(axis, moved)
    with apart_from(mesh, (target for _, target in pairs)):
        return ops.collective_permute(input, source_target_pairs=pairs, channel_id=next_channel(input.builder))


@frozen(eq=False)
class _Sent:
    """A send that no recv has met yet."""

    value: Value
    mesh: Mesh
    axes: tuple[str, ...]
    destination: int


_SENT: WeakKeyDictionary[Builder, list[_Sent]] = WeakKeyDictionary()


@dressed
def send(input: Value, *, mesh: Mesh, grid_axes: Sequence[int | str] = (), destination: Sequence[int]) -> Value:
    """Send the tensor to a device of the group, by a coordinate for each of the axes; gives the tensor itself.

    The next `recv` of this grid, axes and shape meets it: of all devices, which run the same program, the source that
    the recv names passes its tensor to the destination. The transfer is recorded with that recv.
    Raises: grid_axis_out_of_range; grid_axes_duplicate; device_index_size; device_index_out_of_range.

    Source: MLIR, shard dialect, shard.send.
    """
    axes = axes_of(mesh, grid_axes)
    sent = _Sent(input, mesh, axes, in_group("destination", mesh, axes, destination))
    _SENT.setdefault(input.builder, []).append(sent)
    return input


@dressed
def recv(
    input: Value, *, mesh: Mesh, grid_axes: Sequence[int | str] = (), source: Sequence[int] | None = None
) -> Value:
    """The tensor that a device of the group sends, on its destination; undefined on the other devices.

    The values of `input` are ignored. Where no source is named, the group has two members, and the other one is it.
    Raises: as send; missing_send where no send of this grid, axes and shape came before.

    Source: MLIR, shard dialect, shard.recv.
    """
    axes = axes_of(mesh, grid_axes)
    place = None if source is None else in_group("source", mesh, axes, source)
    sent = _met(input, mesh, axes)
    if place is None and mesh.size(axes) == 2:
        place = 1 - sent.destination
    if place is None:
        refuse("device_index_size", f"recv names no source, and the group has {mesh.size(axes)} members")
    pairs = tuple((group[place], group[sent.destination]) for group in mesh.groups(axes))
    return _transferred(sent.value, mesh, pairs)


def _met(input: Value, mesh: Mesh, axes: tuple[str, ...]) -> _Sent:
    """The first send that the recv meets, which no other one meets then."""
    waiting = _SENT.get(input.builder, [])
    wanted = mesh, axes, shape_of(input)
    found = next((each for each in waiting if (each.mesh, each.axes, shape_of(each.value)) == wanted), None)
    if found is None:
        message = f"no send of {shape_of(input)} along {', '.join(axes)} of {mesh} comes before this recv"
        refuse("missing_send", message)
    waiting.remove(found)
    return found


def _transferred(value: Value, mesh: Mesh, pairs: Pairs) -> Value:
    channel = next_channel(value.builder)
    token = derived.after_all(builder=value.builder)
    posted = ops.recv(token, shape=shape_of(value), channel_id=channel, source_target_pairs=pairs)
    begun = ops.send(value, token, channel_id=channel, source_target_pairs=pairs)
    received = ops.recv_done(posted, channel_id=channel)
    ops.send_done(begun, channel_id=channel)
    with apart_from(mesh, (target for _, target in pairs)):
        return derived.get_tuple_element(received, 0)
