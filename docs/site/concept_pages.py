"""Pages of words: the concepts of `xbuild explain`, by subject, and the kinds of error."""

from __future__ import annotations

import re

import shape_inference
from xbuild.reference import concepts
from xbuild.reference.explanations import EXPLANATIONS

from .markdown import document, escaped, tree
from .staging import ROOT, Stage

_DOCUMENT = re.compile(r"docs/([a-z\\_]+)\.md")


def make(stage: Stage) -> None:
    """Stage a page for each subject, and one of all kinds of error."""
    files = sorted((ROOT / "xbuild" / "reference" / "concepts").glob("*.txt"))
    for path in files:
        stage.page(f"concepts/{path.stem}", _subject(path.stem, path.read_text(encoding="utf-8")))
    names = [path.stem for path in files]
    head = "# Concepts\n\nThe words of reports and documents, as `xbuild explain WORD` tells them."
    stage.page("concepts/index", f"{head}\n\n{tree(names, depth=2)}")
    stage.page("kinds", _kinds())


def _subject(name: str, text: str) -> str:
    parts = [f"# {name.capitalize()}"]
    for words, entry in concepts.read(text):
        title, *others = words
        body = "\n".join(entry.splitlines()[2:])
        also = f"*Also: {', '.join(map(escaped, others))}.*" if others else ""
        parts += [f"## {escaped(title)}", _DOCUMENT.sub(r"[\1](../\1.md)", document(body)), also]
    return "\n\n".join(filter(None, parts))


def _kinds() -> str:
    head = "# Kinds of error\n\nA refusal has a kind, `error.kind`; `xbuild explain KIND` tells what this page tells."
    entries = (f"## {escaped(kind)}\n\n{escaped(EXPLANATIONS[kind])}" for kind in sorted(shape_inference.KINDS))
    return "\n\n".join([head, *entries])
