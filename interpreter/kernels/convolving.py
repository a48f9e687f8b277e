"""Convolutions: windows are copied into matrices and multiplied; with few features, offsets are summed one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, reduce
from math import prod

import numpy as np
from attrs import frozen

from shape_inference import Dims, PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window, WindowDimension
from xbuild.core.attributes import Array

from .blas import is_single_threaded
from .lifting import common
from .products import SETTLED_OPERANDS, DType, finished, matmul, settle, working_type
from .windowing import elements, taps

BLOCK = 1 << 19
"""The number of elements of a matrix of windows, chosen so that the matrix stays in the cache."""

ROWS = 256
"""The least number of rows of a matrix of windows; with fewer, loading the kernel takes longer than multiplying."""

STRIP = 1 << 16
"""The number of sums computed at once when offsets are summed one by one."""

THIN = 4
"""The largest product of input and output features per group for which offsets are summed one by one."""


@frozen(slots=False)
class Sliding:
    """A convolution with its dimensions in order.

    image: batch, spatial..., group, input feature; kernel: spatial..., input feature, group, output feature;
    sums: batch, spatial..., group, output feature.
    """

    image: Array
    kernel: Array
    window: Window
    sums: Array

    @property
    def extents(self) -> Dims:
        return tuple(self.image.shape[1:-2])

    @property
    def places(self) -> Dims:
        return tuple(self.sums.shape[1:-2])

    @property
    def features(self) -> Dims:
        """The number of groups, and of input and output features of each group."""
        inputs, groups, outputs = self.kernel.shape[-3:]
        return groups, inputs, outputs

    @cached_property
    def terms(self) -> int:
        """The number of products that are summed for one element of the result."""
        return prod(self.kernel.shape[:-2])

    def working(self, by_blas: bool) -> DType:
        return working_type(self.image.dtype, self.kernel.dtype, self.sums.dtype, self.terms, by_blas=by_blas)


def convolve(
    lhs: Array,
    rhs: Array,
    window: Window,
    numbers: ConvolutionDimensionNumbers,
    feature_groups: int,
    batch_groups: int,
    preferred: PrimitiveType | None,
) -> Array:
    groups = feature_groups * batch_groups
    image = lhs.transpose(_in_order(numbers.lhs))
    kernel = rhs.transpose([*numbers.kernel_spatial_dimensions, *numbers.rhs[1::-1]])
    kernel = np.flip(kernel, tuple(axis for axis, dim in enumerate(window) if dim.window_reversal))
    if not window:  # no spatial dimension is computed as one of extent 1
        image, kernel, window = image[:, None], kernel[None], (WindowDimension(1),)
    places = tuple(dim.places(extent) for dim, extent in zip(window, image.shape[1:-1], strict=True))
    dtype = preferred.dtype if preferred else common(lhs.dtype, rhs.dtype)
    order = _in_order(numbers.output)
    sizes = (image.shape[0] // batch_groups, *places, kernel.shape[-1])
    result = np.zeros(sizes, dtype)
    if result.size and image.size and kernel.size:
        sums = result.reshape(*sizes[:-1], groups, -1)
        job = Sliding(
            _grouped(image, feature_groups, batch_groups), kernel.reshape(*kernel.shape[:-1], groups, -1), window, sums
        )
        is_thin = job.features[1] * job.features[2] <= THIN
        (_by_offsets if is_thin else _by_matrices)(job)
    if len(order) == 2:
        result = result[:, 0]
    return result if order == sorted(order) else result.transpose(np.argsort(order))


def _in_order(dims: Dims) -> list[int]:
    """Dimensions in the order batch, spatial, feature, from dimensions in the order batch, feature, spatial."""
    return [dims[0], *dims[2:], dims[1]]


def _grouped(image: Array, feature_groups: int, batch_groups: int) -> Array:
    """A view of the image with a dimension for the groups, which are groups of features or of the batch."""
    if batch_groups == 1:
        return image.reshape(*image.shape[:-1], feature_groups, -1)
    split = image.reshape(batch_groups, -1, *image.shape[1:])
    return np.moveaxis(split, 0, -2)


def _by_matrices(job: Sliding) -> None:
    """The convolution as a matrix product: each row is one window; padding and holes read an appended zero element."""
    groups, inputs, outputs = job.features
    work, places, offsets = job.working(by_blas=True), prod(job.places), job.terms // inputs
    kernel = np.ascontiguousarray(job.kernel.astype(work).reshape(job.terms, groups, outputs).transpose(1, 0, 2))
    sums = job.sums.reshape(len(job.sums), places, groups, outputs)
    rows = max(BLOCK // (groups * job.terms), ROWS)
    pieces = _cut(offsets, max(1, BLOCK // (groups * inputs * min(rows, places * len(sums)))))
    numbers = WindowElements(job)
    is_settled = work.kind not in "fc" or is_single_threaded()
    if not is_settled:
        settle(kernel)
    for images, strips in _tiles(len(sums), places, rows):
        flat = _with_zero(job.image[images], work)
        if not is_settled:
            settle(flat)
        for strip in strips:
            found = _product(flat, kernel, [(piece, numbers(strip, piece)) for piece in pieces])
            found = found.reshape(groups, -1, strip.stop - strip.start, outputs)
            sums[images, strip] = finished(found, sums.dtype).transpose(1, 2, 0, 3)


def _product(flat: Array, kernel: Array, pieces: list[tuple[slice, Array]]) -> Array:
    """The product of all rows of a tile with the kernel, accumulated over the pieces of the window."""
    groups, inputs = flat.shape[0], flat.shape[-1]
    total: Array | None = None
    for piece, numbers in pieces:
        rows = np.take(flat, numbers, axis=2, mode="clip").reshape(groups, -1, numbers.shape[1] * inputs)
        part = matmul(rows, kernel[:, piece.start * inputs : piece.stop * inputs], SETTLED_OPERANDS)
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total


def _cut(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _tiles(batch: int, places: int, rows: int) -> Iterator[tuple[slice, list[slice]]]:
    """Tiles of about `rows` rows: several images if each has few output positions, else strips of one image."""
    images = max(1, rows // places)
    strips = _cut(places, places if images > 1 else min(places, rows))
    for part in _cut(batch, images):
        yield part, strips


def _with_zero(image: Array, work: DType) -> Array:
    """The image with the dimensions groups, batch, spatial elements followed by a zero element, features."""
    batch, *extents, groups, inputs = image.shape
    flat = np.zeros((groups, batch, prod(extents) + 1, inputs), work)
    flat[:, :, :-1].reshape(groups, batch, *extents, inputs)[...] = np.moveaxis(image, -2, 0)
    return flat


class WindowElements:
    """The flat indices of the elements that windows read at each output position and offset; padding reads the zero."""

    def __init__(self, job: Sliding) -> None:
        self.places, self.sizes = job.places, tuple(dim.size for dim in job.window)
        self.tables = [np.where(table < 0, prod(job.extents), table * step) for table, step in _tables(job)]
        self.known: dict[tuple[int, int], Array] | None = {} if prod(self.places) * prod(self.sizes) <= BLOCK else None

    def __call__(self, places: slice, offsets: slice) -> Array:
        if self.known is None:
            return self._found(places, offsets)
        key = places.start, offsets.start
        if key not in self.known:
            self.known[key] = self._found(places, offsets)
        return self.known[key]

    def _found(self, places: slice, offsets: slice) -> Array:
        chosen = np.unravel_index(np.arange(places.start, places.stop), self.places)
        rows = [table[place] for table, place in zip(self.tables, chosen, strict=True)]
        if offsets.stop - offsets.start == prod(self.sizes):
            return reduce(_outer_sum, rows)
        columns = np.unravel_index(np.arange(offsets.start, offsets.stop), self.sizes)
        return reduce(np.add, [row[:, column] for row, column in zip(rows, columns, strict=True)])


def _outer_sum(left: Array, right: Array) -> Array:
    """For each row, the sums of every entry of the left row and every entry of the right row."""
    total: Array = left[:, :, None] + right[:, None, :]
    return total.reshape(len(left), -1)


def _tables(job: Sliding) -> Iterator[tuple[Array, int]]:
    """For each dimension, the elements at its output positions and window offsets, and the stride between elements."""
    step = prod(job.extents)
    for dim, extent, places in zip(job.window, job.extents, job.places, strict=True):
        step //= extent
        yield elements(dim, extent, places), step


def _by_offsets(job: Sliding) -> None:
    """The convolution summed over window offsets, each offset for a strip of output positions at once."""
    work = job.working(by_blas=False)
    kernel = job.kernel.astype(work)
    first, *rest = job.places
    for images, strips in _tiles(len(job.image), first, max(1, STRIP // (prod(rest) * job.features[0]))):
        planes = np.ascontiguousarray(np.moveaxis(job.image[images], -1, 0), work)
        for strip in strips:
            here = (strip.stop - strip.start, *rest)
            for output in range(job.features[2]):
                total = _strip(job, planes, kernel[..., output], here, strip.start)
                job.sums[images, strip, ..., output] = finished(total, job.sums.dtype)


def _strip(job: Sliding, planes: Array, kernel: Array, counts: Dims, first: int) -> Array:
    """The sums of one output feature of each group, with the dimensions batch, output positions, groups."""
    total = np.zeros((planes.shape[1], *counts, planes.shape[-1]), planes.dtype)
    product = np.empty_like(total)
    for offset, places, found in taps(job.window, job.extents, counts, first):
        where = (slice(None), *places)
        for plane, factor in zip(planes, kernel[offset], strict=True):
            np.multiply(plane[(slice(None), *found)], factor, out=product[where])
            total[where] += product[where]
    return total
