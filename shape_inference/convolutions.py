"""Roles of the dimensions of a convolution's input, kernel and output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from .types import Dims, index


def _as_dims(values: Iterable[Any]) -> Dims:
    return tuple(map(index, values))


@frozen(repr=False)
class ConvolutionDimensionNumbers:
    """The role of each dimension of a convolution's input, kernel and output.

    The roles are batch b, feature f (in the kernel: input feature i and output feature o), and spatial 0, 1, ...

    >>> ConvolutionDimensionNumbers.read("b01f_01io->b01f").input_feature_dimension
    3
    """

    input_batch_dimension: int = field(converter=index)
    input_feature_dimension: int = field(converter=index)
    input_spatial_dimensions: Dims = field(converter=_as_dims)
    kernel_input_feature_dimension: int = field(converter=index)
    kernel_output_feature_dimension: int = field(converter=index)
    kernel_spatial_dimensions: Dims = field(converter=_as_dims)
    output_batch_dimension: int = field(converter=index)
    output_feature_dimension: int = field(converter=index)
    output_spatial_dimensions: Dims = field(converter=_as_dims)

    @property
    def lhs(self) -> Dims:
        """The input's dimensions: batch, feature, spatial."""
        return (self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions)

    @property
    def rhs(self) -> Dims:
        """The kernel's dimensions: output feature, input feature, spatial."""
        return (
            self.kernel_output_feature_dimension,
            self.kernel_input_feature_dimension,
            *self.kernel_spatial_dimensions,
        )

    @property
    def output(self) -> Dims:
        """The output's dimensions: batch, feature, spatial."""
        return (self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions)

    @property
    def spatial(self) -> tuple[tuple[int, int, int], ...]:
        """The input, kernel and output dimension numbers of each spatial dimension.

        >>> ConvolutionDimensionNumbers.read("b01f_01io->b01f").spatial
        ((1, 0, 1), (2, 1, 2))
        """
        each = (self.input_spatial_dimensions, self.kernel_spatial_dimensions, self.output_spatial_dimensions)
        return tuple(zip(*each, strict=True))

    @classmethod
    def first(cls, spatial: int) -> ConvolutionDimensionNumbers:
        """Return dimension numbers for the order batch, feature, spatial.

        The order in the kernel is output feature, input feature, spatial.

        >>> ConvolutionDimensionNumbers.first(2)
        bf01_oi01->bf01
        """
        dims = tuple(range(2, 2 + spatial))
        return cls(0, 1, dims, 1, 0, dims, 0, 1, dims)

    @classmethod
    def read(cls, given: Any) -> ConvolutionDimensionNumbers:
        """Read dimension numbers from their text, such as `bf01_oi01->bf01`, or from a mapping of their fields."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            return cls(**given)
        labels = re.fullmatch(r"(\w+)_(\w+)->(\w+)", given) if isinstance(given, str) else None
        if not labels:
            raise ValueError("expected labels for the input, the kernel and the output, such as 'bf01_oi01->bf01'")
        (b, f, spatial), (o, i, kernel), (ob, of, output) = map(_roles, labels.groups(), ("bf", "oi", "bf"))
        return cls(b, f, spatial, i, o, kernel, ob, of, output)

    def __repr__(self) -> str:
        return f"{_letters('bf', self.lhs)}_{_letters('oi', self.rhs)}->{_letters('bf', self.output)}"


def _roles(labels: str, letters: str) -> tuple[int, int, Dims]:
    """The dimensions that the two letters label, and the dimensions that the digits 0, 1, ... label."""
    expected = sorted([*letters, *map(str, range(len(labels) - 2))])
    if sorted(labels) != expected:
        raise ValueError(f"{labels!r} must contain each of {', '.join(expected)} exactly once")
    return (
        labels.index(letters[0]),
        labels.index(letters[1]),
        tuple(labels.index(digit) for digit in sorted(set(labels) - {*letters})),
    )


def _letters(letters: str, dims: Dims) -> str:
    """The label of each dimension, in the order of the dimensions."""
    ordered = sorted(zip(dims, [*letters, *map(str, range(len(dims) - 2))], strict=True))
    return "".join(label for _, label in ordered)
