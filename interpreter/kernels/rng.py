"""Random state of a device: a generator and a state of 128 bits, both derived from the seed of the run."""

from __future__ import annotations

import numpy as np
from attrs import define, field

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
