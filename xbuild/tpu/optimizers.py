"""Optimizers over variables: gradients of a loss of the computation that is traced, and what a step does with them."""

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
from ..differentiation.transforms.programs import grad
from .scopes import trainable_variables
from .support.arrays import as_array
from .support.context import Operation, Tracing, needed
from .support.refusals import TpuTypeError, refuse
from .variables import Variable, assign, assign_add

Variables = Sequence[Variable] | Variable | None
Rate = float | Value | Variable | Callable[[], Any]
GradAndVar = tuple[Any, Variable]


@define(eq=False, slots=False)
class Optimizer(ABC):
    """What all optimizers share: compute_gradients, apply_gradients, minimize, and slots, a variable for each variable.

    Source: tf.compat.v1.train.Optimizer.
    """

    _slots: dict[str, dict[Variable, Variable]] = field(factory=dict, init=False)
    _others: dict[str, Variable] = field(factory=dict, init=False)

    def compute_gradients(self, loss: Any, var_list: Variables = None) -> list[GradAndVar]:
        """The gradient of a loss by each variable, None where the loss does not depend on it.

        `var_list`: the trainable variables by name where none is given.
        Raises no_builder outside of a computation; non_scalar for a loss that is no scalar; invalid_operand (TypeError)
        for what is no variable; not_differentiable where an op on the way has no derivative.
        """
        tracing = needed("compute_gradients")
        given = trainable_variables() if var_list is None else var_list
        variables = [given] if isinstance(given, Variable) else list(given)
        for variable in variables:
            if not isinstance(variable, Variable):
                refuse("invalid_operand", f"var_list has {variable!r}, which is no variable", error=TpuTypeError)
        return list(zip(_gradients(tracing, loss, variables), variables, strict=True))

    def apply_gradients(self, grads_and_vars: Iterable[GradAndVar], global_step: Variable | None = None) -> Operation:
        """Change each variable by its gradient; those with None stay. `global_step` is counted up.

        Raises no_builder outside of a computation; invalid_attribute where no variable has a gradient; invalid_operand
        (TypeError) for what is no variable; shape_mismatch for a gradient of another shape.
        """
        pairs = [(stands_for(gradient), variable) for gradient, variable in grads_and_vars]
        given = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not given:
            names = [variable.name for _, variable in pairs]
            refuse(
                "invalid_attribute",
                f"No gradients provided for any variable: {names}.",
                "the loss has to depend on one of them",
            )
        for gradient, variable in given:
            _check_gradient(gradient, variable)
        self._apply_all(given)
        if global_step is not None:
            assign_add(global_step, 1)
        return Operation(f"{type(self).__name__}/update")

    def minimize(self, loss: Any, global_step: Variable | None = None, var_list: Variables = None) -> Operation:
        """compute_gradients and apply_gradients.

        Raises: as these.
        """
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of a variable, such as its momentum; None where there is none yet."""
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
            f"apply_gradients: {variable!r} is no variable",
            "pairs are (gradient, variable), as compute_gradients gives them",
            error=TpuTypeError,
        )
    shape = gradient.shape if isinstance(gradient, Value) else None
    if isinstance(shape, Shape) and shape.dims != variable.shape.dims:
        refuse(
            "shape_mismatch",
            f"apply_gradients: {variable.name} is {variable.shape}, and its gradient %{gradient.name} is {shape}",
            "a gradient has the shape of its variable",
        )


def number(rate: Rate, like: Variable) -> Value:
    """A rate as a value of the variable's element type: a number, a value, a variable, or a function that gives one."""
    found = rate() if callable(rate) else rate
    found = stands_for(found)
    tracing = needed("a rate")
    if not isinstance(found, Value):
        return derived.constant(tracing.builder, as_array(found, "a rate"), like.shape.dtype)
    return derived.convert(found, like.shape.dtype)


