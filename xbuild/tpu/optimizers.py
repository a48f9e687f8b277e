"""Optimizers, and CrossShardOptimizer, which sums gradients over the replicas before they are applied.

Sections:

    Optimizers
    CrossShardOptimizer
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import Shape

from .. import derived, ops
from ..core.builder import Value, stands_for
from ..core.graph import Computation
from ..differentiation.programs import grad
from ..properties.order import needed_by, operands_of
from . import collectives
from .arguments import TpuTypeError, as_array, read_integers, refuse
from .context import Operation, Tracing, require_tracing
from .raw_ops import check_ids
from .variables import Variable, assign, assign_add, trainable_variables

# ----------------------------------------------------------------------------
# Optimizers
#
# They differentiate a loss of the traced computation and update variables by the gradients.

Variables = Sequence[Variable] | Variable | None
Rate = float | Value | Variable | Callable[[], Any]
GradAndVar = tuple[Any, Variable]


@define(eq=False, slots=False)
class Optimizer(ABC):
    """What all optimizers share: compute_gradients, apply_gradients, minimize, and slots (one variable per variable).

    Source: tf.compat.v1.train.Optimizer.
    """

    _slots: dict[str, dict[Variable, Variable]] = field(factory=dict, init=False)
    _others: dict[str, Variable] = field(factory=dict, init=False)

    def compute_gradients(self, loss: Any, var_list: Variables = None) -> list[GradAndVar]:
        """The gradient of a loss by each variable; None if the loss does not depend on it.

        `var_list` defaults to the trainable variables obtained by name.
        Raises no_builder outside of a computation; non_scalar if the loss is not a scalar; invalid_operand (TypeError)
        for anything but a variable; not_differentiable if an op in between has no derivative.
        """
        tracing = require_tracing("compute_gradients")
        requested = trainable_variables() if var_list is None else var_list
        variables = [requested] if isinstance(requested, Variable) else list(requested)
        for variable in variables:
            if not isinstance(variable, Variable):
                refuse("invalid_operand", f"var_list: expected a variable, got {variable!r}", error=TpuTypeError)
        return list(zip(_compute_gradients(tracing, loss, variables), variables, strict=True))

    def apply_gradients(self, grads_and_vars: Iterable[GradAndVar], global_step: Variable | None = None) -> Operation:
        """Update each variable by its gradient; variables with None stay. `global_step` is incremented.

        Raises no_builder outside of a computation; invalid_attribute if no variable has a gradient; invalid_operand
        (TypeError) for anything but a variable; shape_mismatch for a gradient of a different shape.
        """
        pairs = [(stands_for(gradient), variable) for gradient, variable in grads_and_vars]
        present = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not present:
            names = [variable.name for _, variable in pairs]
            refuse(
                "invalid_attribute",
                f"No gradients provided for any variable: {names}.",
                "the loss must depend on at least one of these variables",
            )
        for gradient, variable in present:
            _check_gradient(gradient, variable)
        self._apply_all(present)
        if global_step is not None:
            assign_add(global_step, 1)
        return Operation(f"{type(self).__name__}/update")

    def minimize(self, loss: Any, global_step: Variable | None = None, var_list: Variables = None) -> Operation:
        """Compute the gradients and apply them.

        Raises: as compute_gradients and apply_gradients.
        """
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of a variable, such as its momentum; None if there is none yet."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """The names of the slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """All slots and other variables of the optimizer."""
        return [*self._others.values(), *(slot for slots in self._slots.values() for slot in slots.values())]

    def _slot(self, var: Variable, name: str) -> Variable:
        slots = self._slots.setdefault(name, {})
        if var not in slots:
            zeros = np.zeros(var.shape.dims, var.shape.dtype.dtype)
            slots[var] = Variable(zeros, f"{var.name}/{type(self).__name__}/{name}", trainable=False)
        return slots[var]

    def _other(self, name: str, value: float) -> Variable:
        if name not in self._others:
            self._others[name] = Variable(value, f"{type(self).__name__}/{name}", trainable=False)
        return self._others[name]

    def _apply_all(self, given: Sequence[tuple[Value, Variable]]) -> None:
        for gradient, variable in given:
            self._apply(gradient, variable)

    @abstractmethod
    def _apply(self, gradient: Value, variable: Variable) -> None: ...


