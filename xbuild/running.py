"""The one module of xbuild that imports the interpreter, which stands above it: at the first use, and not before.

The public names of the interpreter are given to `xbuild` and to the command line, and values of single instructions to
the check. Such a value is given only where every run gives the same one: not where a number is denormal (a run flushes
or keeps these, as it is told), where the order in which a fold takes floating point numbers can be seen, or where the
value is too large.
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
from shape_inference.types import leaves

from .core.context import assigned
from .core.graph import Instruction
from .core.op import opcodes
from .process.package_conflict import refuse_conflict

if TYPE_CHECKING:
    from interpreter import ArgumentError as ArgumentError
    from interpreter import Limits as Limits
    from interpreter import Recorder as Recorder
    from interpreter import Refused as Refused
    from interpreter import Report as Report
    from interpreter import Stopped as Stopped
    from interpreter import StrictFailure as StrictFailure
    from interpreter import StrictReport as StrictReport
    from interpreter import engines as engines
    from interpreter import evaluate as evaluate
    from interpreter import execute as execute
    from interpreter import plan_source as plan_source
    from interpreter import trace as trace
    from interpreter import tracing as tracing
    from interpreter.fields import Equivalence as Equivalence
    from interpreter.fields import equivalent as equivalent

PUBLIC = {
    name: f"interpreter:{name}"
    for name in (
        "ArgumentError", "Limits", "Recorder", "Refused", "Report", "Stopped", "StrictFailure", "StrictReport",
        "evaluate", "execute", "plan_source", "trace",
    )
} | {
    "StrictFinding": "interpreter:Finding", "engines": "interpreter.engines:",
    "Equivalence": "interpreter.fields:Equivalence", "equivalent": "interpreter.fields:equivalent",
}  # fmt: skip
"""The names that `xbuild` gives: the module that has it, and its name there; a module itself has none."""

_INTERNAL = {"rule_tables": "interpreter.rules.tables:", "tracing": "interpreter.tracing:"}

Value: TypeAlias = Any  # an array, or a NumPy scalar for rank 0
Rule: TypeAlias = Callable[[Any, Sequence[Value]], Value]

LARGEST = 1 << 16  # elements of a value
LARGEST_MET = 1 << 18  # elements that all members of a group bring to a collective
LARGEST_INNER = 1 << 12  # elements where a computation may be applied to each, or products are many
_SUMS = opcodes(lambda op: op.elements == "mixed" and op.denormals == "flushed")
_MANY_STEPS = _SUMS - {"dot"}  # a dot is one product of matrices, which is fast
_SAFE = 2.0**-40  # from here on no sum of a few products of floating point numbers is denormal
_MOVES = opcodes(lambda op: bool(op.moves)) | {"bitcast_convert", "constant"}


def __getattr__(name: str) -> Any:
    """What the interpreter has by this name, imported now and kept."""
    place = PUBLIC.get(name) or _INTERNAL.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    refuse_conflict()
    module, _, attribute = place.partition(":")
    found = import_module(module)
    globals()[name] = getattr(found, attribute) if attribute else found
    return globals()[name]


@cache
def _single() -> Any:
    """The part of the interpreter that evaluates single instructions."""
    refuse_conflict()
    return import_module("interpreter.runtime.single")


@frozen(eq=False)
class _Prepared:
    """How an instruction is evaluated: by no rule, one, or two that must agree; `is_plain` without floating point."""

    rules: tuple[Rule, ...]
    is_plain: bool
    dtype: Any
    dims: tuple[int, ...]


@define(eq=False)
class Evaluator:
    """The value rules of the instructions that were asked for, each found once; `None` stands for an unknown value."""

    _prepared: dict[Instruction, _Prepared] = field(factory=dict)
    _pure: dict[Instruction, bool] = field(factory=dict)
    _who: dict[tuple[int, int], Any] = field(factory=dict)

    def is_pure(self, instruction: Instruction) -> bool:
        """Whether the value is a function of the operands' values, and of the device."""
        if instruction not in self._pure:
            self._pure[instruction] = _single().is_pure(instruction)
        return self._pure[instruction]

    def value(self, instruction: Instruction, operands: Sequence[Value], ids: tuple[int, int]) -> Value | None:
        """The value on the device of these ids (replica, partition), by the operands' values."""
        prepared = self._prepared.get(instruction)
        if prepared is None:
            prepared = self._prepared[instruction] = _prepared(instruction)
        if ids not in self._who:
            self._who[ids] = _who(*ids)
        who = self._who[ids]
        if not prepared.is_plain:
            return _agreed(instruction, operands, [_tried(rule, who, operands) for rule in prepared.rules])
        found = _tried(prepared.rules[0], who, operands)
        if found is None or found.dtype != prepared.dtype or found.shape != prepared.dims:
            return None
        return found

    def collective_results(
        self, start: Instruction, group: Sequence[int], is_named: bool, brought: Mapping[int, tuple[Value, ...]]
    ) -> Mapping[int, Any] | None:
        """What each member of a group gets of a collective."""
        operands = [value for values in brought.values() for value in values]
        if sum(np.size(value) for value in operands) > LARGEST_MET:
            return None
        ways = (False, True) if start.called else (False,)
        found: list[Any] = [
            _tried(_single().collective_results, start, group, is_named, brought, sequential=way) for way in ways
        ]
        if any(each is None for each in found) or _has_denormals(operands) or not _is_safe(operands):
            return None
        alike = all(_same(found[0][member], each[member]) for each in found for member in group)
        return found[0] if alike and not _has_denormals(found[0].values()) else None


