"""Error messages: the message of a rule, with op, operands, attributes and the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from itertools import starmap
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from attrs import define

import shape_inference
from shape_inference import PrimitiveType, Shape, TupleShape, XbuildError

from .graph import Computation, Instruction, RecordedSource, resolve
from .identifiers import short_path
from .source_lines import recorded_line

if TYPE_CHECKING:
    from .builder import Builder, Value
    from .op import Schema

_PACKAGES = tuple(
    os.path.join(os.path.abspath(path), "")
    for path in (os.path.dirname(os.path.dirname(__file__)), *shape_inference.__path__)
)


MOST_OF_A_TUPLE = 1000


class BuildError(XbuildError):
    """Raised when a builder is used incorrectly, for example with a value from another builder, or after `build` was
    called."""


class ValueUseError(BuildError, TypeError):
    """Raised when a value is used as if it were computed, or when an object cannot be an operand."""


class MeaningWarning(UserWarning):
    """Warns that a call has XLA's meaning, which differs from NumPy's; the message names a call for each meaning."""


class MissingAttributeError(ValueUseError, AttributeError):
    """Raised if a value or the module lacks an attribute; the message names the replacement."""


def explain(
    error: XbuildError,
    schema: Schema,
    operands: tuple[Value | Instruction, ...],
    segments: tuple[int, ...] | None,
    attributes: dict[str, Any],
    where: tuple[CodeType, int] | None,
) -> XbuildError:
    """The error of an op: the op in the first line, operands and attributes below it."""
    labelled = zip(operand_labels(schema, len(operands), segments), operands, strict=True)
    return explain_call(error, schema.spelling, labelled, attributes, where)


def explain_call(
    error: XbuildError,
    name: str,
    operands: Iterable[tuple[str, Any]],
    attributes: dict[str, Any],
    where: tuple[CodeType, int] | None,
) -> XbuildError:
    """The error with the called function in its first line, and the labelled operands and attributes below it.

    An error from inside a region that the op traces is explained already, and stays as it is.
    """
    if error.explained:
        return error
    given = ((key, describe(value)) for key, value in attributes.items() if not _is_unset(value))
    rows = [*starmap(_operand_row, operands), *given]
    head = f"{name}: {error.message} [{error.kind}]"
    dressed = type(error)(error.kind, dressed_text(head, rows, where, error.hints), error.hints)
    dressed.message, dressed.explained = error.message, True
    return dressed


def dressed_text(
    head: str, rows: Iterable[tuple[str, str]], where: tuple[CodeType, int] | None, hints: Iterable[str]
) -> str:
    """The text of an error: first line, labelled operands and attributes, the user's line, the hints."""
    _hide(sys._getframe(1))
    rows = list(rows)
    width = max((len(label) for label, _ in rows), default=0)
    lines = [head, *(f"  {label:<{width}}  {text}" for label, text in rows)]
    lines += _source_rows(resolve(*where) if where else None)
    return "\n".join([*lines, *(f"  hint: {hint}" for hint in hints)])


@define
class _Tracebacks:
    """Whether tracebacks show the frames inside xbuild."""

    full: bool = os.environ.get("XBUILD_FULL_TRACEBACKS", "") not in ("", "0")


tracebacks = _Tracebacks()


def _hide(frame: FrameType | None) -> None:
    """Mark the frames of xbuild below the user's, so that IPython and pytest hide them."""
    while frame is not None and is_ours(frame.f_code.co_filename) and not tracebacks.full:
        frame.f_locals["__tracebackhide__"] = True
        frame = frame.f_back


def _is_unset(value: Any) -> bool:
    return value is None or (isinstance(value, tuple) and not value)


def describe(value: Any) -> str:
    """The text of an attribute in a message; a computation is described by its name and signature."""
    if isinstance(value, Computation):
        return f"%{value.name}: {value.program_shape}"
    if isinstance(value, tuple | list) and _holds_regions(value):
        return ", ".join(f"[{describe(each)}]" if isinstance(each, tuple | list) else describe(each) for each in value)
    if _is_function(value):
        return f"function {value.__qualname__}"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _is_function(value: Any) -> bool:
    return callable(value) and hasattr(value, "__qualname__")


def _holds_regions(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_regions, value))
    return isinstance(value, Computation) or _is_function(value)


def _operand_row(label: str, operand: Any) -> tuple[str, str]:
    shape, name = getattr(operand, "shape", operand), getattr(operand, "name", None)
    return label, f"{_short(shape)}  %{name}" if name and shape is not operand else describe(operand)


def _short(shape: Any) -> str:
    """The text of a shape; a very long tuple is described by the number of its elements."""
    if isinstance(shape, TupleShape) and shape.count > MOST_OF_A_TUPLE:
        return f"a tuple of {shape.count:,} arrays and tokens"
    return str(shape)


def operand_labels(schema: Schema, count: int, segments: tuple[int, ...] | None) -> list[str]:
    """The name of each operand in the flat tuple: its parameter, with a number if the parameter takes a list."""
    if segments is None:
        extra = [f"operand {n}" for n in range(len(schema.operands), count)]
        return [*schema.operands[:count], *extra]
    return segment_labels(schema.operands, segments)


def segment_labels(names: Iterable[str], sizes: Iterable[int]) -> list[str]:
    """The label of each operand: the parameter's name, with an index unless the parameter has exactly one operand."""
    return [name if size == 1 else f"{name}[{n}]" for name, size in zip(names, sizes, strict=True) for n in range(size)]


