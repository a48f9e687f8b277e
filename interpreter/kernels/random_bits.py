"""Random bits: the counter-based generators ThreeFry 2x32 and Philox 4x32, and the random state of a device."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

from shape_inference import Dims
from xbuild.core.attributes import Array

# ----------------------------------------------------------------------------
# Counter-based random bit generators, ThreeFry 2x32 and Philox 4x32, which return the next state and the words.

State: TypeAlias = tuple[int, ...]
"""The key, followed by the 64-bit words of the counter, low word first."""

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def three_fry(state: State, dims: Dims, bits: int) -> tuple[State, Array]:
    """The next state, and words of 32 or 64 bits for an array of these extents."""
    key, counter = state
    if bits == 64:
        count = int(np.prod(dims, dtype=np.int64))
        low, high = _three_fry_words(key, counter, count)
        words = (low.astype(np.uint64) | high.astype(np.uint64) << _HALF).reshape(dims)
    else:
        count, words = _in_halves(key, counter, dims)
    return (key, (counter + count) % 2**64), words


def _in_halves(key: int, counter: int, dims: Dims) -> tuple[int, Array]:
    """The words, with both words of a counter value adjacent along the first even dimension, else the largest."""
    extents = dims or (1,)
    even = (dim for dim, size in enumerate(extents) if size % 2 == 0)
    split = next(even, max(range(len(extents)), key=lambda dim: extents[dim]))
    halved = (*extents[:split], -(-extents[split] // 2), *extents[split + 1 :])
    count = int(np.prod(halved, dtype=np.int64))
    pair = [words.reshape(halved) for words in _three_fry_words(key, counter, count)]
    both = np.stack(pair, axis=split + 1).reshape(*halved[:split], -1 if count else 0, *halved[split + 1 :])
    kept = np.moveaxis(np.moveaxis(both, split, 0)[: extents[split]], 0, split)
    return count, kept.reshape(dims)


def _three_fry_words(key: int, counter: int, count: int) -> tuple[Array, Array]:
    """The two words of each of `count` counter values from `counter` on."""
    numbers = np.uint64(counter) + np.arange(count, dtype=np.uint64)
    x, y = numbers.astype(np.uint32), (numbers >> _HALF).astype(np.uint32)
    low, high = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    keys = (low, high, low ^ high ^ np.uint32(0x1BD11BDA))
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = (y << np.uint32(distance) | y >> np.uint32(32 - distance)) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + (keys[(group + 2) % 3] + np.uint32(group + 1))
    return x, y


def philox(state: State, dims: Dims, bits: int) -> tuple[State, Array]:
    """The next state, and words of 32 or 64 bits for an array of these extents.

    If the state has no high counter word, the key is also the high half of the enciphered counter.
    """
    key, low, high = state if len(state) == 3 else (*state, state[0])
    size = int(np.prod(dims, dtype=np.int64))
    count = -(-size * bits // 128)
    words = np.stack(_philox_words(key, low, high, count), axis=-1)
    if bits == 64:
        words = words[..., 0::2] | words[..., 1::2] << _HALF
    after = low + count + (high << 64)
    following = (key, after % 2**64, (after >> 64) % 2**64)[: len(state)]
    return following, words.reshape(-1)[:size].reshape(dims)


def _philox_words(key: int, low: int, high: int, count: int) -> list[Any]:
    """The four 32-bit words of each of `count` 128-bit counter values, each stored in 64 bits."""
    below = np.uint64(low) + np.arange(count, dtype=np.uint64)
    above = np.uint64(high) + (below < np.uint64(low)).astype(np.uint64)
    a, b, c, d = below & _WORD, below >> _HALF, above & _WORD, above >> _HALF
    for turn in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b = second >> _HALF ^ b ^ np.uint64((key + turn * 0x9E3779B9) & 0xFFFFFFFF), second & _WORD
        c, d = first >> _HALF ^ d ^ np.uint64(((key >> 32) + turn * 0xBB67AE85) & 0xFFFFFFFF), first & _WORD
    return [a, b, c, d]


# ----------------------------------------------------------------------------
# Random state of a device: a generator and a state of 128 bits, both derived from the seed of the run.

_START = 0x7012395  # the initial state of XLA:CPU
_STATES = 2**128


@define(eq=False)
class RandomState:
    """The random state of one device in a run; each device and each seed has a different one."""

    seed: int
    device: int
    _generator: np.random.Generator | None = None
    _state: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._state = ((self.seed ^ self.device << 32) % 2**64 << 64) + _START

    @property
    def generator(self) -> np.random.Generator:
        """The generator of the device, created at the first draw since few programs draw."""
        if self._generator is None:
            self._generator = np.random.Generator(np.random.Philox([self.seed % 2**64, self.device]))
        return self._generator

    def advanced(self, delta: int) -> int:
        """The current state; the stored state is then advanced by `delta`."""
        state = self._state
        self._state = (state + delta) % _STATES
        return state
