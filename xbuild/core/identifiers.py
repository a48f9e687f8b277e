"""Names that HLO text can hold, and the check of a name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from shape_inference import PRIMITIVES, XbuildError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

KEYWORDS = frozenset({
    "nan", "inf", "true", "false", "HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames", "FileLocations",
    "StackFrames", "maximal", "replicated", "manual", "unreduced", "unknown", "last_tile_dim_replicate", "shard_as",
    "shard_like", "token", "opaque", *PRIMITIVES,
})  # fmt: skip


def is_identifier(name: str) -> bool:
    """Whether HLO text can hold a name: ASCII letters, digits and `_.-`, no digit first, not a keyword or a type.

    >>> is_identifier("add.3"), is_identifier("3rd"), is_identifier("f32")
    (True, False, False)
    """
    return _IDENTIFIER.fullmatch(name) is not None and name not in KEYWORDS


def check_name(name: Any, refusal: type[XbuildError] = XbuildError) -> None:
    """Raise the refusal (of kind invalid_name) unless HLO text can hold the name."""
    if not isinstance(name, str):
        shown = repr(name)
        what = shown if len(shown) <= 60 and "\n" not in shown else f"a {type(name).__name__}"
        raise refusal("invalid_name", f"expected a string as a name, got {what}")
    if name in KEYWORDS:
        message = f"{name!r} is not a valid name: it is an HLO keyword"
        raise refusal("invalid_name", message, [f"use {nearest(name)!r}, for example"])
    if not is_identifier(name):
        letters = "use ASCII letters, digits, `_`, `.` and `-`, and begin with a letter or `_`"
        raise refusal(
            "invalid_name", f"{name!r} is not a valid name: {letters}", [f"use {nearest(name)!r}, for example"]
        )


def nearest(name: str) -> str:
    """The closest name that HLO text can hold.

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


def public_names(namespace: Mapping[str, Any], *modules: str) -> list[str]:
    """The public names of a module, for its `__dir__`: `__all__`, else all names except modules not in `modules`.

    >>> import re
    >>> public_names({"re": re, "text": re, "compile": re.compile, "_cache": {}}, "text")
    ['compile', 'text']
    """
    if "__all__" in namespace:
        return sorted(namespace["__all__"])
    found = {name for name, it in namespace.items() if name in modules or not isinstance(it, ModuleType)}
    return sorted(name for name in found if not name.startswith("_"))