def _check_gradient(gradient: Any, variable: Any) -> None:
    if not isinstance(variable, Variable):
        refuse(
            "invalid_operand",
            f"apply_gradients: expected a variable, got {variable!r}",
            "pass pairs (gradient, variable), as compute_gradients returns them",
            error=TpuTypeError,
        )
    shape = gradient.shape if isinstance(gradient, Value) else None
    if isinstance(shape, Shape) and shape.dims != variable.shape.dims:
        refuse(
            "shape_mismatch",
            f"apply_gradients: {variable.name} is {variable.shape}, but its gradient %{gradient.name} is {shape}",
            "pass a gradient that has the shape of its variable",
        )


def rate_value(rate: Rate, like: Variable) -> Value:
    """A rate (a number, value, variable, or function that returns one) as a value of the variable's element type."""
    value = rate() if callable(rate) else rate
    value = stands_for(value)
    tracing = require_tracing("a rate")
    if not isinstance(value, Value):
        return derived.constant(tracing.builder, as_array(value, "a rate"), like.shape.dtype)
    return derived.convert(value, like.shape.dtype)


def _compute_gradients(tracing: Tracing, loss: Any, variables: Sequence[Variable]) -> list[Value | None]:
    loss = stands_for(loss)
    if not isinstance(loss, Value) or loss.builder is not tracing.builder:
        refuse(
            "invalid_operand",
            f"the loss {loss!r} is not a value of the computation being traced",
            "compute the loss from the arguments and variables of the function",
        )
    shape = loss.shape
    if not isinstance(shape, Shape) or shape.rank:
        refuse("non_scalar", f"the loss %{loss.name} is {shape}; expected a scalar", "xb.reduce(x, 0.0, xb.add)")
    sources = needed_by([loss.instruction], operands_of)
    parameters: dict[int, Variable] = {}
    for variable in variables:
        read = tracing.reads.get(variable)
        if read is None or read.instruction not in sources:
            continue
        if variable in tracing.assigned:
            refuse(
                "invalid_attribute",
                f"{variable.name} is assigned before its gradient is computed",
                "compute the gradients first, then assign the variable",
            )
        parameters[tracing.numbers[variable]] = variable
    if not parameters:
        return [None] * len(variables)
    gradients = dict(zip(parameters.values(), _record_gradients(tracing, loss, list(parameters)), strict=True))
    return [gradients.get(variable) for variable in variables]


def _record_gradients(tracing: Tracing, loss: Value, numbers: list[int]) -> list[Value]:
    """The gradients by these parameters: the instructions that xb.grad adds are appended to the program so far."""
    builder = tracing.builder
    program = Computation(builder.name, builder.recorded, loss.instruction)
    gradient = grad(program, tuple(numbers))
    known = set(builder.recorded)
    added = [
        instruction
        for instruction in gradient.instructions
        if instruction not in known and instruction is not gradient.root
    ]
    builder.adopt(added)
    return [Value(instruction, builder) for instruction in gradient.root.operands]


@define(eq=False, slots=False)
class GradientDescentOptimizer(Optimizer):
    """w -= learning_rate * g.

    >>> import xbuild as xb
    >>> w = xb.tpu.Variable(2.0)
    >>> _ = xb.tpu.rewrite(lambda x: xb.tpu.GradientDescentOptimizer(0.5).minimize(w * x, var_list=[w]), [3.0])
    >>> w.numpy()
    array(0.5, dtype=float32)

    Source: tf.compat.v1.train.GradientDescentOptimizer.
    """

    learning_rate: Rate

    def _apply(self, gradient: Value, variable: Variable) -> None:
        assign(variable, variable - rate_value(self.learning_rate, variable) * gradient)


