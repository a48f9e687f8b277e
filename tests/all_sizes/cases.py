"""Schemes: those that no size deadlocks, those that some do, and those about which the theorem says nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xbuild as xb

Build = Callable[[Any], Any]


def neighbours(device: Any, n: Any) -> tuple[Any, Any]:
    return (device.index - 1) % n, (device.index + 1) % n


# ----------------------------------------------------------------------------
# Rings.


def ring(n: Any) -> xb.Scheme:
    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        device.exchange(right, left)

    return xb.Scheme(n, program)


def ring_all_reduce(n: Any) -> xb.Scheme:
    """Reduce-scatter, then all-gather, in n - 1 steps each."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        device.repeat(n - 1, lambda step: device.exchange(right, left, channel=1))
        device.repeat(n - 1, lambda step: device.exchange(right, left, channel=2))

    return xb.Scheme(n, program)


def ring_even_first(n: Any) -> xb.Scheme:
    """Even devices send first, odd devices receive first."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        if device.index % 2 == 0:
            device.send(right)
            device.recv(left)
        else:
            device.recv(left)
            device.send(right)

    return xb.Scheme(n, program)


def ring_with_one_receiver_first(n: Any) -> xb.Scheme:
    """All devices send first, but for the first."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        if device.index == 0:
            device.recv(left)
            device.send(right)
        else:
            device.send(right)
            device.recv(left)

    return xb.Scheme(n, program)


