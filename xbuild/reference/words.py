"""What `xbuild explain WORD` prints: the texts about ops, functions, types, kinds of error, attributes and concepts."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import xbuild
from shape_inference import PrimitiveType

from ..core.op import OPS, Schema
from ..core.report_text import join_words
from .concepts import concepts, plain, spellings
from .explanations import EXPLANATIONS
from .op_names import NAMES
from .readings import spelled

_MOST_OPS = 12
"""The maximum number of ops in a sentence."""


def explain_word(word: str) -> list[str]:
    """The explanations of everything that has this word as a name; empty if nothing has."""
    bare = word.removeprefix("xb.").removeprefix("ops.")
    texts = [*_explain_op(bare), *_explain_kind(bare), *_explain_concept(bare)]
    if bare.strip("_").replace("-", "_") not in OPS:
        texts = [*_explain_public_name(bare), *texts] or [*_explain_xla_builder_name(bare)]
    return texts or [*_explain_attribute(bare), *_explain_rule(bare)]


def closest_word(word: str) -> str | None:
    """The known word that is most similar, or None."""
    from ..linting import RULES

    close = difflib.get_close_matches(word, [*OPS, *EXPLANATIONS, *spellings(), *dir(xbuild), *RULES], 1)
    return close[0] if close else None


def signature_of(schema: Schema) -> str:
    """The signature of the strict op, with its operands and attributes."""
    return _signature(NAMES[schema.opcode].name, schema.declaration)


def _signature(name: str, function: Any) -> str:
    return f"{name}{inspect.signature(function)}".replace("'", "").replace("xbuild.", "xb.")


def first_sentence(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _explain_op(word: str) -> Iterator[str]:
    opcode = word.strip("_").replace("-", "_")
    if opcode not in OPS:
        return
    names, schema = NAMES[opcode], OPS[opcode]
    also = f", XlaBuilder's {names.xla_builder}" if names.xla_builder else ""
    lines = [f"xb.ops.{signature_of(schema)}", f"{names.spelling} in HLO text{also}"]
    doc = inspect.cleandoc(schema.declaration.__doc__ or "")
    yield "\n".join([*lines, *_convenience_form(names.name), "", doc, "", spelled(opcode)])


def _convenience_form(name: str) -> Iterator[str]:
    """The signature of the convenience form with its defaults, and what it adds."""
    form = getattr(xbuild, name)
    yield f"the convenience form: {_signature(f'xb.{name}', form)}"
    paragraphs = (inspect.getdoc(form) or "").split("\n\n")
    if form is not getattr(xbuild.ops, name) and len(paragraphs) > 1:
        yield from (f"  {line}" for line in paragraphs[1].splitlines() if not line.startswith(("Raises", ">>>")))


def _explain_kind(word: str) -> Iterator[str]:
    if word in EXPLANATIONS:
        yield f"{word}: {EXPLANATIONS[word]}"


def _explain_concept(word: str) -> Iterator[str]:
    text = concepts().get(plain(word))
    if text is not None:
        yield text


def _explain_public_name(word: str) -> Iterator[str]:
    """The documentation of another public name of xb, or of a function of xb.mesh or xb.tpu."""
    for prefix, owner in (("", xbuild), ("mesh.", xbuild.mesh), ("tpu.", xbuild.tpu)):
        name = word.removeprefix(prefix)
        thing = getattr(owner, name, None) if name.isidentifier() and not name.startswith("_") else None
        text = (
            None
            if thing is None or (inspect.ismodule(thing) and prefix)
            else _documentation(f"xb.{prefix}{name}", thing)
        )
        if text is not None:
            yield text
            return


def _documentation(name: str, thing: Any) -> str | None:
    if isinstance(thing, PrimitiveType):
        return f"{name}: the element type {thing}, with {thing.bits} bits ({thing.kind}); {name}[2, 3] is a shape"
    if inspect.ismodule(thing):
        return f"{name}: {inspect.getdoc(thing)}" if name.removeprefix("xb.") in _MODULES else None
    if callable(thing) and inspect.getdoc(thing):
        return f"{_signature_or_name(name, thing)}\n\n{inspect.getdoc(thing)}"
    return None


_MODULES = ("mesh", "tpu", "ops", "engines")


def _signature_or_name(name: str, thing: Any) -> str:
    try:
        return _signature(name, thing)
    except ValueError:  # a class without a signature
        return name


def _explain_xla_builder_name(word: str) -> Iterator[str]:
    """A function of XlaBuilder: its counterparts in xb, and what these do."""
    from .migration import ROWS

    row = ROWS.get(f"ops.{word}")
    if row is None:
        return
    note = f" ({row.note})" if row.note else ""
    targets = [target for target in row.target.split(", ") if target != "-"]
    counterpart = join_words(f"xb.{target}" for target in targets)
    first = (
        f"XlaBuilder's {word} is {counterpart}{note}" if counterpart else f"XlaBuilder's {word} is not provided{note}"
    )
    yield "\n".join([first, *(text for target in targets for text in explain_word(target))])


def _explain_attribute(word: str) -> Iterator[str]:
    """The ops that have an attribute or an operand of this name."""
    by_attribute = [opcode for opcode, schema in sorted(OPS.items()) if word in schema.names]
    by_operand = [opcode for opcode, schema in sorted(OPS.items()) if word in schema.operands]
    for what, opcodes in (("an attribute", by_attribute), ("an operand", by_operand)):
        if opcodes:
            yield f"{word} is {what} of {_op_list(opcodes)}; see `xbuild explain {NAMES[opcodes[0]].spelling}`"


def _explain_rule(word: str) -> Iterator[str]:
    """A rule of `xbuild lint`."""
    from ..linting.rules import explain_rule

    text = explain_rule(word)
    if text is not None:
        yield text


def _op_list(opcodes: Iterable[str]) -> str:
    names = [NAMES[opcode].spelling for opcode in opcodes]
    more = len(names) - _MOST_OPS
    return ", ".join(names[:_MOST_OPS]) + (f" and {more} more ops" if more > 0 else "")
