"""Scopes of instructions, read from the op names of their metadata: the names that the author of a program gave.

JAX writes `jit(step)/transpose(jvp(layer))/attention/while/body/dot_general`. The author named `layer/attention`; the
rest says that it belongs to the derivative of a function that is jitted, in the body of a loop, and which primitive it
is. The scope is `backward/layer/attention`. What has no other scope has that of the function: `step`.

Sources: JAX, jax.named_scope (how transformations wrap the names of scopes); xla_data.proto, OpMetadata.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from attrs import Factory, define

from ..core.graph import Computation, Instruction, Module, ModuleGroup

_FUNCTIONS = ("jit", "pjit", "pmap", "xmap")
_TRANSFORMS = (*_FUNCTIONS, "jvp", "transpose", "vmap", "shard_map", "checkpoint", "remat", "custom_jvp", "custom_vjp")
_TRANSFORMED = re.compile(rf"(?:^|[/(])(?:{'|'.join(_TRANSFORMS)})\(")
_BACKWARD = re.compile(r"(?:^|[/(])transpose\(|(?:^|/)vjp\([^()]*\)$")
_DERIVED = re.compile(
    r"(?:vjp|jvp)\([^()]*\)"
)  # what xb.grad and xb.jvp write: of which instruction it is the derivative
_FUNCTION = re.compile(rf"(?:{'|'.join(_FUNCTIONS)})\(([^()/]*)\)/")
_WRAPPED = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_RECOMPUTED = "rematted_computation"
# What tracing writes around the body of an op that calls computations.
_STRUCTURE = re.compile(
    r"checkpoint|remat2?|closed_call|core_call|pjit|jit|shard_map|shmap_body|custom_[jv][vj]p_call(?:_jaxpr)?"
)
_PAIRS = re.compile(r"while/(?:body|cond)|cond/branch_\d+_fun|scan/body")
_DEEPEST = 20  # transformations of transformations


@define
class Scopes:
    """The scopes of a program's instructions, each op name read once.

    `is_traced`: names end in the name of a primitive. `has_backward`: some belong to the way back of a derivative, so
    that forward and backward are distinguished.
    """

    is_traced: bool
    has_backward: bool
    _known: dict[tuple[str, str, str], str] = Factory(dict)

    def of(self, instruction: Instruction) -> str:
        """The scope of an instruction, with parts between slashes; empty if nothing names one."""
        metadata = instruction.annotations.get("metadata", {})
        key = str(metadata.get("op_name", "")), str(metadata.get("op_type", "")), instruction.opcode
        if not key[0]:
            return ""
        if key not in self._known:
            self._known[key] = "/".join(self._read(*key))
        return self._known[key]

    def _read(self, name: str, kind: str, opcode: str) -> list[str]:
        parts = _split(name.partition(";")[0])  # of an instruction that merges several, the first
        is_op = parts[-1].replace("-", "_") == opcode or (kind and parts[-1].startswith(kind))
        if _DERIVED.fullmatch(parts[-1]) or is_op or (self.is_traced and not _WRAPPED.fullmatch(parts[-1])):
            parts.pop()
        found = [part for part, _ in itertools.groupby(_named(parts))] if self.is_traced else parts
        if self.has_backward and _BACKWARD.search(name):
            return ["backward", *found]
        if self.has_backward and self.is_traced and "jvp(" in name:
            return ["forward", *found]
        function = _FUNCTION.match(name)
        return found or ([function[1]] if function and self.is_traced else [])


def scopes_of(program: Module | ModuleGroup | Computation) -> Scopes:
    """The scopes of a program.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo('''ENTRY e { x = f32[2] parameter(0)
    ...   y = f32[2] tanh(x), metadata={op_name="jit(f)/jvp(layer)/attention/tanh"}
    ...   ROOT z = f32[2] negate(y), metadata={op_name="jit(f)/transpose(jvp(layer))/attention/neg"} }''')
    >>> scopes = scopes_of(module)
    >>> [scopes.of(each) for each in module.entry.instructions]
    ['', 'forward/layer/attention', 'backward/layer/attention']
    """
    names = {*_names(program)}
    return Scopes(any(map(_is_traced, names)), any(map(_BACKWARD.search, names)))


def _is_traced(name: str) -> bool:
    """Whether the name of a transformation opens a bracket that is closed before a slash, as in `jit(f)/add`."""
    found = _TRANSFORMED.search(name)
    return found is not None and name.rfind(")/") >= found.end()


def _names(program: Module | ModuleGroup | Computation) -> Iterator[str]:
    for computation in _computations(program):
        for instruction in computation.instructions:
            if instruction.annotations:
                yield str(instruction.annotations.get("metadata", {}).get("op_name", ""))


def _computations(program: Module | ModuleGroup | Computation) -> Iterable[Computation]:
    if isinstance(program, ModuleGroup):
        return dict.fromkeys(computation for module in program.modules.values() for computation in module.computations)
    return program.computations if isinstance(program, Module) else program.reachable()


def _split(name: str) -> list[str]:
    """The parts of a name between slashes, not those inside brackets."""
    parts, depth = [""], 0
    for letter in name:
        depth += (letter in "([") - (letter in ")]")
        if letter == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _named(parts: list[str]) -> Iterator[str]:
    """The parts that an author named, without those that tracing writes around the body of an op."""
    plain, number = [*_unwrapped(parts)], 0
    while number < len(plain):
        part = plain[number]
        is_pair = _PAIRS.fullmatch("/".join(plain[number : number + 2])) is not None
        if part == _RECOMPUTED:
            yield "recomputed"
        elif part and not is_pair and not _STRUCTURE.fullmatch(part):
            yield part
        number += 1 + is_pair


def _unwrapped(parts: list[str], depth: int = 0) -> Iterator[str]:
    """The parts without the transformations around them, and without the function of the whole program."""
    for number, part in enumerate(parts):
        wrapped = _WRAPPED.fullmatch(part)
        if wrapped is None or wrapped[1] not in _TRANSFORMS or depth > _DEEPEST:
            yield part
        # Functions of a library begin with an underscore: `jit(_where)`.
        elif wrapped[1] not in _FUNCTIONS or not (number + depth == 0 or wrapped[2] == "main" or wrapped[2][:1] == "_"):
            yield from _unwrapped(_split(wrapped[2]), depth + 1)
