"""Variables: state that each replica keeps from run to run, read and assigned while a computation is traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

from shape_inference import PrimitiveType, Shape, bf16, f32, primitive_type

from .. import derived, ops
from ..core.builder import Value
from ..core.identifiers import nearest
from ..core.operators import Operators
from ..core.protocols import Protocols
from ..derived.support.operands import as_value
from .support.arrays import as_array
from .support.context import Operation, Tracing, current, needed
from .support.refusals import refuse

Initializer: TypeAlias = Callable[..., Any]


@define(eq=False, repr=False, slots=False)
class Variable(Operators, Protocols):
    """State of each replica. In a computation it stands for its value there; `values` has an array for each replica.

    Made of an initial value, which every replica begins with. `trainable`: optimizers change it.
    Raises invalid_operand for an initial value that is no array, element_type_mismatch where `dtype` cannot hold it.

    >>> import xbuild as xb
    >>> count = xb.tpu.Variable(0, name="count")
    >>> _ = xb.tpu.replicate(lambda x: xb.tpu.assign_add(count, x), [[1], [10]])
    >>> [int(value) for value in count.values]
    [1, 10]

    Source: tf.compat.v1.Variable.
    """

    initial_value: Any
    name: str = "Variable"
    dtype: PrimitiveType | None = None
    trainable: bool = True
    __setattr__ = object.__setattr__  # unlike a value, a variable changes

    shape: Shape = field(init=False)
    values: list[np.ndarray[Any, Any]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        value = as_array(self.initial_value, f"the initial value of {self.name}")
        if self.dtype is not None:
            value = value.astype(self.dtype.dtype)
        self.dtype = primitive_type(value.dtype)
        self.shape = self.dtype[value.shape]
        self.values = [value.copy()]

    def __repr__(self) -> str:
        return f"<tpu.Variable {self.name!r} {self.shape}>"

    def __xbuild_value__(self) -> Value:
        return self.value()

    def value(self) -> Value:
        """The value at this point of the computation that is being traced.

        Raises no_builder outside of one: `values` and `numpy` are the arrays.
        """
        return read_in(needed(f"the value of {self.name}"), self)

    read_value = value

    def numpy(self, replica: int = 0) -> np.ndarray[Any, Any]:
        """The array of one replica; all replicas have the same where only one has been made yet.

        >>> import xbuild as xb
        >>> xb.tpu.Variable([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        return self.values[replica if len(self.values) > 1 else 0]

    def assign(self, value: Any) -> Operation:
        """Give the variable another value on each replica, from here on."""
        return assign(self, value)

    def assign_add(self, value: Any) -> Operation:
        """Add to the variable on each replica."""
        return assign_add(self, value)

    def assign_sub(self, value: Any) -> Operation:
        """Subtract from the variable on each replica."""
        return assign_sub(self, value)

    def load(self, value: Any) -> None:
        """Give every replica this array, outside of computations.

        Raises shape_mismatch for an array of another shape.

        >>> import xbuild as xb
        >>> w = xb.tpu.Variable([1.0, 2.0])
        >>> w.load([3.0, 4.0])
        >>> w.numpy()
        array([3., 4.], dtype=float32)
        """
        array = as_array(value, f"the value of {self.name}").astype(self.shape.dtype.dtype)
        if array.shape != self.shape.dims:
            refuse("shape_mismatch", f"{self.name} is {self.shape}, and an array of {list(array.shape)} is given")
        self.values = [array.copy()]

    def on(self, replicas: int) -> Sequence[np.ndarray[Any, Any]]:
        """The arrays for this many replicas; refused where others have different ones."""
        if len(self.values) == replicas:
            return self.values
        first = self.values[0]
        if any(value is not first and value.tobytes() != first.tobytes() for value in self.values):
            refuse(
                "shape_mismatch",
                f"{self.name} has different values on its {len(self.values)} replicas, and the program has {replicas}",
                f"{self.name}.load(array) gives every replica one value",
            )
        return [first] * replicas


def read_in(tracing: Tracing, variable: Variable) -> Value:
    """The value of a variable in a computation: a parameter at first, then what was assigned."""
    if variable not in tracing.reads:
        number = tracing.numbers[variable] = tracing.next_parameter()
        name = nearest(variable.name)
        tracing.reads[variable] = ops.parameter(tracing.builder, number=number, shape=variable.shape, name=name)
    return tracing.reads[variable]


def assign(variable: Variable, value: Any) -> Operation:
    """Give a variable another value on each replica, from here on.

    Raises no_builder outside of a computation; invalid_operand for what is no variable; shape_mismatch and
    element_type_mismatch where the value is not of the variable's shape; foreign_value inside of a loop's body.

    >>> import xbuild as xb
    >>> w = xb.tpu.Variable(2.0, name="w")
    >>> _ = xb.tpu.rewrite(lambda: xb.tpu.assign(w, w * 3.0))
    >>> w.numpy()
    array(6., dtype=float32)

    Source: tf.compat.v1.assign.
    """
    if not isinstance(variable, Variable):
        refuse("invalid_operand", f"assign: {variable!r} is no variable", "xb.tpu.get_variable gives one")
    tracing = needed(f"assign to {variable.name}")
    found = as_value(tracing.builder, value, variable.dtype)
    if found.builder is not tracing.builder:
        refuse(
            "foreign_value",
            f"assign: %{found.name} belongs to a loop or a branch, and {variable.name} to the whole computation",
            "carry the value in the loop's state and assign the loop's result",
        )
    if found.shape != variable.shape:
        refuse("shape_mismatch", f"assign: {variable.name} is {variable.shape}, and %{found.name} is {found.shape}")
    read_in(tracing, variable)
    tracing.reads[variable] = found
    tracing.assigned[variable] = None
    return Operation(f"{variable.name}/Assign")


def assign_add(variable: Variable, value: Any) -> Operation:
    """Add to a variable on each replica.

    Raises: as xb.tpu.assign.

    Source: tf.compat.v1.assign_add.
    """
    return assign(variable, derived.add(variable, value))


def assign_sub(variable: Variable, value: Any) -> Operation:
    """Subtract from a variable on each replica.

    Raises: as xb.tpu.assign.

    Source: tf.compat.v1.assign_sub.
    """
    return assign(variable, derived.subtract(variable, value))


def zeros_initializer(shape: Sequence[int], dtype: PrimitiveType = f32) -> np.ndarray[Any, Any]:
    """Zeros.

    >>> import xbuild as xb
    >>> xb.tpu.zeros_initializer([2])
    array([0., 0.], dtype=float32)
    """
    return np.zeros(shape, dtype.dtype)


def ones_initializer(shape: Sequence[int], dtype: PrimitiveType = f32) -> np.ndarray[Any, Any]:
    """Ones.

    >>> import xbuild as xb
    >>> xb.tpu.ones_initializer([2], xb.s32)
    array([1, 1], dtype=int32)
    """
    return np.ones(shape, dtype.dtype)


def random_normal_initializer(mean: float = 0.0, stddev: float = 0.05, seed: int = 0) -> Initializer:
    """Normal numbers, always the same for a seed.

    >>> import xbuild as xb
    >>> xb.tpu.random_normal_initializer(seed=1)([2]).shape
    (2,)
    """
    return lambda shape, dtype=f32: np.asarray(np.random.default_rng(seed).normal(mean, stddev, shape)).astype(
        dtype.dtype
    )


def glorot_uniform_initializer(seed: int = 0) -> Initializer:
    """Uniform numbers whose range falls with the sizes of the layer, always the same for a seed.

    >>> import xbuild as xb
    >>> abs(xb.tpu.glorot_uniform_initializer()([3, 3])).max() <= 1.0
    np.True_
    """

    def draw(shape: Sequence[int], dtype: PrimitiveType = f32) -> np.ndarray[Any, Any]:
        fan = [*shape[-2:]] if len(shape) > 1 else [*shape, *shape] or [1, 1]
        limit = math.sqrt(6.0 / sum(fan))
        return np.random.default_rng(seed).uniform(-limit, limit, shape).astype(dtype.dtype)

    return draw


def cast_read(variable: Variable) -> Value | Variable:
    """What bfloat16_scope gives for a variable that is stored in f32: inside of a computation its value in bf16."""
    return variable if current() is None else derived.convert(variable.value(), bf16)
