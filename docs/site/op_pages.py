"""The reference of ops: a page for each opcode, from its declaration, its names elsewhere and its cases."""

from __future__ import annotations

import inspect
from itertools import groupby

import shape_inference
from xbuild.core.op import OPS, Schema
from xbuild.reference import readings
from xbuild.reference.op_names import NAMES
from xbuild.reference.words import explain_word

from .markdown import document, escaped, fenced, table
from .signatures import called
from .staging import Stage


def make(stage: Stage) -> None:
    """Stage a page for each op, and the index by family."""
    kinds = {kind: "../kinds.md#" + kind.replace("_", "-") for kind in shape_inference.KINDS}
    for opcode, schema in OPS.items():
        stage.leaf(f"ops/{opcode}", _page(schema, kinds))
    stage.page("ops/index", _index())


def family(schema: Schema) -> str:
    return schema.declaration.__module__.rpartition(".")[2]


def _index() -> str:
    parts = [f"# Ops\n\nThe {len(OPS)} opcodes of HLO, by family. Each page is made from the declaration of the op."]
    ordered = sorted(OPS.values(), key=lambda schema: (family(schema), schema.opcode))
    for name, schemas in groupby(ordered, key=family):
        rows = ((f"[`{each.opcode}`]({each.opcode}.md)", _sentence(each)) for each in schemas)
        parts += [f"## {name.replace('_', ' ').capitalize()}", table(("op", "what it is"), rows)]
    return "\n\n".join(parts)


def _sentence(schema: Schema) -> str:
    return escaped(" ".join(inspect.cleandoc(schema.declaration.__doc__ or "").partition("\n\n")[0].split()))


def _page(schema: Schema, kinds: dict[str, str]) -> str:
    """What `xbuild explain OP` tells, as a page."""
    names = NAMES[schema.opcode]
    rows = [
        ("HLO text", f"`{names.spelling}`"),
        ("strict op", f"`xb.ops.{names.name}`"),
        ("convenience form", f"[`xb.{names.name}`](../api/xb/{names.name}.md)"),
        *[("XlaBuilder", f"`{names.xla_builder}`")] * (names.xla_builder not in ("", "-")),
        ("defined by", escaped(names.heading)),
    ]
    doc = inspect.cleandoc(schema.declaration.__doc__ or "")
    parts = [f"# {escaped(schema.opcode)}", table(("", "name"), rows)]
    parts += [
        fenced(called(f"xb.ops.{names.name}", schema.declaration), "python"),
        document(doc, kinds),
        *_more(schema.opcode),
    ]
    return "\n\n".join(parts)


def _readings(opcode: str) -> list[str]:
    """Names in StableHLO and JAX, the derivative, the cost, and the index picture of the example."""
    rows_table = table(("", "other readings"), ((word, escaped(text)) for word, text in readings.rows(opcode)))
    drawn = readings.picture(opcode)
    return [rows_table, *([fenced(drawn)] if drawn else [])]


def _more(opcode: str) -> list[str]:
    """What `xbuild explain` tells of the word beside the op, such as a concept of that name."""
    others = [text for text in explain_word(opcode)[1:] if not text.startswith(("xb.", "xb "))]
    return ["## As a term in reports", *[fenced(text) for text in others]] if others else []
