"""Steps and bytes of the algorithms by which the devices of a group carry out a collective."""

from __future__ import annotations

from attrs import frozen


@frozen
class Algorithm:
    """One algorithm of a collective: its steps one after the other, and the bytes that cross links at an execution.

    `link_bytes` crosses the busiest link in one direction over all steps; `total_bytes` is the sum over all links of a
    group.
    """

    name: str
    steps: int
    link_bytes: int
    total_bytes: int


def algorithms(opcode: str, size: int, payload: int) -> tuple[Algorithm, ...]:
    """The algorithms of a collective for a group of `size` devices; the first is the one that sums count.

    `payload` is the bytes of the whole array: the operand of a device, or the result where devices gather. A group of
    one device sends nothing. Halving and doubling stands for sizes that are powers of two, where its terms are exact.

    Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH (2005).
    """
    kind = opcode.removesuffix("_start")
    if size <= 1:
        return (Algorithm("none", 0, 0, 0),)
    if kind == "all_reduce":
        return (*_of_shares(size, payload, 2), _tree(size, payload, 2))
    if kind in ("all_gather", "reduce_scatter"):
        return _of_shares(size, payload, 1)
    if kind == "collective_broadcast":
        return (_tree(size, payload, 1),)
    if kind in ("all_to_all", "ragged_all_to_all"):
        return (Algorithm("pairwise", size - 1, _share(size, payload), (size - 1) * payload),)
    return (Algorithm("direct", 1, payload, payload),)


def _share(size: int, payload: int) -> int:
    """What a device does not have of an array that is cut in `size` parts, rounded up to whole bytes."""
    return -(-(size - 1) * payload // size)


def _of_shares(size: int, payload: int, rounds: int) -> tuple[Algorithm, ...]:
    """Every device sends all parts but one in each round: around a ring, or to partners at doubled distances."""
    sent, total = -(-rounds * (size - 1) * payload // size), rounds * (size - 1) * payload
    ring = Algorithm("ring", rounds * (size - 1), sent, total)
    if size & (size - 1):
        return (ring,)
    return ring, Algorithm("halving-doubling", rounds * (size.bit_length() - 1), sent, total)


def _tree(size: int, payload: int, rounds: int) -> Algorithm:
    """A binomial tree: each link carries the whole array once in each round, towards the root or away from it."""
    return Algorithm("tree", rounds * (size - 1).bit_length(), payload, rounds * (size - 1) * payload)