def _gradients(tracing: Tracing, loss: Any, variables: Sequence[Variable]) -> list[Value | None]:
    loss = stands_for(loss)
    if not isinstance(loss, Value) or loss.builder is not tracing.builder:
        refuse(
            "invalid_operand",
            f"the loss {loss!r} is no value of the computation that is being traced",
            "compute it from the arguments and variables of the function",
        )
    shape = loss.shape
    if not isinstance(shape, Shape) or shape.rank:
        refuse("non_scalar", f"the loss %{loss.name} is {shape}, and a scalar is wanted", "xb.reduce(x, 0.0, xb.add)")
    needed_by = ancestors(loss)
    asked: dict[int, Variable] = {}
    for variable in variables:
        read = tracing.reads.get(variable)
        if read is None or read.instruction not in needed_by:
            continue
        if variable in tracing.assigned:
            refuse(
                "invalid_attribute",
                f"{variable.name} was assigned before its gradient is computed in this computation",
                "compute the gradients first, and assign after",
            )
        asked[tracing.numbers[variable]] = variable
    if not asked:
        return [None] * len(variables)
    found = dict(zip(asked.values(), _recorded(tracing, loss, list(asked)), strict=True))
    return [found.get(variable) for variable in variables]


def ancestors(value: Value) -> set[Any]:
    """All that a value is computed of."""
    found: set[Any] = set()
    stack = [value.instruction]
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += each.operands
    return found


def _recorded(tracing: Tracing, loss: Value, numbers: list[int]) -> list[Value]:
    """The gradients by these parameters: what xb.grad adds to the program so far, put after it."""
    builder = tracing.builder
    program = Computation(builder.name, builder.recorded, loss.instruction)
    gradient = grad(program, tuple(numbers))
    known = set(builder.recorded)
    added = [each for each in gradient.instructions if each not in known and each is not gradient.root]
    builder.adopt(added)
    return [Value(each, builder) for each in gradient.root.operands]


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
        assign(variable, variable - number(self.learning_rate, variable) * gradient)


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
        slot, rate = self._slot(variable, "momentum"), number(self.learning_rate, variable)
        momentum = number(self.momentum, variable)
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
        """How much of the first gradients is left in the two means, as variables, and by how much that falls."""
        betas = (("beta1_power", self.beta1), ("beta2_power", self.beta2))
        return [(self._other(name, beta), beta) for name, beta in betas]

    def _apply_all(self, given: Sequence[tuple[Value, Variable]]) -> None:
        super()._apply_all(given)
        for power, beta in self._powers():
            assign(power, power * beta)

    def _apply(self, gradient: Value, variable: Variable) -> None:
        m, v = self._slot(variable, "m"), self._slot(variable, "v")
        first, second = (derived.convert(power.value(), variable.shape.dtype) for power, _ in self._powers())
        rate = number(self.learning_rate, variable) * ops.sqrt(1.0 - second) / (1.0 - first)
        assign(m, m * self.beta1 + gradient * (1.0 - self.beta1))
        assign(v, v * self.beta2 + gradient * gradient * (1.0 - self.beta2))
        assign(variable, variable - rate * m / (ops.sqrt(v.value()) + self.epsilon))


@define(eq=False, slots=False)
class AdamWOptimizer(AdamOptimizer):
    """Adam after w -= weight_decay * w: the decay is not part of the gradient, nor scaled by the learning rate.

    >>> import xbuild as xb
    >>> w, opt = xb.tpu.Variable(2.0), xb.tpu.AdamWOptimizer(learning_rate=0.5, weight_decay=0.5)
    >>> _ = xb.tpu.rewrite(lambda x: opt.minimize(w * x, var_list=[w]), [3.0])
    >>> round(float(w.numpy()), 4)
    0.5

    Source: tf.contrib.opt.AdamWOptimizer.
    """

    weight_decay: float = 0.01

    def _apply(self, gradient: Value, variable: Variable) -> None:
        assign(variable, variable - variable * number(self.weight_decay, variable))
        super()._apply(gradient, variable)
