"""Windows that slide over arrays: their attributes, their text, and the number of their positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from .rules import refuse
from .types import Dims, index


def _as_flag(value: Any) -> bool:
    return bool(value)


@frozen
class WindowDimension:
    """One dimension of a window, and of the base array over which the window slides.

    Dilation d inserts d - 1 holes between neighbouring elements: `window_dilation` in the window, and `base_dilation`
    in the base before padding. Negative padding crops. `window_reversal` reverses the kernel of a convolution.
    """

    size: int = field(converter=index)
    stride: int = field(default=1, converter=index)
    padding_low: int = field(default=0, converter=index)
    padding_high: int = field(default=0, converter=index)
    window_dilation: int = field(default=1, converter=index)
    base_dilation: int = field(default=1, converter=index)
    window_reversal: bool = field(default=False, converter=_as_flag)

    @property
    def span(self) -> int:
        """The extent of the window, including its dilation."""
        return (self.size - 1) * self.window_dilation + 1

    def base(self, extent: int) -> int:
        """Return the extent of the base, including its dilation."""
        return extent and (extent - 1) * self.base_dilation + 1

    def places(self, extent: int) -> int:
        """Return the number of positions of the window on an operand of this extent."""
        room = self.padding_low + self.base(extent) + self.padding_high - self.span
        return room // self.stride + 1 if room >= 0 and room + self.span > 0 else 0


Window: TypeAlias = tuple[WindowDimension, ...]

_PARTS: dict[str, tuple[str, ...]] = {
    "size": ("size",),
    "stride": ("stride",),
    "pad": ("padding_low", "padding_high"),
    "lhs_dilate": ("base_dilation",),
    "rhs_dilate": ("window_dilation",),
    "rhs_reversal": ("window_reversal",),
}
_USUAL = WindowDimension(1)


def window_text(window: Window) -> str:
    """The window in HLO text, without default values.

    >>> window_text((WindowDimension(3, padding_low=1), WindowDimension(2)))
    'size=3x2 pad=1_0x0_0'
    """
    parts = []
    for word, fields in _PARTS.items():
        if word == "size" or any(getattr(dim, name) != getattr(_USUAL, name) for dim in window for name in fields):
            texts = ("_".join(str(int(getattr(dim, name))) for name in fields) for dim in window)
            parts.append(f"{word}={'x'.join(texts)}")
    return " ".join(parts) * bool(window)


def read_window(given: Any) -> Window:
    """A window from HLO text, or from a WindowDimension or a mapping of its fields for each dimension.

    >>> read_window("size=3 stride=2") == (WindowDimension(3, stride=2),)
    True
    """
    if isinstance(given, str):
        return tuple(WindowDimension(**fields) for fields in _parse_fields(given))
    return tuple(_read_dimension(dimension) for dimension in given)


def _read_dimension(given: Any) -> WindowDimension:
    if isinstance(given, WindowDimension):
        return given
    if isinstance(given, Mapping):
        return WindowDimension(**given)
    raise TypeError("expected HLO text such as 'size=3x3 stride=2x2', or an xb.WindowDimension for each dimension")


def _parse_fields(text: str) -> list[dict[str, int]]:
    """The fields of each dimension, parsed from HLO text."""
    dimensions: list[dict[str, int]] | None = None
    for part in text.split():
        word, _, values = part.partition("=")
        if word not in _PARTS:
            raise ValueError(f"expected one of {', '.join(_PARTS)}, got {word!r}")
        rows = [_numbers(word, value) for value in values.split("x")]
        dimensions = dimensions or [{} for _ in rows]
        if len(rows) != len(dimensions):
            raise ValueError(f"{part!r} has rank {len(rows)}, but the fields before it have rank {len(dimensions)}")
        for fields, row in zip(dimensions, rows, strict=True):
            fields.update(zip(_PARTS[word], row, strict=True))
    if dimensions and "size" not in dimensions[0]:
        raise ValueError("the size is missing; write a size such as size=3x3")
    return dimensions or []


def _numbers(word: str, value: str) -> tuple[int, ...]:
    numbers = re.fullmatch(r"-?\d+" + r"_-?\d+" * (len(_PARTS[word]) - 1), value)
    if not numbers:
        raise ValueError(f"expected {'a pair low_high' if word == 'pad' else 'a number'} for {word}, got {value!r}")
    return tuple(map(int, value.split("_")))


def make_window(
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    reversal: Sequence[bool] | None = None,
    *,
    names: tuple[str, str, str] = ("window_dimensions", "base_dilations", "window_dilations"),
) -> Window:
    """The window of these lists, which have an entry for each size; None means the default values."""
    rank = len(sizes)
    columns: list[Sequence[Any]] = []
    for name, values, default in (
        ("window_strides", strides, 1),
        ("padding", padding, (0, 0)),
        (names[1], base_dilations, 1),
        (names[2], window_dilations, 1),
        ("window_reversal", reversal, False),
    ):
        if values is not None and len(values) != rank:
            refuse(
                "attribute_length_mismatch",
                f"{name} {list(values)} and {names[0]} {list(sizes)} must have the same length, got {len(values)} and "
                f"{rank}",
            )
        columns.append([default] * rank if values is None else values)
    return tuple(
        WindowDimension(size, stride, low, high, window, base, mirrored)
        for size, stride, (low, high), base, window, mirrored in zip(sizes, *columns, strict=True)
    )


def same_padding(window: Window, extents: Dims) -> Window:
    """The window, padded for ceil(extent / stride) positions; if the padding is odd, the high end has one more.

    >>> window_text(same_padding((WindowDimension(4, stride=2),), (7,)))
    'size=4 stride=2 pad=1_2'
    """
    return tuple(_pad_dimension(dim, extent) for dim, extent in zip(window, extents, strict=True))


def _pad_dimension(dim: WindowDimension, extent: int) -> WindowDimension:
    base = dim.base(extent)
    total = max((-(-base // dim.stride) - 1) * dim.stride + dim.span - base, 0)
    return evolve(dim, padding_low=total // 2, padding_high=total - total // 2)


def check_window(window: Window, rank: int, over: str) -> None:
    """Refuse a window of a different rank, and sizes, strides and dilations below 1."""
    if len(window) != rank:
        refuse(
            "attribute_length_mismatch",
            f"window {{{window_text(window)}}} must have rank {rank} for {over}, got rank {len(window)}",
        )
    for dim, each in enumerate(window):
        for name in ("size", "stride", "window_dilation", "base_dilation"):
            if (number := getattr(each, name)) < 1:
                word = name.replace("_", " ")
                refuse(
                    "non_positive", f"the window {word} in dimension {dim} of {over} must be at least 1, got {number}"
                )
