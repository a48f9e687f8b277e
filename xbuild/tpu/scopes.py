"""Variables by name: a store of them, scopes of names, and the scope in which bf16 variables are stored in f32."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from attrs import define, field, frozen

from shape_inference import PrimitiveType, bf16, f32

from ..core.builder import Value
from ..core.context import assigned
from ..core.context import scope as op_scope
from .support.arguments import element_type, extents
from .support.refusals import refuse
from .variables import Initializer, Variable, cast_read, glorot_uniform_initializer, zeros_initializer

_generations = itertools.count()


@define(eq=False)
class Store:
    """The variables by their full names; `generation` tells a store that was emptied from what it was."""

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
    """Variables that are got inside have this name and a slash before theirs, and so have ops.

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
    """Variables of bf16 that are got inside are stored in f32, and cast to bf16 where they are read.

    Variables of other types are as without it. Updates so keep the precision of f32.

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
    """The variable of this name: made at the first call, the same one at every later call.

    `initializer` is an array, or a function of shape and element type; glorot_uniform_initializer for floats of rank 1
    and more, zeros else. In a bfloat16_scope a variable of bf16 is stored in f32, and given as its value in bf16.
    Raises missing_shape where neither shape nor array is given; shape_mismatch where the variable has another shape
    or type; invalid_attribute (TypeError) for what is no shape or no element type.

    >>> import xbuild as xb
    >>> w = xb.tpu.get_variable("w_of_the_example", [2, 3], initializer=xb.tpu.ones_initializer)
    >>> w.shape, xb.tpu.get_variable("w_of_the_example", [2, 3]) is w
    (f32[2,3], True)

    Source: tf.compat.v1.get_variable.
    """
    scope = _scope.get()
    dtype = element_type(f"get_variable: dtype of {name}", dtype)
    is_cast = scope.is_bfloat16 and dtype is bf16
    stored = f32 if is_cast else dtype
    shape = None if shape is None else extents(f"get_variable: the shape of {name}", shape)
    full = f"{scope.name}/{name}" if scope.name else name
    variable = STORE.variables.get(full)
    if variable is None:
        value = _initial(full, shape, stored, initializer)
        variable = STORE.variables[full] = Variable(value, full, stored, trainable)
    wanted = None if shape is None else stored[tuple(shape)]
    if wanted is not None and variable.shape != wanted:
        refuse(
            "shape_mismatch",
            f"get_variable: {full} is {variable.shape}, and {wanted} is asked for",
            "another name makes another variable; xb.tpu.reset_variables() forgets all",
        )
    return cast_read(variable) if is_cast else variable


def _initial(name: str, shape: Sequence[int] | None, dtype: PrimitiveType, initializer: Any) -> Any:
    if initializer is not None and not callable(initializer):
        return initializer
    if shape is None:
        refuse(
            "missing_shape",
            f"get_variable: {name} is new, and neither a shape nor an initial array is given",
            "shape=[2, 3] or initializer=array",
        )
    if initializer is None:
        initializer = glorot_uniform_initializer() if dtype.is_float and len(shape) else zeros_initializer
    return initializer(tuple(shape), dtype=dtype)


def global_variables() -> list[Variable]:
    """The variables that were got by name, in order.

    >>> import xbuild as xb
    >>> all(isinstance(each, xb.tpu.Variable) for each in xb.tpu.global_variables())
    True

    Source: tf.compat.v1.global_variables.
    """
    return list(STORE.variables.values())


def trainable_variables() -> list[Variable]:
    """Those of the variables by name that optimizers change.

    >>> import xbuild as xb
    >>> all(each.trainable for each in xb.tpu.trainable_variables())
    True

    Source: tf.compat.v1.trainable_variables.
    """
    return [variable for variable in STORE.variables.values() if variable.trainable]


def reset_variables() -> None:
    """Forget every variable that was got by name; programs that were traced with them are traced anew.

    Source: tf.compat.v1.reset_default_graph.
    """
    STORE.clear()


def is_value(thing: Any) -> bool:
    """Whether it is a value of a computation or a variable, which stands for one."""
    return isinstance(thing, Value | Variable)