def _source_rows(source: RecordedSource | None) -> list[str]:
    if source is None:
        return []
    line = recorded_line(source)
    return [f"  at {short_path(source.file)}:{source.line} in {source.function}", *([f"     {line}"] if line else [])]


class _Files(dict[str, bool]):
    """For each file, whether it is one of the packages."""

    def __missing__(self, file: str) -> bool:
        self[file] = found = file.startswith((*_PACKAGES, "<attrs generated "))
        return found


_files = _Files()


def is_ours(file: str) -> bool:
    return _files[file]


def caller() -> tuple[CodeType, int] | None:
    """The user's frame: the first outside the packages `xbuild` and `shape_inference`."""
    frame = sys._getframe(2)
    while _files[frame.f_code.co_filename]:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def warn(message: str) -> None:
    """Warn about a call with a different meaning in NumPy, at the user's line."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, MeaningWarning, stacklevel=level)


def refusal(kind: str, message: str, *hints: str) -> BuildError:
    """An error for a call that concerns no single op, such as an edit: the message, the user's line, and hints."""
    where = caller()
    source = resolve(*where) if where else None
    at = f"\n  at {short_path(source.file)}:{source.line} in {source.function}" if source else ""
    error = BuildError(kind, f"{message} [{kind}]{at}{''.join(f'{chr(10)}  hint: {hint}' for hint in hints)}", hints)
    error.message, error.explained = message, True
    return error


def rejection(schema: Schema, operands: tuple[Any, ...], operand: Any, builder: Builder) -> BuildError:
    """The error for an operand that is not a value of the builder that records the op."""
    from .builder import Value

    if isinstance(operand, Value):
        return _foreign(
            operand, next((o for o in operands if type(o) is Value and o.builder is builder), None), builder
        )
    if not schema.operands and schema.names:
        return _by_keyword(schema, operands)
    return BuildError(
        "invalid_operand",
        f"expected a value of a builder as operand, got {operand!r}",
        "xb.constant(builder, literal=...) creates a value",
    )


def _by_keyword(schema: Schema, given: tuple[Any, ...]) -> BuildError:
    """The error for attributes passed by position, with the correct call."""
    names = [*schema.readers, "name"]
    call = ", ".join(f"{name}={_as_typed(value)}" for name, value in zip(names, given, strict=False))
    return BuildError(
        "invalid_operand",
        f"takes no positional operands, got {given[0]!r}; pass {', '.join(f'{n}=...' for n in names)}",
        f"xb.{schema.declaration.__name__}(builder, {call})",
    )


def _as_typed(value: Any) -> str:
    """An argument as a user would type it."""
    if isinstance(value, Shape) and not value.is_dynamic:
        return f"xb.{value.plain()}" if value.dims else f"xb.{value.dtype}[()]"
    return f"xb.{value}" if isinstance(value, PrimitiveType) else repr(value)


def _foreign(operand: Value, own: Value | None, builder: Builder) -> BuildError:
    """The error for values of two builders; if one records a region of the other, it names the captured value."""
    for captured, region in ((operand, builder), (own, operand.builder)):
        if captured is not None and _is_inside(region, captured.builder):
            return BuildError("foreign_value", *capture(captured, region))
    this = "another builder of that name" if operand.builder.name == builder.name else f"builder {builder.name!r}"
    return BuildError(
        "foreign_value",
        f"operand {operand} belongs to builder {operand.builder.name!r}, but the op is recorded with {this}",
        "record all values of a program with one builder, or use xb.call(operands, computation) to join two programs",
    )


def _is_inside(region: Builder, outer: Builder) -> bool:
    """Whether a builder records a region of a program that another builder records."""
    parent = region.parent
    while parent is not None and parent is not outer:
        parent = parent.parent
    return parent is not None


def capture(captured: Value, region: Builder) -> tuple[str, str]:
    """The message and the hint for a value that the function of a region captures."""
    origin = _origin(captured, region)
    recorded = f", recorded at {origin.source}," if origin.source else ""
    way = "" if origin is captured.instruction else f" to compute %{captured.name}"
    return (
        f"the function of region {region.name!r} captures %{origin.name} ({origin.shape}) of builder "
        f"{captured.builder.name!r}{recorded}{way}; a region can use only its own parameters",
        f"pass the value as an operand: to a branch directly, to a loop in its state; with %{origin.name} as y, call "
        "xb.while_((init, y), condition, body), write `x, y = state` in both functions and return (new_x, y) from body",
    )


def _origin(captured: Value, region: Builder) -> Instruction:
    """The instruction, recorded before the region's function ran, from which the function computed a captured value.

    The outer builder records ops of the function that use only captured values; those are not what the user captured.
    """
    while region.parent is not captured.builder and region.parent is not None:
        region = region.parent
    made = set(captured.builder.recorded_since(region.begun))
    found = captured.instruction
    while found in made and found.operands:
        found = next((each for each in found.operands if each.opcode != "constant"), found.operands[0])
    return captured.instruction if found in made else found


def wrong_root(root: Any, builder: Builder) -> tuple[str, ...]:
    """The message and hints for a root that is not a value of the builder."""
    from .builder import Value

    if isinstance(root, Value) and _is_inside(builder, root.builder):
        return capture(root, builder)
    hint = ["xb.tuple_([x, y]) combines several values into one"] if isinstance(root, tuple | list) else []
    return (f"build: the root {root!r} is not a value of builder {builder.name!r}", *hint)