@define(eq=False, slots=False)
class MomentumOptimizer(Optimizer):
    """v = momentum * v + g, w -= learning_rate * v; with use_nesterov w -= learning_rate * (g + momentum * v).

    >>> import xbuild as xb
    >>> w, opt = xb.tpu.Variable(2.0), xb.tpu.MomentumOptimizer(0.5, 0.5)
    >>> step = xb.tpu.rewrite.program(lambda x: opt.minimize(w * x, var_list=[w]), [1.0])
    >>> _ = step.run(), step.run()
    >>> w.numpy(), opt.get_slot(w, "momentum").numpy()
    (array(0.75, dtype=float32), array(1.5, dtype=float32))

    Source: tf.compat.v1.train.MomentumOptimizer.
    """

    learning_rate: Rate
    momentum: Rate
    use_nesterov: bool = False

    def _apply(self, gradient: Value, variable: Variable) -> None:
        slot, rate = self._slot(variable, "momentum"), rate_value(self.learning_rate, variable)
        momentum = rate_value(self.momentum, variable)
        assign(slot, slot * momentum + gradient)
        step = gradient * rate + slot * momentum * rate if self.use_nesterov else slot * rate
        assign(variable, variable - step)


@define(eq=False, slots=False)
class AdamOptimizer(Optimizer):
    """m, v: running means of g and g*g; w -= learning_rate * sqrt(1-beta2^t) / (1-beta1^t) * m / (sqrt(v) + epsilon).

    >>> import xbuild as xb
    >>> w, opt = xb.tpu.Variable(2.0), xb.tpu.AdamOptimizer(0.5)
    >>> _ = xb.tpu.rewrite(lambda x: opt.minimize(w * x, var_list=[w]), [3.0])
    >>> round(float(w.numpy()), 4), opt.get_slot_names()
    (1.5, ['m', 'v'])

    Source: tf.compat.v1.train.AdamOptimizer.
    """

    learning_rate: Rate = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def _powers(self) -> list[tuple[Variable, float]]:
        """The weights of the initial values in the two means, as variables, and their decay rates."""
        betas = (("beta1_power", self.beta1), ("beta2_power", self.beta2))
        return [(self._other(name, beta), beta) for name, beta in betas]

    def _apply_all(self, given: Sequence[tuple[Value, Variable]]) -> None:
        super()._apply_all(given)
        for power, beta in self._powers():
            assign(power, power * beta)

    def _apply(self, gradient: Value, variable: Variable) -> None:
        m, v = self._slot(variable, "m"), self._slot(variable, "v")
        first, second = (derived.convert(power.value(), variable.shape.dtype) for power, _ in self._powers())
        rate = rate_value(self.learning_rate, variable) * ops.sqrt(1.0 - second) / (1.0 - first)
        assign(m, m * self.beta1 + gradient * (1.0 - self.beta1))
        assign(v, v * self.beta2 + gradient * gradient * (1.0 - self.beta2))
        assign(variable, variable - rate * m / (ops.sqrt(v.value()) + self.epsilon))


@define(eq=False, slots=False)
class AdamWOptimizer(AdamOptimizer):
    """Adam after w -= weight_decay * w; the decay is neither part of the gradient nor scaled by the learning rate.

    >>> import xbuild as xb
    >>> w, opt = xb.tpu.Variable(2.0), xb.tpu.AdamWOptimizer(learning_rate=0.5, weight_decay=0.5)
    >>> _ = xb.tpu.rewrite(lambda x: opt.minimize(w * x, var_list=[w]), [3.0])
    >>> round(float(w.numpy()), 4)
    0.5

    Source: tf.contrib.opt.AdamWOptimizer.
    """

    weight_decay: float = 0.01

    def _apply(self, gradient: Value, variable: Variable) -> None:
        assign(variable, variable - variable * rate_value(self.weight_decay, variable))
        super()._apply(gradient, variable)


