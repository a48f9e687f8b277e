"""What TensorFlow's module refuses, in its order: errors of TensorFlow's Python types, with the user's line."""

from __future__ import annotations

from typing import NoReturn

from shape_inference import XbuildError

from ...core.diagnostics import caller, dressed_text


class TpuError(XbuildError):
    """A call of `xb.tpu` is refused; a ValueError, as TensorFlow raises."""


class TpuTypeError(TpuError, TypeError):
    """A call of `xb.tpu` is refused where TensorFlow raises TypeError."""


class TpuNestingError(TpuError, NotImplementedError):
    """A use inside of another is refused where TensorFlow raises NotImplementedError."""


def refuse(
    kind: str, message: str, *hints: str, error: type[TpuError] = TpuError, given: dict[str, object] | None = None
) -> NoReturn:
    """Raise the error with what was given, the user's line and the ways out."""
    rows = [(label, _short(value)) for label, value in (given or {}).items()]
    raised = error(kind, dressed_text(f"{message} [{kind}]", rows, caller(), hints), hints)
    raised.message, raised.explained = message, True
    raise raised


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