_current: ContextVar[Evaluator | None] = ContextVar("xbuild_evaluator", default=None)


def shared_evaluator() -> Evaluator:
    """The evaluator of the check that is under way, whose analyses share it; else a new one."""
    return _current.get() or Evaluator()


@contextmanager
def one_evaluator() -> Iterator[None]:
    """Inside, all analyses use one evaluator, so that the rule of an instruction is prepared once."""
    with assigned(_current, Evaluator()):
        yield


def result_shape(start: Instruction) -> AnyShape:
    """What a collective gives in the end, of one that is started by its done."""
    return _single().result_shape(start)  # type: ignore[no-any-return]


def as_in_a_run() -> AbstractContextManager[Any]:
    """Inside, floating point is as it is in a run."""
    return _single().quietly()  # type: ignore[no-any-return]


def same(a: Value, b: Value) -> bool:
    """Whether two values have one type and the same bits."""
    return a is b or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(map(_same, a, b))
    return same(a, b)


def _prepared(instruction: Instruction) -> _Prepared:
    """The rule, and where the order of a fold may be seen that of a sequential run; none of what is too large."""
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
    """Whether the value, and what it is made of, is small enough to be looked at."""
    bound = LARGEST_INNER if instruction.called or instruction.opcode in _MANY_STEPS else LARGEST
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return all(leaf.size <= bound for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape))


def _agreed(instruction: Instruction, operands: Sequence[Value], found: Sequence[Any]) -> Value | None:
    """The value that all ways have given, where no denormal number has a part in it."""
    if not found or any(each is None for each in found) or not all(_same(found[0], each) for each in found):
        return None
    if instruction.opcode not in _MOVES:
        if _has_denormals(operands) or _has_denormals((found[0],)):
            return None
        if (instruction.called or instruction.opcode in _SUMS) and not _is_safe(operands):
            return None
    return found[0] if _is_of(found[0], instruction.shape) else None


def _tried(way: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """What it gives; None where it raises, as it may on what no check has seen yet."""
    try:
        return way(*operands, **options)
    except Exception:
        return None


def _is_of(value: Any, shape: AnyShape) -> bool:
    if isinstance(shape, TupleShape):
        pairs = zip(value, shape.elements, strict=True) if isinstance(value, tuple) else ()
        return isinstance(value, tuple) and all(_is_of(*pair) for pair in pairs)
    return isinstance(shape, Shape) and value.dtype == shape.dtype.dtype and value.shape == shape.dims


def _floats(values: Any) -> list[Any]:
    """The numbers among values that may be floating point, in a type that NumPy computes in; of complex both parts."""
    found = []
    for value in values:
        if isinstance(value, tuple):
            found += _floats(value)
        elif value.dtype.kind == "c":
            found += [value.real, value.imag]
        elif value.dtype.kind not in "biu":
            found.append(value if value.dtype.isbuiltin == 1 else value.astype(np.float32))
    return found


def _has_denormals(values: Any) -> bool:
    return any(_is_below(each, float(np.finfo(each.dtype).tiny)) for each in _floats(values))


def _is_safe(values: Any) -> bool:
    return not any(_is_below(each, _SAFE) for each in _floats(values))


def _is_below(value: Any, bound: float) -> bool:
    """Whether a number of it that is not zero is smaller than the bound."""
    magnitudes = np.abs(value)
    return bool(np.any((magnitudes < bound) & (magnitudes > 0)))
