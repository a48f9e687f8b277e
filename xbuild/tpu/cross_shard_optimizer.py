"""CrossShardOptimizer: an optimizer whose gradients are summed over the replicas before they are applied."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.builder import stands_for
from . import collectives
from .optimizers import GradAndVar, Optimizer, Variables
from .support.arguments import integers
from .support.context import Operation, current
from .support.groups import check_ids
from .support.refusals import TpuTypeError, refuse
from .variables import Variable

_log = logging.getLogger("xbuild.tpu")


class Reduction:
    """How the losses of the replicas are put together, as TensorFlow's losses spell it.

    >>> import xbuild as xb
    >>> xb.tpu.Reduction.MEAN
    'weighted_mean'

    Source: tf.compat.v1.losses.Reduction.
    """

    SUM = "weighted_sum"
    MEAN = "weighted_mean"


class CrossShardOptimizer(Optimizer):
    """An optimizer that sums gradients over the replicas (of each group), with the mean or the sum of their losses.

    With MEAN the loss is divided by the number of replicas (of a group), so that what stands between compute_gradients
    and apply_gradients, such as clipping, sees the share of one replica. Slots and variables are those of `opt`.
    Raises invalid_attribute for another reduction; invalid_operand (TypeError) where `opt` is no optimizer; at
    compute_gradients rank_mismatch, duplicate_replica, replica_out_of_range, missing_replica and ragged_groups for the
    groups.

    >>> import xbuild as xb
    >>> w = xb.tpu.Variable(2.0)
    >>> opt = xb.tpu.CrossShardOptimizer(xb.tpu.GradientDescentOptimizer(0.5))
    >>> _ = xb.tpu.replicate(lambda x: opt.minimize(w * x, var_list=[w]), [[0.0], [1.0], [2.0], [3.0]])
    >>> [float(value) for value in w.values]
    [1.25, 1.25, 1.25, 1.25]

    Source: tf.compat.v1.tpu.CrossShardOptimizer.
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Sequence[Sequence[int]] | None = None,
    ) -> None:
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            refuse(
                "invalid_attribute",
                f"Argument `reduction` should be one of {(Reduction.SUM, Reduction.MEAN)}. Received: {reduction}",
                "xb.tpu.Reduction.MEAN and xb.tpu.Reduction.SUM name them",
            )
        if not isinstance(opt, Optimizer):
            refuse(
                "invalid_operand",
                f"CrossShardOptimizer only works with an Optimizer. Received: {opt!r}",
                "xb.tpu.MomentumOptimizer(learning_rate, momentum) is one",
                error=TpuTypeError,
            )
        super().__init__()
        groups = group_assignment.tolist() if isinstance(group_assignment, np.ndarray) else group_assignment
        self._opt, self._reduction, self.name, self._groups = opt, reduction, name, groups

    def compute_gradients(self, loss: Any, var_list: Variables = None) -> list[GradAndVar]:
        """The gradients of this replica's share of the loss.

        Raises: as Optimizer.compute_gradients, and for the groups.
        """
        count = _number_of_shards()
        size = self._checked(count)
        if count > 1 and self._reduction == Reduction.MEAN:
            loss = stands_for(loss) * (1.0 / size)
        return self._opt.compute_gradients(loss, var_list)

    def apply_gradients(self, grads_and_vars: Iterable[GradAndVar], global_step: Variable | None = None) -> Operation:
        """Sum each gradient over the replicas, and let the optimizer apply the sums.

        Raises: as Optimizer.apply_gradients, and xb.tpu.cross_replica_sum.
        """
        groups = self._groups or None
        pairs = [(stands_for(gradient), variable) for gradient, variable in grads_and_vars]
        summed = [(None if g is None else collectives.cross_replica_sum(g, groups), v) for g, v in pairs]
        return self._opt.apply_gradients(summed, global_step)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of the optimizer inside."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the slots of the optimizer inside."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """The variables of the optimizer inside."""
        return self._opt.variables()

    def _apply(self, gradient: Any, variable: Variable) -> None:
        self._opt._apply(gradient, variable)

    def _checked(self, count: int) -> int:
        """How many replicas a loss is averaged over: those of a group, or all."""
        given = self._groups
        if not given:
            return count
        if not isinstance(given, list | tuple) or not all(isinstance(group, list | tuple) for group in given):
            refuse(
                "rank_mismatch",
                f"Argument `group_assignment` must be a list of lists. Received: {given!r}",
                f"one group is [{given!r}]",
            )
        what = "Argument `group_assignment`"
        ids = [each for number, group in enumerate(given) for each in integers(f"group {number} of {what}", group)]
        if set(ids) != set(range(count)):
            check_ids(ids, count, repr(given), what)
        sizes = {len(group) for group in given}
        if len(sizes) > 1:
            refuse(
                "ragged_groups",
                f"The size of each subgroup in `group_assignment` must be equal. Received: {given!r}",
            )
        check_ids(ids, count, repr(given), what)
        return sizes.pop()


def _number_of_shards() -> int:
    tracing = current()
    if tracing is not None:
        return tracing.num_replicas
    _log.warning(
        "CrossShardOptimizer should be used within a tpu_shard_context, but got unset number_of_shards. Assuming 1."
    )
    return 1
