"""Variables: state that each replica keeps between runs, and the scopes that name them.

Sections:

    Variables
    The store of variables and scopes of names
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import PrimitiveType, Shape, bf16, f32, primitive_type

from .. import derived, ops
from ..core.builder import Value
from ..core.context import assigned
from ..core.context import scope as op_scope
from ..core.identifiers import nearest
from ..core.numpy_protocols import Protocols
from ..core.operators import Operators
from ..derived.support import as_value
from .arguments import as_array, read_element_type, read_extents, refuse
from .context import Operation, Tracing, current, require_tracing

# ----------------------------------------------------------------------------
# Variables
#
# State that each replica keeps between runs; it is read and assigned while a computation is traced.

Initializer: TypeAlias = Callable[..., Any]


@define(eq=False, repr=False, slots=False)
class Variable(Operators, Protocols):
    """State of each replica. Inside a computation it acts as its value; `values` has an array for each replica.

    Every replica starts with the initial value. Optimizers change a variable that is `trainable`.
    Raises invalid_operand for an initial value that is not an array, element_type_mismatch if `dtype` cannot hold it.

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
        """The value at this point of the computation being traced.

        Raises no_builder outside of one; use `values` or `numpy` for the arrays.
        """
        return read_variable(require_tracing(f"the value of {self.name}"), self)

    read_value = value

    def numpy(self, replica: int = 0) -> np.ndarray[Any, Any]:
        """The array of one replica; before the first run all replicas share one.

        >>> import xbuild as xb
        >>> xb.tpu.Variable([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        return self.values[replica if len(self.values) > 1 else 0]

    def assign(self, value: Any) -> Operation:
        """Assign a new value to the variable on each replica."""
        return assign(self, value)

    def assign_add(self, value: Any) -> Operation:
        """Add to the variable on each replica."""
        return assign_add(self, value)

    def assign_sub(self, value: Any) -> Operation:
        """Subtract from the variable on each replica."""
        return assign_sub(self, value)

    def load(self, value: Any) -> None:
        """Set the variable to this array on every replica, outside of computations.

        Raises shape_mismatch for an array of a different shape.

        >>> import xbuild as xb
        >>> w = xb.tpu.Variable([1.0, 2.0])
        >>> w.load([3.0, 4.0])
        >>> w.numpy()
        array([3., 4.], dtype=float32)
        """
        array = as_array(value, f"the value of {self.name}").astype(self.shape.dtype.dtype)
        if array.shape != self.shape.dims:
            refuse("shape_mismatch", f"{self.name} is {self.shape}, but got an array of shape {list(array.shape)}")
        self.values = [array.copy()]

    def on(self, replicas: int) -> Sequence[np.ndarray[Any, Any]]:
        """The arrays for this many replicas; raises if the current number differs and the values are not all equal."""
        if len(self.values) == replicas:
            return self.values
        first = self.values[0]
        if any(value is not first and value.tobytes() != first.tobytes() for value in self.values):
            refuse(
                "shape_mismatch",
                f"{self.name} has separate values for {len(self.values)} replicas, but the program has "
                f"{replicas} replicas",
                f"to set the same value on every replica, use {self.name}.load(array)",
            )
        return [first] * replicas


def read_variable(tracing: Tracing, variable: Variable) -> Value:
    """The value of a variable in a computation: a parameter at first, then the last value assigned."""
    if variable not in tracing.reads:
        number = tracing.numbers[variable] = tracing.next_parameter()
        name = nearest(variable.name)
        tracing.reads[variable] = ops.parameter(tracing.builder, number=number, shape=variable.shape, name=name)
    return tracing.reads[variable]


def assign(variable: Variable, value: Any) -> Operation:
    """Assign a new value to a variable on each replica.

    Raises no_builder outside of a computation; invalid_operand if it is not a variable; shape_mismatch and
    element_type_mismatch if the value does not have the variable's shape; foreign_value inside a loop body.

    >>> import xbuild as xb
    >>> w = xb.tpu.Variable(2.0, name="w")
    >>> _ = xb.tpu.rewrite(lambda: xb.tpu.assign(w, w * 3.0))
    >>> w.numpy()
    array(6., dtype=float32)

    Source: tf.compat.v1.assign.
    """
    if not isinstance(variable, Variable):
        refuse(
            "invalid_operand",
            f"assign: expected a variable, got {variable!r}",
            "pass a variable that xb.tpu.get_variable returned",
        )
    tracing = require_tracing(f"assign to {variable.name}")
    new_value = as_value(tracing.builder, value, variable.dtype)
    if new_value.builder is not tracing.builder:
        refuse(
            "foreign_value",
            f"assign: %{new_value.name} belongs to a loop or a branch, but {variable.name} belongs to the outer "
            "computation",
            "carry the value in the loop's state and assign the loop's result",
        )
    if new_value.shape != variable.shape:
        refuse(
            "shape_mismatch",
            f"assign: {variable.name} is {variable.shape}, but %{new_value.name} is {new_value.shape}",
        )
    read_variable(tracing, variable)
    tracing.reads[variable] = new_value
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
    """Normally distributed numbers, reproducible by seed.

    >>> import xbuild as xb
    >>> xb.tpu.random_normal_initializer(seed=1)([2]).shape
    (2,)
    """
    return lambda shape, dtype=f32: np.asarray(np.random.default_rng(seed).normal(mean, stddev, shape)).astype(
        dtype.dtype
    )


def glorot_uniform_initializer(seed: int = 0) -> Initializer:
    """Uniform numbers whose range shrinks with the sizes of the layer, reproducible by seed.

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
    """The variable as bfloat16_scope returns it: inside a computation its f32 value converted to bf16."""
    return variable if current() is None else derived.convert(variable.value(), bf16)


