"""The reference of the Python API: a page for each public name, from its signature and its docstring."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from attrs import frozen

import shape_inference
import xbuild as xb
from shape_inference import PrimitiveType
from xbuild.core.op import OPS

from .markdown import document, escaped, fenced, table, tree
from .signatures import called
from .staging import Stage

OWNERS: dict[str, Any] = {
    "xb": xb, "xb.mesh": xb.mesh, "xb.shard": xb.shard, "xb.tpu": xb.tpu,
    "xb.engines": xb.engines, "xb.auto": xb.auto, "shape_inference": shape_inference,
}  # fmt: skip
_SECTIONS = {
    "xb": "Programs, ops, checks, runs and pictures: what `import xbuild as xb` gives.",
    "xb.mesh": "Collectives by the names of the axes of a mesh.",
    "xb.shard": "Shardings over a mesh: propagate, partition, plan, explain; the ops of MLIR's shard dialect.",
    "xb.tpu": "Replicated computations in the manner of `tf.compat.v1.tpu`.",
    "xb.engines": "The same program on real XLA and on StableHLO's reference interpreter.",
    "xb.auto": "Which parts of a program jaxlib compiles for the engine `auto`.",
    "shape_inference": "Shapes, element types, and the shape rule of each op.",
}


_GROUPS = (
    "Ops", "Functions", "Types", "Element types", "Errors and warnings", "Modules", "Tables and other values",
)  # fmt: skip


@frozen
class Entry:
    """A public name: the module that gives it, and what it is."""

    owner: str
    name: str
    thing: Any

    @property
    def page(self) -> str:
        return f"api/{self.owner}/{self.name}"

    @property
    def path(self) -> str:
        return f"{self.owner}.{self.name}"


def entries() -> Iterator[Entry]:
    """All public names, by the module that gives them."""
    for owner, module in OWNERS.items():
        for name in _names(module):
            yield Entry(owner, name, getattr(module, name))


def _names(module: ModuleType) -> list[str]:
    """The names that a module gives."""
    if module is xb:
        return sorted(xb.__all__, key=str.lower)
    stated = getattr(module, "__all__", None)
    given = stated or [n for n, thing in vars(module).items() if n[0] != "_" and not inspect.ismodule(thing)]
    return sorted((name for name in given if _is_of_ours(getattr(module, name))), key=str.lower)


def _is_of_ours(thing: Any) -> bool:
    home = getattr(thing, "__module__", "xbuild") or "xbuild"
    return home.partition(".")[0] in ("xbuild", "interpreter", "shape_inference")


def make(stage: Stage) -> None:
    """Stage a page for each public name, and an index of each module."""
    kinds = {kind: "../../kinds.md#" + kind.replace("_", "-") for kind in shape_inference.KINDS}
    found = [*entries()]
    for entry in found:
        stage.leaf(entry.page, _page(entry, kinds))
    for owner, sentence in _SECTIONS.items():
        stage.page(f"api/{owner}", _index(owner, sentence, [each for each in found if each.owner == owner]))
    stage.page("api/index", _home())


def _home() -> str:
    rows = ((f"[`{owner}`]({owner}.md)", escaped(sentence)) for owner, sentence in _SECTIONS.items())
    head = (
        "# API reference\n\nEvery public name has a page, made from its signature and docstring; its example is a test."
    )
    return "\n\n".join([head, table(("module", "what it gives"), rows), tree(_SECTIONS, hidden=True)])


def _index(owner: str, sentence: str, found: list[Entry]) -> str:
    parts = [f"# {owner}", sentence]
    for title, group in _grouped(found).items():
        rows = ((f"[`{each.name}`]({owner}/{each.name}.md)", _sentence(each.thing)) for each in group)
        parts += [f"## {title}", table(("name", "what it is"), rows)]
    return "\n\n".join(parts)


def _grouped(found: list[Entry]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for each in found:
        groups.setdefault(_group(each), []).append(each)
    return {title: groups[title] for title in _GROUPS if title in groups}


def _group(entry: Entry) -> str:
    thing = entry.thing
    if isinstance(thing, PrimitiveType):
        return "Element types"
    if inspect.ismodule(thing):
        return "Modules"
    if inspect.isclass(thing):
        return "Errors and warnings" if issubclass(thing, Exception) else "Types"
    if callable(thing):
        return "Ops" if entry.owner == "xb" and entry.name.strip("_") in OPS | {"and_": 0} else "Functions"
    return "Tables and other values"


def _sentence(thing: Any) -> str:
    if isinstance(thing, PrimitiveType):
        return f"{thing.bits} bits, {thing.kind}"
    text = _doc(thing).partition("\n\n")[0]
    return escaped(" ".join(text.split()))


def _doc(thing: Any) -> str:
    """The docstring of a thing, or of its type's instances where it is a value without one."""
    if inspect.isclass(thing) or callable(thing) or inspect.ismodule(thing):
        return inspect.getdoc(thing) or ""
    return ""


def _page(entry: Entry, kinds: dict[str, str]) -> str:
    title = f"# {escaped(entry.path)}"
    thing = entry.thing
    if isinstance(thing, PrimitiveType):
        return (
            f"{title}\n\nThe element type `{thing}`: {thing.bits} bits, {thing.kind}. `{entry.path}[2, 3]` is a shape."
        )
    parts = [title]
    if callable(thing) and not inspect.ismodule(thing):
        parts.append(fenced(called(entry.path, thing), "python"))
    parts.append(document(_doc(thing) or _value(thing), kinds))
    if entry.owner == "xb" and entry.name.strip("_") in OPS:
        parts.append(f"The op: [`{entry.name.strip('_')}`](../../ops/{entry.name.strip('_')}.md).")
    if inspect.isclass(thing):
        parts += [*_members(thing, kinds)]
    return "\n\n".join(filter(None, parts))


def _value(thing: Any) -> str:
    """What a value without a docstring is."""
    sizes = f" of {len(thing)} entries" if isinstance(thing, dict | frozenset | set | tuple) else ""
    return f"A value of type `{type(thing).__name__}`{sizes}."


def _members(thing: type, kinds: dict[str, str]) -> Iterator[str]:
    """The public methods and properties of a class that have a docstring of their own."""
    if issubclass(thing, enum.Enum):
        return
    for name, member in sorted(vars(thing).items()):
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        text = inspect.getdoc(function) if inspect.isfunction(function) else None
        if name.startswith("_") or not text:
            continue
        is_method = function is member or isinstance(member, staticmethod | classmethod)
        head = called(name, function) if is_method else name
        yield f"## {escaped(name)}\n\n{fenced(head, 'python')}\n\n{document(text, kinds)}"
