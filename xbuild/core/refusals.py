"""How something that is no single op is refused: one sentence, the user's line, and hints."""

from __future__ import annotations

from .diagnostics import BuildError, caller
from .graph import resolve, short_path


def refusal(kind: str, message: str, *hints: str) -> BuildError:
    """A refusal of the edit itself, with the user's line."""
    where = caller()
    source = resolve(*where) if where else None
    at = f"\n  at {short_path(source.file)}:{source.line} in {source.function}" if source else ""
    error = BuildError(kind, f"{message} [{kind}]{at}{''.join(f'{chr(10)}  hint: {hint}' for hint in hints)}", hints)
    error.message, error.explained = message, True
    return error