# ----------------------------------------------------------------------------
# The store of variables and scopes of names
#
# Including the scope in which bf16 variables are stored in f32.

_generations = itertools.count()


@define(eq=False)
class Store:
    """The variables by full name; `generation` changes when the store is cleared."""

    variables: dict[str, Variable] = field(factory=dict)
    generation: int = field(factory=lambda: next(_generations))

    def clear(self) -> None:
        self.variables.clear()
        self.generation = next(_generations)


STORE = Store()


@frozen
class VariableScope:
    """A prefix of names, and whether variables of bf16 are stored in f32."""

    name: str
    is_bfloat16: bool = False


_scope: ContextVar[VariableScope] = ContextVar("xbuild_tpu_scope", default=VariableScope(""))  # noqa: B039


@contextmanager
def variable_scope(name: str) -> Iterator[VariableScope]:
    """Prefix the names of variables and ops created inside with this name and a slash.

    >>> import xbuild as xb
    >>> with xb.tpu.variable_scope("layer"):
    ...     print(xb.tpu.get_variable("bias", [2]).name)
    layer/bias

    Source: tf.compat.v1.variable_scope.
    """
    outer = _scope.get()
    full = f"{outer.name}/{name}" if outer.name and name else outer.name or name
    with assigned(_scope, VariableScope(full, outer.is_bfloat16)) as scope:
        if not name:
            yield scope
        else:
            with op_scope(name):
                yield scope


@contextmanager
def bfloat16_scope(name: str | None = None) -> Iterator[VariableScope]:
    """Store bf16 variables that are obtained inside in f32, and convert them to bf16 when they are read.

    Updates thus keep the precision of f32. Variables of other types are not affected.

    >>> import xbuild as xb
    >>> def narrow():
    ...     with xb.tpu.bfloat16_scope():
    ...         return xb.tpu.get_variable("narrow", [2], xb.bf16)
    >>> xb.tpu.rewrite(narrow)[0].dtype.name
    'bfloat16'
    >>> [variable.shape for variable in xb.tpu.global_variables() if variable.name == "narrow"]
    [f32[2]]

    Source: tf.compat.v1.tpu.bfloat16_scope.
    """
    with variable_scope(name or "") as scope, assigned(_scope, VariableScope(scope.name, True)) as inner:
        yield inner


def get_variable(
    name: str,
    shape: Sequence[int] | None = None,
    dtype: PrimitiveType = f32,
    initializer: Initializer | Any = None,
    trainable: bool = True,
) -> Any:
    """The variable with this name, created by the first call.

    `initializer` is an array, or a function of shape and element type; it defaults to glorot_uniform_initializer for
    floats of rank 1 and above, otherwise to zeros. In a bfloat16_scope a bf16 variable is stored in f32 and returned as
    its bf16 value.
    Raises missing_shape for a new variable without shape or array; shape_mismatch if the variable has a different shape
    or type; invalid_attribute (TypeError) if the shape or element type is not one.

    >>> import xbuild as xb
    >>> w = xb.tpu.get_variable("w_of_the_example", [2, 3], initializer=xb.tpu.ones_initializer)
    >>> w.shape, xb.tpu.get_variable("w_of_the_example", [2, 3]) is w
    (f32[2,3], True)

    Source: tf.compat.v1.get_variable.
    """
    scope = _scope.get()
    dtype = read_element_type(f"get_variable: dtype of {name}", dtype)
    is_cast = scope.is_bfloat16 and dtype is bf16
    stored = f32 if is_cast else dtype
    shape = None if shape is None else read_extents(f"get_variable: the shape of {name}", shape)
    full = f"{scope.name}/{name}" if scope.name else name
    variable = STORE.variables.get(full)
    if variable is None:
        value = _initial_value(full, shape, stored, initializer)
        variable = STORE.variables[full] = Variable(value, full, stored, trainable)
    wanted = None if shape is None else stored[tuple(shape)]
    if wanted is not None and variable.shape != wanted:
        refuse(
            "shape_mismatch",
            f"get_variable: {full} already exists with shape {variable.shape}, but {wanted} was requested",
            "use a different name for a new variable; xb.tpu.reset_variables() removes all variables",
        )
    return cast_read(variable) if is_cast else variable


def _initial_value(name: str, shape: Sequence[int] | None, dtype: PrimitiveType, initializer: Any) -> Any:
    if initializer is not None and not callable(initializer):
        return initializer
    if shape is None:
        refuse(
            "missing_shape",
            f"get_variable: {name} is new, so it needs a shape or an initial array",
            "pass shape=[2, 3] or initializer=array",
        )
    if initializer is None:
        initializer = glorot_uniform_initializer() if dtype.is_float and len(shape) else zeros_initializer
    return initializer(tuple(shape), dtype=dtype)


def global_variables() -> list[Variable]:
    """The variables obtained by name, in order.

    >>> import xbuild as xb
    >>> all(isinstance(each, xb.tpu.Variable) for each in xb.tpu.global_variables())
    True

    Source: tf.compat.v1.global_variables.
    """
    return list(STORE.variables.values())


def trainable_variables() -> list[Variable]:
    """The variables obtained by name that optimizers change.

    >>> import xbuild as xb
    >>> all(each.trainable for each in xb.tpu.trainable_variables())
    True

    Source: tf.compat.v1.trainable_variables.
    """
    return [variable for variable in STORE.variables.values() if variable.trainable]


def reset_variables() -> None:
    """Remove all variables obtained by name; programs that use them are traced again.

    Source: tf.compat.v1.reset_default_graph.
    """
    STORE.clear()
