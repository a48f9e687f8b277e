"""Names that HLO text can hold, and the check of a name."""

from __future__ import annotations

import os
import re
from typing import Any

from shape_inference import PRIMITIVES, XbuildError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

KEYWORDS = frozenset({
    "nan", "inf", "true", "false", "HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames", "FileLocations",
    "StackFrames", "maximal", "replicated", "manual", "unreduced", "unknown", "last_tile_dim_replicate", "shard_as",
    "shard_like", "token", "opaque", *PRIMITIVES,
})  # fmt: skip


def is_identifier(name: str) -> bool:
    """Whether HLO text reads the name as one: ASCII letters, digits and `_.-`, no digit first, no keyword, no type.

    >>> is_identifier("add.3"), is_identifier("3rd"), is_identifier("f32")
    (True, False, False)
    """
    return _IDENTIFIER.fullmatch(name) is not None and name not in KEYWORDS


def check_name(name: Any, refusal: type[XbuildError] = XbuildError) -> None:
    """Raise the refusal (of kind invalid_name) unless HLO text could hold the name."""
    if not isinstance(name, str):
        shown = repr(name)
        what = shown if len(shown) <= 60 and "\n" not in shown else f"a {type(name).__name__}"
        raise refusal("invalid_name", f"{what} is no name; a string is wanted")
    if name in KEYWORDS:
        raise refusal("invalid_name", f"{name!r} is no name: HLO text has it as a word", [f"{nearest(name)!r} is one"])
    if not is_identifier(name):
        letters = "ASCII letters, digits, `_`, `.` and `-` are wanted, and no digit, `.` or `-` first"
        raise refusal("invalid_name", f"{name!r} is no name: {letters}", [f"{nearest(name)!r} is one"])


def nearest(name: str) -> str:
    """The name that HLO text can hold and that is nearest to this one.

    >>> nearest("my layer/3"), nearest("f32"), nearest("")
    ('my_layer_3', 'f32_', '_')
    """
    cleaned = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    if not cleaned or not re.match(r"[A-Za-z_]", cleaned):
        cleaned = f"_{cleaned}"
    return cleaned if is_identifier(cleaned) else f"{cleaned}_"


def short_path(path: str) -> str:
    """The path relative to the working directory if that is shorter, else the path unchanged."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return relative if len(relative) < len(path) else path
