"""One device of a run: the coroutine of its plan, its ids and random numbers, and its position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from xbuild.core.graph import Module

from ..compiler.lines import Path, Stretch
from ..compiler.lines import Standing as Standing
from ..compiler.plan import Plan
from ..compiler.requests import Request
from ..compiler.sharing import SharedPool
from ..kernels.random_bits import RandomState
from ..strict import Ledger
from .observers import MarkObserver, PathObserver, Watching

if TYPE_CHECKING:
    from ..strict.buffers import BufferTracker


@define(eq=False, repr=False)
class Device:
    """A device of a run: its ids, its plan as a coroutine, the request that it waits for, and its result."""

    number: int
    module: Module
    plan: Plan
    watch: Watching | None = None
    pool: SharedPool | None = None
    seed: int = 0
    ledger: Ledger | None = None
    buffers: BufferTracker | None = None
    random_state: RandomState = field(init=False)
    replica_id: np.uint32 = field(init=False)
    partition_id: np.uint32 = field(init=False)
    waiting: Request | None = None
    ended: bool = False
    result: Any = None
    _turns: Counter[int] = field(factory=Counter)
    _coroutine: Generator[tuple[Request, Any], Any, Any] | None = None

    def __attrs_post_init__(self) -> None:
        replica, partition = divmod(self.number, self.module.num_partitions)
        self.replica_id, self.partition_id = np.uint32(replica), np.uint32(partition)
        self.random_state = RandomState(self.seed, self.number)

    def start(self, arguments: tuple[Any, ...]) -> None:
        """Create the coroutine of the plan; a plan that does not communicate runs to completion at once."""
        if self.plan.communicates:
            self._coroutine = self.plan.function(self, *arguments)
        else:
            self.finish(self.plan.function(self, *arguments))

    def resume(self, answer: Any) -> tuple[Request, Any]:
        """Run to the next request and return it; at the end StopIteration carries the result."""
        assert self._coroutine is not None
        self.waiting = None
        return self._coroutine.send(answer)

    def finish(self, result: Any) -> None:
        self.result, self.ended, self.waiting = result, True, None

    def shared(self, block: int) -> Any:
        """The values of a shared block, or None on the first device; a plan calls this before the block."""
        assert self.pool is not None
        self._turns[block] += 1
        return self.pool.take(block, self._turns[block])

    def share(self, block: int, values: Any) -> None:
        """Put the values of a shared block into the pool; on the first device a plan calls this after the block."""
        assert self.pool is not None
        self.pool.put(block, self._turns[block], values)

    def see(self, path: Path, value: Any) -> None:
        """Pass a value to the observer; an observed plan calls this for each instruction."""
        assert isinstance(self.watch, PathObserver)
        self.watch(self.number, path, value)

    @property
    def mark(self) -> Callable[[tuple[int, Stretch]], None]:
        """The observer's function that a marked plan calls with each stretch that it has executed."""
        assert isinstance(self.watch, MarkObserver)
        return self.watch.mark

    def mark_begun(self, traceback: TracebackType | None) -> None:
        """Report to the observer the part of a stretch that was executed before an exception."""
        if isinstance(self.watch, MarkObserver):
            for frame in self._frames(traceback):
                if done := self.plan.unmarked(frame):
                    self.watch.mark((self.number, done))

    def position(self, traceback: TracebackType | None = None) -> Standing | None:
        """The position of the suspended coroutine, or of the plan in the traceback of an exception."""
        frames = [*self._frames(traceback)]
        if not frames:
            return None
        path = self.plan.path(frames[-1])
        assert path is not None
        known: dict[str, Any] = {}
        for frame in frames:
            known |= frame.f_locals
        return Standing(path, tuple(known.get(place.trip or "") for place in path)) if path else None

    def _frames(self, traceback: TracebackType | None) -> Iterator[FrameType]:
        while traceback is not None:
            if self.plan.path(traceback.tb_frame) is not None:
                yield traceback.tb_frame
            traceback = traceback.tb_next
        suspended: Any = self._coroutine
        while suspended is not None and getattr(suspended, "gi_frame", None) is not None:
            if self.plan.path(suspended.gi_frame) is not None:
                yield suspended.gi_frame
            suspended = suspended.gi_yieldfrom
