"""What `xbuild explain WORD` tells: of ops, functions, types, kinds of error, attributes, concepts and their names."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import xbuild
from shape_inference import PrimitiveType

from ..core.op import OPS, Schema
from .concepts import concepts, plain, spellings
from .explanations import EXPLANATIONS
from .op_names import NAMES
from .readings import spelled

_SHOWN = 12
"""The greatest number of ops in a sentence."""


def told(word: str) -> list[str]:
    """The texts that a word has, of each thing that has it as a name; none where nothing has."""
    bare = word.removeprefix("xb.").removeprefix("ops.")
    found = [*_op(bare), *_kind(bare), *_concept(bare)]
    if bare.strip("_").replace("-", "_") not in OPS:
        found = [*_public(bare), *found] or [*_renamed(bare)]
    return found or [*_attribute(bare)]


def close_to(word: str) -> str | None:
    """The known word that is most alike, or None."""
    found = difflib.get_close_matches(word, [*OPS, *EXPLANATIONS, *spellings(), *dir(xbuild)], 1)
    return found[0] if found else None


def signature_of(schema: Schema) -> str:
    """The call of the strict op, with its operands and attributes."""
    return called(NAMES[schema.opcode].name, schema.declaration)


def called(name: str, function: Any) -> str:
    return f"{name}{inspect.signature(function)}".replace("'", "").replace("xbuild.", "xb.")


def first_sentence(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _op(word: str) -> Iterator[str]:
    opcode = word.strip("_").replace("-", "_")
    if opcode not in OPS:
        return
    names, schema = NAMES[opcode], OPS[opcode]
    also = f", XlaBuilder's {names.xla_builder}" if names.xla_builder else ""
    lines = [f"xb.ops.{signature_of(schema)}", f"{names.spelling} in HLO text{also}"]
    doc = inspect.cleandoc(schema.declaration.__doc__ or "")
    yield "\n".join([*lines, *_form(names.name), "", doc, "", spelled(opcode)])


def _form(name: str) -> Iterator[str]:
    """The signature of the comfortable form with its defaults, and what it adds."""
    form = getattr(xbuild, name)
    yield f"the comfortable form: {called(f'xb.{name}', form)}"
    paragraphs = (inspect.getdoc(form) or "").split("\n\n")
    if form is not getattr(xbuild.ops, name) and len(paragraphs) > 1:
        yield from (f"  {line}" for line in paragraphs[1].splitlines() if not line.startswith(("Raises", ">>>")))


def _kind(word: str) -> Iterator[str]:
    if word in EXPLANATIONS:
        yield f"{word}: {EXPLANATIONS[word]}"


def _concept(word: str) -> Iterator[str]:
    found = concepts().get(plain(word))
    if found is not None:
        yield found


def _public(word: str) -> Iterator[str]:
    """The documentation of another public name of xb, or of a function of xb.mesh or xb.tpu."""
    for prefix, owner in (("", xbuild), ("mesh.", xbuild.mesh), ("tpu.", xbuild.tpu)):
        name = word.removeprefix(prefix)
        thing = getattr(owner, name, None) if name.isidentifier() and not name.startswith("_") else None
        text = (
            None if thing is None or (inspect.ismodule(thing) and prefix) else _documented(f"xb.{prefix}{name}", thing)
        )
        if text is not None:
            yield text
            return


def _documented(name: str, thing: Any) -> str | None:
    if isinstance(thing, PrimitiveType):
        return f"{name}: the element type {thing}, of {thing.bits} bits ({thing.kind}); {name}[2, 3] is a shape"
    if inspect.ismodule(thing):
        return f"{name}: {inspect.getdoc(thing)}" if name.removeprefix("xb.") in _MODULES else None
    if callable(thing) and inspect.getdoc(thing):
        return f"{_call(name, thing)}\n\n{inspect.getdoc(thing)}"
    return None


_MODULES = ("mesh", "tpu", "ops", "engines")


def _call(name: str, thing: Any) -> str:
    try:
        return called(name, thing)
    except ValueError:  # a class without a signature
        return name


def _renamed(word: str) -> Iterator[str]:
    """A function of XlaBuilder by its name there: its counterparts in xb, and what these do."""
    from .migration import ROWS

    row = ROWS.get(f"ops.{word}")
    if row is None:
        return
    note = f" ({row.note})" if row.note else ""
    targets = [each for each in row.target.split(", ") if each != "-"]
    is_what = " and ".join(f"xb.{each}" for each in targets) or "not here"
    yield "\n".join([f"XlaBuilder's {word} is {is_what}{note}", *(text for each in targets for text in told(each))])


def _attribute(word: str) -> Iterator[str]:
    """The ops that have an attribute or an operand of this name."""
    by_attribute = [opcode for opcode, schema in sorted(OPS.items()) if word in schema.names]
    by_operand = [opcode for opcode, schema in sorted(OPS.items()) if word in schema.operands]
    for what, opcodes in (("an attribute", by_attribute), ("an operand", by_operand)):
        if opcodes:
            yield f"{word} is {what} of {_listed(opcodes)}; `xbuild explain {NAMES[opcodes[0]].spelling}` says more"


def _listed(opcodes: Iterable[str]) -> str:
    names = [NAMES[opcode].spelling for opcode in opcodes]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more ops" if more > 0 else "")
