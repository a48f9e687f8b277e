"""What real XLA says of a program, in a sentence that names the instruction, with XLA's own words behind it."""

from __future__ import annotations

import re

from xbuild.core.graph import Instruction, Module

_STATUS = {
    "UNIMPLEMENTED": "this build of XLA does not implement what the program asks for",
    "INVALID_ARGUMENT": "XLA finds the program, or an argument of it, wrong",
    "INTERNAL": "a check inside of XLA failed while it compiled or ran the program",
    "NOT_FOUND": "XLA does not find something that the program names, such as the function of a custom call",
    "FAILED_PRECONDITION": "XLA is not in a state in which it could run the program",
    "RESOURCE_EXHAUSTED": "XLA has not enough memory",
    "OUT_OF_RANGE": "an index or a size in the program lies outside of what XLA allows",
    "DEADLINE_EXCEEDED": "XLA waited too long, such as for a device that did not come to a collective",
    "ABORTED": "XLA gave up the run",
    "CANCELLED": "XLA gave up the run",
    "UNAVAILABLE": "a device or a process that XLA needs cannot be reached",
    "UNKNOWN": "XLA gives no reason that it has a word for",
}
"""The status codes of XLA (absl/status/status.h), in words."""

_CODE = re.compile(rf"\b({'|'.join(_STATUS)})\b:?\s*")
_CLASS = re.compile(r"^(?:[\w.]*(?:Error|Exception)): ")
_CONTEXT = re.compile(r"during context \[[^\]]*\]:?\s*|\s*\(external/[^)]*\)")
_MOST = 600
"""The greatest number of characters of XLA's own words."""


def in_words(message: str, module: Module) -> str:
    """A message of XLA as a sentence, the instruction that it names with the user's line, and XLA's own words."""
    code = _CODE.search(message)
    sentence = _STATUS[code[1]] if code else "XLA raised an error that has no status"
    named = _named(message, module)
    where = f"; it names %{named.name} ({_place(named)})" if named is not None else ""
    own = _CONTEXT.sub("", _CODE.sub("", _CLASS.sub("", message), count=1)).strip()
    own = f"{own[:_MOST]}..." if len(own) > _MOST else own
    return f"{sentence}{where}\n  XLA says: {own}"


def _named(message: str, module: Module) -> Instruction | None:
    """The first instruction of the module whose name the message has."""
    words = {word.rstrip(".") for word in re.findall(r"[\w.-]+", message)}
    every = [each for computation in reversed(module.computations) for each in computation.instructions]
    return next((each for each in every if each.name in words and _is_distinct(each)), None)


def _is_distinct(instruction: Instruction) -> bool:
    """Whether a name is no word that a message has anyway, such as `add` or `x`."""
    return len(instruction.name) > 1 and any(sign in instruction.name for sign in "._0123456789")


def _place(instruction: Instruction) -> str:
    spelling = instruction.opcode.replace("_", "-")
    return f"{spelling}, {instruction.source}" if instruction.source else spelling
