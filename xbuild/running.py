"""The only module of xbuild that imports the interpreter, a higher package, and only at its first use.

It provides the public names of the interpreter to `xbuild` and to the command line, and values of single instructions
to the check. It returns such a value only if every run computes the same one: not for denormal numbers (a run may flush
or keep them), for a fold whose floating-point result depends on the order, or for a value that is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.trees import flatten, leaves

from .core.context import assigned
from .core.graph import Instruction
from .core.op import opcodes
from .process.limits import ask
from .process.package_conflict import refuse_conflict

if TYPE_CHECKING:
    from interpreter import rules
    from interpreter import tracing as tracing
    from interpreter.engines import rounding as rounding

    from .late_names import *  # noqa: F403

    rule_tables = rules
else:
    from .late_names import PLACES

    PUBLIC = {name: place for name, place in PLACES.items() if place[0].partition(".")[0] == "interpreter"}
    """The names of the interpreter that `xbuild` provides, each with its module and its name there."""

    _INTERNAL = {
        "rounding": ("interpreter.engines", "rounding"),
        "rule_tables": ("interpreter", "rules"),
        "tracing": ("interpreter", "tracing"),
    }

    def __getattr__(name):
        """Import a name of the interpreter and cache it."""
        place = PUBLIC.get(name) or _INTERNAL.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        refuse_conflict()
        module, attribute = place
        globals()[name] = getattr(__import__(module, fromlist=[attribute]), attribute)
        return globals()[name]


Value: TypeAlias = Any  # an array, or a NumPy scalar for rank 0
Rule: TypeAlias = Callable[[Any, Sequence[Value]], Value]

LARGEST = 1 << 16  # elements of a value
LARGEST_MET = 1 << 18  # elements that all members of a group bring to a collective
LARGEST_INNER = 1 << 12  # elements where a computation may be applied to each, or products are many
_SUMS = opcodes(lambda op: op.elements == "mixed" and op.denormals == "flushed")
_MANY_STEPS = _SUMS - {"dot"}  # a dot is one product of matrices, which is fast
_SAFE = 2.0**-40  # from here on no sum of a few products of floating point numbers is denormal
_MOVES = opcodes(lambda op: bool(op.moves)) | {"bitcast_convert", "constant"}


@cache
def _single() -> Any:
    """The part of the interpreter that evaluates single instructions."""
    refuse_conflict()
    return import_module("interpreter.runtime.instruction_values")


@frozen(eq=False)
class _Prepared:
    """How an instruction is evaluated: by no rule, one, or two that must agree; `is_plain` means no floating point."""

    rules: tuple[Rule, ...]
    is_plain: bool
    dtype: Any
    dims: tuple[int, ...]


@define(eq=False)
class Evaluator:
    """Evaluates single instructions; the rule of each is prepared once, and None is an unknown value."""

    _prepared: dict[Instruction, _Prepared] = field(factory=dict)
    _pure: dict[Instruction, bool] = field(factory=dict)
    _who: dict[tuple[int, int], Any] = field(factory=dict)

    def is_pure(self, instruction: Instruction) -> bool:
        """Whether the value depends only on the values of the operands and on the device."""
        if instruction not in self._pure:
            self._pure[instruction] = _single().is_pure(instruction)
        return self._pure[instruction]

    def value(self, instruction: Instruction, operands: Sequence[Value], ids: tuple[int, int]) -> Value | None:
        """The value on the device with these ids (replica, partition), from the values of the operands."""
        prepared = self._prepared.get(instruction)
        if prepared is None:
            prepared = self._prepared[instruction] = _prepare(instruction)
        if ids not in self._who:
            self._who[ids] = _who(*ids)
        who = self._who[ids]
        if not prepared.is_plain:
            return _agreed_value(instruction, operands, [_try(rule, who, operands) for rule in prepared.rules])
        found = _try(prepared.rules[0], who, operands)
        if found is None or found.dtype != prepared.dtype or found.shape != prepared.dims:
            return None
        return found

    def collective_results(
        self, start: Instruction, group: Sequence[int], is_named: bool, brought: Mapping[int, tuple[Value, ...]]
    ) -> Mapping[int, Any] | None:
        """The result of a collective for each member of a group."""
        operands = [value for values in brought.values() for value in values]
        if sum(np.size(value) for value in operands) > LARGEST_MET:
            return None
        ways = (False, True) if start.called else (False,)
        found: list[Any] = [
            _try(_single().collective_results, start, group, is_named, brought, sequential=way) for way in ways
        ]
        if any(each is None for each in found) or _has_denormals(operands) or not _is_safe(operands):
            return None
        alike = all(_same(found[0][member], each[member]) for each in found for member in group)
        return found[0] if alike and not _has_denormals(found[0].values()) else None


_current: ContextVar[Evaluator | None] = ContextVar("xbuild_evaluator", default=None)


def shared_evaluator() -> Evaluator:
    """The evaluator that the analyses of the current check share; a new one outside a check."""
    return _current.get() or Evaluator()


@contextmanager
def one_evaluator() -> Iterator[None]:
    """All analyses inside the block use one evaluator, so that the rule of an instruction is prepared once."""
    with assigned(_current, Evaluator()):
        yield


def result_shape(start: Instruction) -> AnyShape:
    """The final result of a collective; for a started one, that of its done."""
    return _single().result_shape(start)  # type: ignore[no-any-return]


def as_in_a_run() -> AbstractContextManager[Any]:
    """Floating-point errors inside the block are handled as in a run."""
    return _single().without_warnings()  # type: ignore[no-any-return]


def same(a: Value, b: Value) -> bool:
    """Whether two values have the same type and the same bits."""
    return a is b or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def _same(a: Any, b: Any) -> bool:
    return all(map(same, flatten(a), flatten(b)))


def _prepare(instruction: Instruction) -> _Prepared:
    """The rule, and the one of a sequential run if the order of a fold may matter; none if the value is too large."""
    rule_of, folds_floats = _single().rule_of, _single().folds_floats
    rule, shape = rule_of(instruction) if _fits(instruction) else None, instruction.shape
    if rule is None or not isinstance(shape, Shape):
        return _Prepared(() if rule is None else (rule,), False, None, ())
    sequential = rule_of(instruction, sequential=True) if folds_floats(instruction) else None
    rules = (rule,) if sequential is None else (rule, sequential)
    is_plain = all(map(_is_counted, (instruction, *instruction.operands))) and not instruction.called
    return _Prepared(rules, is_plain, shape.dtype.dtype, shape.dims)


def _is_counted(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.kind in ("signed", "unsigned", "pred")


def _who(replica: int, partition: int) -> Any:
    return _single().DeviceIds(np.uint32(replica), np.uint32(partition))


def _fits(instruction: Instruction) -> bool:
    """Whether the value and the operands are small enough to evaluate."""
    bound = LARGEST_INNER if instruction.called or instruction.opcode in _MANY_STEPS else LARGEST
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return all(leaf.size <= bound for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape))


def _agreed_value(instruction: Instruction, operands: Sequence[Value], found: Sequence[Any]) -> Value | None:
    """The value on which all rules agree, if no denormal number is involved."""
    if not found or any(each is None for each in found) or not all(_same(found[0], each) for each in found):
        return None
    if instruction.opcode not in _MOVES:
        if _has_denormals(operands) or _has_denormals((found[0],)):
            return None
        if (instruction.called or instruction.opcode in _SUMS) and not _is_safe(operands):
            return None
    return found[0] if _is_of(found[0], instruction.shape) else None


def _try(way: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """The value; None if the rule raises, as it may for a program that is not checked yet.

    A limit of time or memory that is reached meanwhile is raised on: it says nothing of the value.
    """
    ask()
    try:
        return way(*operands, **options)
    except (MemoryError, _single().LimitReached):
        raise
    except Exception:
        return None


def _is_of(value: Any, shape: AnyShape) -> bool:
    if isinstance(shape, TupleShape):
        pairs = zip(value, shape.elements, strict=True) if isinstance(value, tuple) else ()
        return isinstance(value, tuple) and all(_is_of(*pair) for pair in pairs)
    return isinstance(shape, Shape) and value.dtype == shape.dtype.dtype and value.shape == shape.dims


def _floats(values: Any) -> list[Any]:
    """The floating-point numbers among values, in a type that NumPy computes in; both parts of complex numbers."""
    found = []
    for value in flatten((*values,)):
        if value.dtype.kind == "c":
            found += [value.real, value.imag]
        elif value.dtype.kind not in "biu":
            found.append(value if value.dtype.isbuiltin == 1 else value.astype(np.float32))
    return found


def _has_denormals(values: Any) -> bool:
    return any(_is_below(each, float(np.finfo(each.dtype).tiny)) for each in _floats(values))


def _is_safe(values: Any) -> bool:
    return not any(_is_below(each, _SAFE) for each in _floats(values))


def _is_below(value: Any, bound: float) -> bool:
    """Whether a nonzero number is smaller than the bound."""
    magnitudes = np.abs(value)
    return bool(np.any((magnitudes < bound) & (magnitudes > 0)))
