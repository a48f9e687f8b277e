"""Names and strings of StableHLO text, for reading and printing: element types, ops, enumerations, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shape_inference import COMPONENT, PRIMITIVES, PrimitiveType
from shape_inference.escaping import mlir_string

from ..core.op import OPS

# ----------------------------------------------------------------------------
# Names of element types in MLIR.


def _type_name(dtype: PrimitiveType) -> str:
    """MLIR's name of an element type: integers by sign and width, floats with their format in capitals."""
    if dtype.kind == "pred":
        return "i1"
    if dtype.kind == "complex":
        return f"complex<{COMPONENT[dtype]}>"
    if dtype.is_integer:
        return f"{'i' if dtype.kind == 'signed' else 'ui'}{dtype.bits}"
    return f"f{dtype.name[1:].upper()}" if dtype.bits < 16 else dtype.name


TYPE_NAMES = {dtype: _type_name(dtype) for name, dtype in PRIMITIVES.items() if name not in ("s1", "u1")}
"""The name of each element type in MLIR; s1 and u1 have none, since i1 is pred.

>>> import xbuild as xb
>>> TYPE_NAMES[xb.u8], TYPE_NAMES[xb.f8e4m3fn], TYPE_NAMES[xb.c64], TYPE_NAMES[xb.pred]
('ui8', 'f8E4M3FN', 'complex<f32>', 'i1')
"""

TYPES_BY_NAME = {name: dtype for dtype, name in TYPE_NAMES.items()}
"""The element type of each name in MLIR."""


# ----------------------------------------------------------------------------
# Names of ops in the dialects stablehlo and chlo.

COMPOSITE_NAME = "composite.name"
"""The frontend attribute with the name of a composite, beside those of its attributes and version."""

UNPREFIXED = "mlir."
"""The prefix of frontend attributes that hold MLIR attributes without a dialect prefix, as text."""

_OTHER = {
    "acos": "chlo.acos",
    "acosh": "chlo.acosh",
    "asin": "chlo.asin",
    "asinh": "chlo.asinh",
    "atanh": "chlo.atanh",
    "broadcast": "stablehlo.broadcast_in_dim",
    "call": "func.call",
    "conditional": "stablehlo.case",
    "cosh": "chlo.cosh",
    "dot": "stablehlo.dot_general",
    "erf": "chlo.erf",
    "mulhi": "chlo.mulhi",
    "opt_barrier": "stablehlo.optimization_barrier",
    "ragged_dot": "chlo.ragged_dot",
    "scan": "chlo.scan",
    "sinh": "chlo.sinh",
    "topk": "chlo.top_k",
}

UNNAMED = frozenset((
    "add_dependency", "all_gather_done", "all_gather_start", "all_reduce_done", "all_reduce_start", "async_update",
    "bitcast", "collective_permute_done", "collective_permute_start", "copy", "copy_done", "copy_start", "domain",
    "fusion", "parameter", "ragged_all_to_all", "recv_done", "rng_get_and_update_state", "scaled_dot", "send_done",
    "stochastic_convert",
))  # fmt: skip
"""Opcodes without a single corresponding op of StableHLO or CHLO."""

OP_NAMES = {opcode: _OTHER.get(opcode, f"stablehlo.{opcode}") for opcode in OPS if opcode not in UNNAMED}
"""The MLIR op that an opcode becomes.

>>> OP_NAMES["add"], OP_NAMES["broadcast"], OP_NAMES["erf"]
('stablehlo.add', 'stablehlo.broadcast_in_dim', 'chlo.erf')
"""

HLO_OPCODE = "mhlo.opcode"
"""The attribute that marks an op of CHLO to be read back as this HLO op."""

EXPANDED = frozenset(("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"))
"""Opcodes whose CHLO op is read as a formula, as in XLA, unless it has the attribute `HLO_OPCODE`."""

OPCODES = {name: opcode for opcode, name in OP_NAMES.items()}
"""The opcode of each of these MLIR ops."""


# ----------------------------------------------------------------------------
# Enumerations whose words differ from those of HLO


