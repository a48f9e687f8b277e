"""Group assignments and source-target pairs: read as constants, then checked as XLA checks replica groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...core.builder import Value
from .refusals import refuse

Groups: TypeAlias = tuple[tuple[int, ...], ...]
LIMITS = np.iinfo(np.int32)


def matrix(given: Any, what: str = "group_assignment") -> np.ndarray[Any, Any]:
    """The int32 tensor that a Python list, an array or a constant of the program stands for; its rank is not looked at.

    Refuses ragged lists, what is no integer, and values that only a run computes.
    """
    if isinstance(given, Value):
        given = _literal(given, what)
    try:
        found = np.asarray(given)
    except ValueError:
        refuse(
            "ragged_groups",
            f"{what} is a tensor, whose rows have one length; {given!r} has rows of {_lengths(given)}",
            "groups of different sizes are an all-reduce: xb.all_reduce(x, xb.add, replica_groups=[[0, 1], [2]])",
        )
    if found.size and found.dtype.kind not in "iu":
        refuse("element_type_mismatch", f"{what} holds replica ids (int32), and {given!r} is {found.dtype}")
    if found.size and (found.min() < LIMITS.min or found.max() > LIMITS.max):
        refuse("element_type_mismatch", f"{what} holds int32, and {given!r} does not fit")
    return found.astype(np.int32)


def _literal(value: Value, what: str) -> Any:
    instruction = value.instruction
    if instruction.opcode != "constant":
        refuse(
            "not_concrete",
            f"{what} must be a compile-time constant, and %{value.name} is {instruction.opcode}, which a run computes",
            "give it as a Python list",
        )
    return instruction.attributes.literal


def _lengths(given: Any) -> str:
    rows = [len(row) if isinstance(row, list | tuple) else "no" for row in given]
    return " and ".join(f"{size} ids" for size in dict.fromkeys(rows))


def check_rank(found: np.ndarray[Any, Any]) -> None:
    """Refuse a group_assignment that is no matrix."""
    if found.ndim != 2:
        refuse(
            "rank_mismatch",
            f"group_assignment must have rank 2, [num_groups, num_replicas_per_group], and has the shape "
            f"{list(found.shape)}",
            f"one group is a list of one list: [{found.tolist()}]" if found.ndim == 1 else "a list of lists of ids",
        )


def groups_of(found: np.ndarray[Any, Any], num_replicas: int | None) -> Groups:
    """The rows as replica groups; None for the count where nobody has told it.

    Refuses empty groups, ids twice, ids that are no replica, and replicas in no group.
    """
    check_rank(found)
    if not found.size:
        refuse("invalid_group", f"group_assignment has the shape {list(found.shape)}: a group without replicas")
    groups = tuple(tuple(row) for row in found.tolist())
    check_ids([replica for row in groups for replica in row], num_replicas, str([list(row) for row in groups]))
    return groups


def check_ids(ids: Sequence[int], num_replicas: int | None, shown: str, what: str = "group_assignment") -> None:
    """Refuse ids unless they are 0..num_replicas-1, each once."""
    twice = [replica for replica, times in Counter(ids).items() if times > 1]
    if twice:
        refuse(
            "duplicate_replica",
            f"{what} {shown} has replica {twice[0]} {_times(Counter(ids)[twice[0]])}",
            "each replica is in one group",
        )
    outside = [i for i in ids if i < 0 or (num_replicas is not None and i >= num_replicas)]
    if outside:
        many = "0 and higher" if num_replicas is None else f"0..{num_replicas - 1}"
        refuse("replica_out_of_range", f"{what} {shown} names replica {outside[0]}, and the replicas are {many}")
    missing = sorted(set(range(num_replicas or 0)) - set(ids))
    if missing:
        refuse(
            "missing_replica",
            f"{what} {shown} has no group for replica{_listed(missing)} of the {num_replicas} replicas",
            "a group of one replica keeps its own value",
        )


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _listed(ids: Sequence[int]) -> str:
    text = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
    return f"{'s' * (len(ids) > 1)} {text}"


def pairs_of(found: np.ndarray[Any, Any], num_replicas: int | None) -> tuple[tuple[int, int], ...]:
    """The rows as source-target pairs, each id at most once as source and once as target."""
    if found.size == 0 and found.ndim == 1:
        found = found.reshape(0, 2)
    if found.ndim != 2 or found.shape[1] != 2:
        refuse(
            "bad_pairs",
            f"source_target_pairs must have the shape [num_pairs, 2], and has {list(found.shape)}: {found.tolist()}",
            "each row is the replica that sends and the one that gets: [[0, 1], [1, 0]]",
        )
    pairs = tuple((int(source), int(target)) for source, target in found)
    _once([source for source, _ in pairs], "source", found, num_replicas)
    _once([target for _, target in pairs], "target", found, num_replicas)
    return pairs


def _once(ids: Iterable[int], role: str, found: np.ndarray[Any, Any], num_replicas: int | None) -> None:
    counts = Counter(ids)
    twice = [replica for replica, times in counts.items() if times > 1]
    if twice:
        refuse(
            f"duplicate_{role}",
            f"source_target_pairs {found.tolist()} have replica {twice[0]} as {role} {_times(counts[twice[0]])}; "
            f"each is at most one",
            *(["xb.all_gather gives one value to several replicas"] if role == "source" else []),
        )
    outside = [i for i in counts if i < 0 or (num_replicas is not None and i >= num_replicas)]
    if outside:
        many = "0 and higher" if num_replicas is None else f"0..{num_replicas - 1}"
        refuse(
            "replica_out_of_range",
            f"source_target_pairs {found.tolist()} name replica {outside[0]} as {role}, and the replicas are {many}",
        )