# ----------------------------------------------------------------------------
# CrossShardOptimizer
#
# It sums gradients over the replicas before its optimizer applies them.


class Reduction:
    """How the losses of the replicas are combined, in TensorFlow's spelling.

    >>> import xbuild as xb
    >>> xb.tpu.Reduction.MEAN
    'weighted_mean'

    Source: tf.compat.v1.losses.Reduction.
    """

    SUM = "weighted_sum"
    MEAN = "weighted_mean"


class CrossShardOptimizer(Optimizer):
    """An optimizer that sums gradients over the replicas (of each group), for the mean or the sum of their losses.

    With MEAN, the loss is divided by the number of replicas (of a group), so that steps between compute_gradients and
    apply_gradients, such as clipping, see the share of one replica. Slots and variables are those of `opt`.
    Raises invalid_attribute for any other reduction; invalid_operand (TypeError) if `opt` is not an optimizer; in
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
                "pass xb.tpu.Reduction.MEAN or xb.tpu.Reduction.SUM",
            )
        if not isinstance(opt, Optimizer):
            refuse(
                "invalid_operand",
                f"CrossShardOptimizer only works with an Optimizer. Received: {opt!r}",
                "pass an optimizer such as xb.tpu.MomentumOptimizer(learning_rate, momentum)",
                error=TpuTypeError,
            )
        super().__init__()
        groups = group_assignment.tolist() if isinstance(group_assignment, np.ndarray) else group_assignment
        self._opt, self._reduction, self.name, self._groups = opt, reduction, name, groups

    def compute_gradients(self, loss: Any, var_list: Variables = None) -> list[GradAndVar]:
        """The gradients of this replica's share of the loss.

        Raises: as Optimizer.compute_gradients, and for the groups.
        """
        count = collectives.number_of_shards("CrossShardOptimizer")
        size = self._checked(count)
        if count > 1 and self._reduction == Reduction.MEAN:
            loss = stands_for(loss) * (1.0 / size)
        return self._opt.compute_gradients(loss, var_list)

    def apply_gradients(self, grads_and_vars: Iterable[GradAndVar], global_step: Variable | None = None) -> Operation:
        """Sum each gradient over the replicas and let the inner optimizer apply the sums.

        Raises: as Optimizer.apply_gradients, and xb.tpu.cross_replica_sum.
        """
        groups = self._groups or None
        pairs = [(stands_for(gradient), variable) for gradient, variable in grads_and_vars]
        summed = [(None if g is None else collectives.cross_replica_sum(g, groups), v) for g, v in pairs]
        return self._opt.apply_gradients(summed, global_step)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of the inner optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the slots of the inner optimizer."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """The variables of the inner optimizer."""
        return self._opt.variables()

    def _apply(self, gradient: Any, variable: Variable) -> None:
        self._opt._apply(gradient, variable)

    def _checked(self, count: int) -> int:
        """The number of replicas over which a loss is averaged: those of a group, or all."""
        groups = self._groups
        if not groups:
            return count
        if not isinstance(groups, list | tuple) or not all(isinstance(group, list | tuple) for group in groups):
            refuse(
                "rank_mismatch",
                f"Argument `group_assignment` must be a list of lists. Received: {groups!r}",
                f"write a single group as [{groups!r}]",
            )
        what = "Argument `group_assignment`"
        ids = [
            each for number, group in enumerate(groups) for each in read_integers(f"group {number} of {what}", group)
        ]
        if set(ids) != set(range(count)):
            check_ids(ids, count, repr(groups), what)
        sizes = {len(group) for group in groups}
        if len(sizes) > 1:
            refuse(
                "ragged_groups",
                f"The size of each subgroup in `group_assignment` must be equal. Received: {groups!r}",
            )
        check_ids(ids, count, repr(groups), what)
        return sizes.pop()