def token_ring(n: Any) -> xb.Scheme:
    """A token passes around the ring n times: the number of passes is quadratic."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)

        def lap(number: Any) -> None:
            if device.index == 0:
                device.send(right)
                device.recv(left)
            else:
                device.recv(left)
                device.send(right)

        device.repeat(n, lap)

    return xb.Scheme(n, program)


# ----------------------------------------------------------------------------
# Halo exchanges.


def periodic_halo(n: Any) -> xb.Scheme:
    def program(device: Any) -> None:
        left, right = neighbours(device, n)

        def step(number: Any) -> None:
            device.post(left, channel=1)
            device.post(right, channel=2)
            device.send(right, channel=1)
            device.send(left, channel=2)
            device.wait(left, channel=1)
            device.wait(right, channel=2)

        device.repeat(10, step)

    return xb.Scheme(n, program)


def open_halo(n: Any) -> xb.Scheme:
    """An open line with blocking transfers: to the right, then to the left. It takes n rounds to complete."""

    def program(device: Any) -> None:
        if device.index > 0:
            device.recv(device.index - 1)
        if device.index < n - 1:
            device.send(device.index + 1)
            device.recv(device.index + 1)
        if device.index > 0:
            device.send(device.index - 1)

    return xb.Scheme(n, program)


def torus(n: Any) -> xb.Scheme:
    """Rows of 4: n rows."""

    def program(device: Any) -> None:
        row, column = device.index
        device.exchange(((row + 1) % n, column), ((row - 1) % n, column), channel=1)
        device.exchange((row, (column + 1) % 4), (row, (column - 1) % 4), channel=2)

    return xb.Scheme((n, 4), program)


def open_grid(n: Any) -> xb.Scheme:
    """A square grid, each device with up to four neighbours."""

    def program(device: Any) -> None:
        row, column = device.index
        for axis, (at, move) in enumerate([(row, (1, 0)), (column, (0, 1))]):
            after = (row + move[0], column + move[1])
            before = (row - move[0], column - move[1])
            if at > 0:
                device.post(before, channel=1 + 2 * axis)
            if at < n - 1:
                device.post(after, channel=2 + 2 * axis)
                device.send(after, channel=1 + 2 * axis)
                device.wait(after, channel=2 + 2 * axis) if at == 0 else None
            if at > 0:
                device.send(before, channel=2 + 2 * axis)
                device.wait(before, channel=1 + 2 * axis)
                if at < n - 1:
                    device.wait(after, channel=2 + 2 * axis)

    return xb.Scheme((n, n), program)


def wavefront(n: Any) -> xb.Scheme:
    """A sweep over n rows of 3 devices, from one corner to the other."""

    def program(device: Any) -> None:
        row, column = device.index

        def sweep(number: Any) -> None:
            if row > 0:
                device.recv((row - 1, column))
            if column > 0:
                device.recv((row, column - 1))
            if row < n - 1:
                device.send((row + 1, column))
            if column < 2:
                device.send((row, column + 1))

        device.repeat(5, sweep)

    return xb.Scheme((n, 3), program)


# ----------------------------------------------------------------------------
# Trees and stars.


def tree_all_reduce(n: Any) -> xb.Scheme:
    """A binary tree: reduce to the root, then broadcast."""

    def program(device: Any) -> None:
        at = device.index
        children = [child for child in (2 * at + 1, 2 * at + 2) if child < n]
        for child in children:
            device.recv(child)
        if at > 0:
            device.send((at - 1) // 2)
            device.recv((at - 1) // 2)
        for child in children:
            device.send(child)

    return xb.Scheme(n, program)


def tree_broadcast_in_segments(n: Any) -> xb.Scheme:
    """A binary tree that passes 16 segments down."""

    def program(device: Any) -> None:
        at = device.index

        def segment(number: Any) -> None:
            if at > 0:
                device.recv((at - 1) // 2)
            for child in (2 * at + 1, 2 * at + 2):
                if child < n:
                    device.send(child)

        device.repeat(16, segment)

    return xb.Scheme(n, program)


def parameter_server(n: Any) -> xb.Scheme:
    """The first device receives from each other one, then sends to each."""

    def program(device: Any) -> None:
        if device.index == 0:
            device.repeat(n - 1, lambda worker: device.recv(worker + 1))
            device.repeat(n - 1, lambda worker: device.send(worker + 1))
        else:
            device.send(0)
            device.recv(0)

    return xb.Scheme(n, program)


# ----------------------------------------------------------------------------
# Pipelines.


class Stage:
    """The transfers of one stage of a pipeline."""

    def __init__(self, device: Any, n: Any) -> None:
        self.device, self.at, self.n = device, device.index, n

    def forward(self, number: Any = 0) -> None:
        if self.at > 0:
            self.device.recv(self.at - 1, channel=1)
        if self.at < self.n - 1:
            self.device.send(self.at + 1, channel=1)

    def backward(self, number: Any = 0) -> None:
        if self.at < self.n - 1:
            self.device.recv(self.at + 1, channel=2)
        if self.at > 0:
            self.device.send(self.at - 1, channel=2)

    def both(self, number: Any = 0) -> None:
        """One forward, one backward: activations and gradients cross in one exchange."""
        if self.at > 0:
            self.device.recv(self.at - 1, channel=1)
        if self.at < self.n - 1:
            self.device.post(self.at + 1, channel=2)
            self.device.send(self.at + 1, channel=1)
            self.device.wait(self.at + 1, channel=2)
        if self.at > 0:
            self.device.send(self.at - 1, channel=2)


def gpipe(n: Any) -> xb.Scheme:
    def program(device: Any) -> None:
        stage = Stage(device, n)
        device.repeat(8, stage.forward)
        device.repeat(8, stage.backward)

    return xb.Scheme(n, program)


def one_forward_one_backward(microbatches: Callable[[Any], Any], more: int = 1) -> Build:
    """Each stage warms up with as many forwards as there are stages after it."""

    def build(n: Any) -> xb.Scheme:
        def program(device: Any) -> None:
            stage, count = Stage(device, n), microbatches(n)
            warmup = min(count, more * (n - 1 - device.index))
            device.repeat(warmup, stage.forward)
            device.repeat(count - warmup, stage.both)
            device.repeat(warmup, stage.backward)

        return xb.Scheme(n, program)

    return build


def interleaved(n: Any) -> xb.Scheme:
    """Two chunks of the model on each stage: microbatches pass the ring of stages twice, in groups."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        last = n - 1

        def chunk(number: int) -> Callable[[Any], None]:
            def microbatch(trip: Any) -> None:
                if device.index > 0:
                    device.recv(left, channel=1 + number)
                elif number > 0:
                    device.wait(left, channel=number + 10)
                if device.index < last:
                    device.send(right, channel=1 + number)
                elif number < 1:
                    device.send(right, channel=number + 11)

            return microbatch

        if device.index == 0:
            device.repeat(n, lambda trip: device.post(left, channel=11))
        device.repeat(n, chunk(0))
        device.repeat(n, chunk(1))

    return xb.Scheme(n, program)


def zero_bubble(n: Any) -> xb.Scheme:
    """Gradients of inputs pass before the weights' are computed: sends of gradients come first in each step."""

    def program(device: Any) -> None:
        stage, at = Stage(device, n), device.index
        warmup = n - 1 - at

        def steady(number: Any) -> None:
            stage.both()

        device.repeat(warmup, stage.forward)
        device.repeat(2 * n - warmup, steady)
        device.repeat(warmup, stage.backward)
        device.all_reduce("optimizer")

    return xb.Scheme(n, program, groups={"optimizer": lambda index: 0})


# ----------------------------------------------------------------------------
# Hierarchical collectives.


