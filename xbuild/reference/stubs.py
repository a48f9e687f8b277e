"""Typing stubs of the strict ops, made from their schemas; running the module writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from shape_inference import AnyShape, Dims, PrimitiveType, Shape
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window

from ..core import attributes
from ..core.attributes import Aliases, Array, Called, Padding, Region, Regions, ReplicaGroups, Shapes, SourceTargetPairs
from ..core.builder import Builder, Value, Values
from ..core.op import OPS, Schema

WIDTH = 120
FUNCTION = "Computation | Callable[..., object]"

# The type that a parameter accepts for an attribute type, where it accepts more than the type itself.
SPELLINGS: dict[Any, str] = {
    Dims: "Sequence[int]",
    ReplicaGroups: "Sequence[Sequence[int]] | None",
    SourceTargetPairs: "Sequence[Sequence[int]] | Mapping[int, int]",
    Padding: "Sequence[PaddingDimension | Sequence[int]]",
    PrimitiveType: "PrimitiveType | DTypeLike",
    PrimitiveType | None: "PrimitiveType | DTypeLike | None",
    Shape: "Shape | PrimitiveType",
    AnyShape: "AnyShape | PrimitiveType",
    Shapes: "Sequence[AnyShape | PrimitiveType]",
    Array: "ArrayLike",
    Window: "str | Sequence[WindowDimension | Mapping[str, int]]",
    ConvolutionDimensionNumbers: "str | ConvolutionDimensionNumbers | Mapping[str, object]",
    Aliases: "Sequence[tuple[Sequence[int], int, Sequence[int]]]",
    Called: "Sequence[Computation]",
    Region: FUNCTION,
    Regions: f"Sequence[{FUNCTION}]",
    Value: "Value",
    Value | None: "Value | None",
    Values: "Sequence[Value] | Value",
    Builder: "Builder",
    tuple[str, ...]: "Sequence[str]",
    tuple[bool, ...]: "Sequence[bool]",
}

HEADER = '"""Made by `make stubs` from the declarations; the words stand in the source beside it."""\n\n'


def _is_record(thing: Any) -> bool:
    return isinstance(thing, type) and thing.__module__ == attributes.__name__


# The names in the spellings by the module that defines them; a dict for each section of imports.
ORIGINS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"collections.abc": ("Callable", "Mapping", "Sequence"), "typing": ("Literal",)},
    {"numpy.typing": ("ArrayLike", "DTypeLike")},
    {
        "shape_inference": ("AnyShape", "PrimitiveType", "Shape"),
        "shape_inference.convolutions": ("ConvolutionDimensionNumbers",),
        "shape_inference.windows": ("WindowDimension",),
    },
    {
        "..core.attributes": tuple(sorted(n for n, each in vars(attributes).items() if _is_record(each))),
        "..core.builder": ("Builder", "Value"),
        "..core.graph": ("Computation",),
    },
)


def main() -> None:
    for path, text in stubs().items():
        path.write_text(text)


def stubs() -> dict[Path, str]:
    """The text of each stub file, by its path."""
    by_module = sorted(OPS.values(), key=_module)
    return {_path(module): _stub("".join(map(_function, schemas))) for module, schemas in groupby(by_module, _module)}


def _stub(functions: str) -> str:
    words = set(re.findall(r"\w+", functions))
    sections = ("".join(_imports(section, words)) for section in ORIGINS)
    return HEADER + "\n".join(filter(None, [*sections, functions]))


def _imports(section: dict[str, tuple[str, ...]], words: set[str]) -> Iterator[str]:
    for module, names in section.items():
        if used := [name for name in names if name in words]:
            yield f"from {module} import {', '.join(used)}\n"


def _module(schema: Schema) -> str:
    return str(schema.declaration.__module__)


def _path(module: str) -> Path:
    return (Path(__file__).parents[2] / module.replace(".", "/")).with_suffix(".pyi")


def _function(schema: Schema) -> str:
    parameters = list(_parameters(schema))
    name = schema.declaration.__name__
    line = f"def {name}({', '.join(parameters)}) -> Value: ...\n"
    if len(line) <= WIDTH + 1:
        return line
    rows = "".join(f"    {_wrapped(each)},\n" for each in parameters)
    return f"def {name}(\n{rows}) -> Value: ...\n"


def _wrapped(parameter: str) -> str:
    """The parameter; if it is too long, with each word of its Literal on a line of its own."""
    if len(parameter) + 5 <= WIDTH:
        return parameter
    return re.sub(
        r"Literal\[(.*?)\]",
        lambda m: f"Literal[\n        {m[1].replace(', ', f',{chr(10)}        ')},\n    ]",
        parameter,
    )


def _parameters(schema: Schema) -> Iterator[str]:
    """The parameters of a stub: operands by position, attributes by keyword, then `name` and `builder`."""
    declared = list(inspect.signature(schema.declaration, eval_str=True).parameters.values())
    operands = [p for p in declared if p.kind is not p.KEYWORD_ONLY]
    yield from map(_parameter, operands)
    if operands and not schema.takes_builder:
        yield "/"
    yield "*"
    yield from (_parameter(p) for p in declared if p.kind is p.KEYWORD_ONLY)
    yield "name: str | None = None"
    if all(kind is Values for kind in schema.kinds) and not schema.takes_builder:
        yield "builder: Builder | None = None"


def _parameter(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f" = {_literal(parameter.default)}"
    return f"{parameter.name}: {spelling(parameter.annotation)}{default}"


def _literal(value: Any) -> str:
    """A default as source; `...` for a default that is no literal."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value) if value is None or isinstance(value, bool | int | float) or value == () else "..."


def spelling(annotation: Any) -> str:
    """The type that a parameter of this annotation accepts, as source."""
    if annotation in SPELLINGS:
        return SPELLINGS[annotation]
    if annotation is None or annotation is type(None):
        return "None"
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(_literal, get_args(annotation)))}]"
    if get_origin(annotation) is None:
        return str(annotation.__name__)
    return " | ".join(map(spelling, get_args(annotation)))


if __name__ == "__main__":
    main()