def _invert(words: Mapping[str, str]) -> dict[str, str]:
    return {other: word for word, other in words.items()}


PRECISIONS = {"default": "DEFAULT", "high": "HIGH", "highest": "HIGHEST"}
PRECISIONS_READ = _invert(PRECISIONS)

ALGORITHMS = {"rng_default": "DEFAULT", "rng_three_fry": "THREE_FRY", "rng_philox": "PHILOX"}
ALGORITHMS_READ = _invert(ALGORITHMS)

DISTRIBUTIONS = {"rng_uniform": "UNIFORM", "rng_normal": "NORMAL"}
DISTRIBUTIONS_READ = _invert(DISTRIBUTIONS)

API_VERSIONS = {
    "API_VERSION_UNSPECIFIED": 0,
    "API_VERSION_ORIGINAL": 1,
    "API_VERSION_STATUS_RETURNING": 2,
    "API_VERSION_STATUS_RETURNING_UNIFIED": 3,
    "API_VERSION_TYPED_FFI": 4,
}
"""The api_version of a custom_call, a number in StableHLO."""
API_VERSIONS_READ = {number: word for word, number in API_VERSIONS.items()}

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""The types of channel handles of send and recv."""

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
COMPARE_TYPES = ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
"""Enumerations with the same words in HLO and StableHLO."""


# ----------------------------------------------------------------------------
# Lists, dictionaries and names for the printer

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


def flag(value: Any) -> str:
    return "true" if value else "false"


def listed(values: Iterable[Any]) -> str:
    """Values in brackets, as pretty forms write dimensions."""
    return f"[{', '.join(map(str, values))}]"


def result_types_text(types: Sequence[str]) -> str:
    """The types of results, in parentheses unless there is one."""
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def fields(entries: Mapping[str, str | None]) -> str:
    """Named fields of an attribute; a field without a value is only its name.

    >>> fields({"dimension": "0 : i64", "use_global_device_ids": None})
    'dimension = 0 : i64, use_global_device_ids'
    """
    return ", ".join([key if value is None else f"{key} = {value}" for key, value in entries.items()])


def generic(
    name: str, operands: Iterable[str], properties: Mapping[str, str | None] | None = None, *regions: str
) -> str:
    """An op in MLIR's generic form, up to the dictionary of its annotations.

    >>> generic("stablehlo.sort", ["%x"], {"dimension": "0 : i64"})
    '"stablehlo.sort"(%x) <{dimension = 0 : i64}>'
    """
    stated = f" <{{{fields(properties)}}}>" if properties is not None else ""
    inside = f" ({', '.join(regions)})" if regions else ""
    return f'"{name}"({", ".join(operands)}){stated}{inside}'


def dictionary(entries: Iterable[tuple[str, str]]) -> str:
    """A dictionary of attributes; names that are not identifiers are quoted."""
    return f"{{{', '.join([f'{key_text(key)} = {value}' for key, value in entries])}}}"


def key_text(key: str) -> str:
    return key if _BARE.fullmatch(key) else mlir_string(key)


def symbol(name: str) -> str:
    """The name of a module, a function or a target; a name that is not an identifier is quoted.

    >>> symbol("main"), symbol("all-reduce")
    ('@main', '@"all-reduce"')
    """
    return f"@{key_text(name)}"


# ----------------------------------------------------------------------------
# Strings of MLIR text

_ESCAPE = re.compile(r"((?:\\[0-9a-fA-F]{2})++)|\\(.)", re.DOTALL)
_KNOWN = {"n": "\n", "t": "\t"}


def unescape(text: str) -> str:
    r"""The characters of a string between its quotes: `\n`, `\t`, `\\`, `\"`, and bytes of UTF-8 as two hex digits.

    >>> unescape(r'a\22b\\c\C3\A4')
    'a"b\\cä'
    """
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return _KNOWN.get(match[2], match[2])
    return bytes.fromhex(match[1].replace("\\", "")).decode("utf-8", errors="surrogateescape")