def hosts_of_four(n: Any) -> xb.Scheme:
    """Groups of four devices, the last of which may be smaller: reduce in each, among the leaders, then in each."""

    def program(device: Any) -> None:
        device.all_reduce("host")
        if device.index % 4 == 0:
            device.all_reduce("leaders")
        device.all_reduce("host")

    groups = {"host": lambda index: index // 4, "leaders": lambda index: 0 if index % 4 == 0 else None}
    return xb.Scheme(n, program, groups)


def three_groups(n: Any) -> xb.Scheme:
    """Three groups, whatever the number of devices, and a ring."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)

        def step(number: Any) -> None:
            device.all_reduce("group")
            device.exchange(right, left)
            device.all_reduce("all")

        device.repeat(n, step)

    return xb.Scheme(n, program, {"group": lambda index: index % 3, "all": lambda index: ()})


def mesh_rows_and_columns(n: Any) -> xb.Scheme | None:
    """n devices as a mesh with rows of 4: groups by row and by column. There is a program if 4 divides n."""
    if n % 4 != 0:
        return None

    def program(device: Any) -> None:
        device.all_reduce("row")
        device.all_reduce("column")
        device.all_reduce("row")

    return xb.Scheme((n // 4, 4), program, {"row": lambda index: index[0], "column": lambda index: index[1]})


def pairs(n: Any) -> xb.Scheme | None:
    """Each even device exchanges with the next one."""
    if n % 2 == 1:
        return None

    def program(device: Any) -> None:
        if device.index % 2 == 0:
            device.exchange(device.index + 1, device.index + 1)
        else:
            device.exchange(device.index - 1, device.index - 1)

    return xb.Scheme(n, program)


# ----------------------------------------------------------------------------
# Counts and buffers.


def two_posted_recvs(n: Any) -> xb.Scheme:
    """A ring in which each device always has posted two recvs."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)

        def step(number: Any) -> None:
            device.send(right)
            device.wait(left)
            device.post(left)

        device.post(left)
        device.post(left)
        device.repeat(n, step)
        for _ in range(2):
            device.send(right)
        for _ in range(2):
            device.wait(left)

    return xb.Scheme(n, program)


def as_often_as_the_index(n: Any) -> xb.Scheme:
    """Each device receives as often as its index says, and sends once more: in nested repetitions on the first."""

    def program(device: Any) -> None:
        at = device.index
        if at > 0:
            device.repeat(at, lambda number: device.recv(at - 1))
        if at < n - 1:
            device.repeat(at + 1, lambda number: device.send(at + 1))
        if at == n - 1:
            device.repeat(n, lambda number: device.repeat(4, lambda inner: device.send(0, channel=2)))
        if at == 0:
            device.repeat(4 * n, lambda number: device.recv(n - 1, channel=2))

    return xb.Scheme(n, program)


SAFE: Mapping[str, Build] = {
    "ring": ring,
    "ring all-reduce": ring_all_reduce,
    "ring, even devices send first": ring_even_first,
    "ring, one device receives first": ring_with_one_receiver_first,
    "token ring": token_ring,
    "periodic halo": periodic_halo,
    "open halo": open_halo,
    "torus of n x 4": torus,
    "open grid of n x n": open_grid,
    "wavefront over n x 3": wavefront,
    "tree all-reduce": tree_all_reduce,
    "tree broadcast in segments": tree_broadcast_in_segments,
    "parameter server": parameter_server,
    "GPipe": gpipe,
    "1F1B, 6 microbatches": one_forward_one_backward(lambda n: 6),
    "1F1B, n microbatches": one_forward_one_backward(lambda n: n),
    "interleaved": interleaved,
    "zero bubble": zero_bubble,
    "hosts of four devices": hosts_of_four,
    "three groups": three_groups,
    "mesh with rows of 4": mesh_rows_and_columns,
    "pairs": pairs,
    "two posted recvs": two_posted_recvs,
    "as often as the index": as_often_as_the_index,
}


# ----------------------------------------------------------------------------
# Schemes that some sizes deadlock: each with the smallest that does, from 2 on.


def ring_from_41(n: Any) -> xb.Scheme:
    """From 41 devices on, all devices send before they receive."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        if n > 40:
            device.send(right)
            device.recv(left)
        else:
            device.exchange(right, left)

    return xb.Scheme(n, program)


def ring_of_residue(n: Any) -> xb.Scheme:
    """With more than 40 devices of which 3 are left if they are counted by 7, all devices send first."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        if n % 7 == 3 and n > 40:
            device.send(right)
            device.recv(left)
        else:
            device.exchange(right, left)

    return xb.Scheme(n, program)


def line_with_device_50(n: Any) -> xb.Scheme:
    """Device 50 receives from its right neighbour before it sends to it."""

    def program(device: Any) -> None:
        at = device.index
        if at > 0:
            device.recv(at - 1)
        if at < n - 1 and at == 50:
            device.recv(at + 1)
            device.send(at + 1)
        elif at < n - 1:
            device.send(at + 1)
            device.recv(at + 1)
        if at > 0:
            device.send(at - 1)

    return xb.Scheme(n, program)


def pipeline_with_a_limit(n: Any) -> xb.Scheme:
    """The first stage sends n microbatches, and the second receives at most 45."""

    def program(device: Any) -> None:
        if device.index == 0:
            device.repeat(n, lambda number: device.send(1))
        elif device.index == 1:
            device.repeat(min(n, 45), lambda number: device.recv(0))

    return xb.Scheme(n, program)


def pairs_of_odd(n: Any) -> xb.Scheme:
    """With 5 devices more than a multiple of 9, the last device joins no meeting."""

    def program(device: Any) -> None:
        if n % 9 != 5 or device.index < n - 1:
            device.all_reduce("all")

    return xb.Scheme(n, program, {"all": lambda index: 0})


def grid_from_36(n: Any) -> xb.Scheme:
    """A column of 2: from 36 rows on, the second device of each row meets in another order than the first."""

    def program(device: Any) -> None:
        _, column = device.index
        names = ("rows", "all") if n < 36 or column == 0 else ("all", "rows")
        for name in names:
            device.all_reduce(name)

    return xb.Scheme((n, 2), program, {"rows": lambda index: index[0], "all": lambda index: 0})


def star_against_a_chain(n: Any) -> xb.Scheme:
    """The first device receives from the others in order; each of them waits for the next one."""

    def program(device: Any) -> None:
        at = device.index
        if at == 0:
            device.repeat(n - 1, lambda number: device.recv(number + 1))
        else:
            if at < n - 1:
                device.recv(at + 1)
            device.send(0)
            if at > 1:
                device.send(at - 1)

    return xb.Scheme(n, program)


HANGING: Mapping[str, tuple[Build, int]] = {
    "ring from 41 devices on": (ring_from_41, 41),
    "ring with a remainder of 3 by 7": (ring_of_residue, 45),
    "line with device 50": (line_with_device_50, 52),
    "pipeline with a limit": (pipeline_with_a_limit, 46),
    "meeting without the last device": (pairs_of_odd, 5),
    "star against a chain": (star_against_a_chain, 3),
    "grid from 36 rows on": (grid_from_36, 36),
}


# ----------------------------------------------------------------------------
# Schemes about which the theorem says nothing, each with words of the reason.


def recursive_doubling(n: Any) -> xb.Scheme | None:
    """Partners at distances 1, 2, 4, ...: neither the partners nor the number of steps are linear in n."""
    if n & (n - 1):
        return None

    def program(device: Any) -> None:
        distance = 1
        while distance < n:
            device.exchange(device.index ^ distance, device.index ^ distance)
            distance *= 2

    return xb.Scheme(n, program)


def prime_sizes(n: Any) -> xb.Scheme | None:
    """Only prime numbers of devices have a program, which a range of divisors finds out."""
    return ring(n) if all(n % divisor for divisor in range(2, n)) else None


def module_of_one_size(n: Any) -> xb.Module:
    """A program in which the number of devices is a number, so that it says nothing about others."""
    total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    return xb.Module("total", total, num_replicas=n)


def all_to_all_by_distance(n: Any) -> xb.Scheme:
    """In step k, each device sends to the device k + 1 places away: the comparison with n depends on k."""

    def program(device: Any) -> None:
        device.repeat(
            n - 1,
            lambda step: device.exchange((device.index + step + 1) % n, (device.index - step - 1) % n),
        )

    return xb.Scheme(n, program)


def counts_of_a_variable(n: Any) -> xb.Scheme:
    """A variable survives from one trip to the next."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        trips = 0

        def step(number: Any) -> None:
            nonlocal trips
            trips += 1
            device.exchange(right, left)

        device.repeat(n, step)

    return xb.Scheme(n, program)


def calls_of_a_list(n: Any) -> xb.Scheme:
    """A list survives from one trip to the next, and changes what later trips do."""

    def program(device: Any) -> None:
        left, right = neighbours(device, n)
        trips: list[Any] = []

        def step(number: Any) -> None:
            trips.append(number)
            device.exchange(right, left, channel=1 + len(trips) % 2)

        device.repeat(n, step)

    return xb.Scheme(n, program)


OUTSIDE: Mapping[str, tuple[Build, str]] = {
    "recursive doubling": (recursive_doubling, "TypeError"),
    "prime sizes": (prime_sizes, "TypeError"),
    "a module of one size": (module_of_one_size, "only an xb.Scheme"),
    "all-to-all by distance": (all_to_all_by_distance, "depends on the trip"),
    "a variable that counts trips": (counts_of_a_variable, "assigns to a variable outside it"),
    "a list that counts trips": (calls_of_a_list, "not a function of the size"),
}
