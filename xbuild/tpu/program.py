"""A replicated program that is built and not yet run: its module, its verdict, its picture, its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, field

from .. import running
from ..checking import Verdict, check
from ..core.graph import Module
from ..core.hooks import Showable
from .infeed import InfeedQueue
from .inputs import Inputs
from .support.refusals import refuse
from .traced import Traced

_GIVEN = object()


@define(eq=False, repr=False, slots=False)
class Program(Showable):
    """What `replicate.program`, `rewrite.program`, `shard.program` and `batch_parallel.program` give.

    `module` is the program of all replicas, `str()` of it HLO text; a notebook draws it. `run()` runs it with the
    inputs that it was made with, `run(inputs)` with others of the same shapes, in the form that the call takes.

    >>> import xbuild as xb
    >>> program = xb.tpu.shard.program(lambda x: x * 2.0, [[1.0, 2.0]], num_shards=2)
    >>> program.verdict.kind, program.run(), program.run([[3.0, 4.0]])
    ('ok', [array([2., 4.], dtype=float32)], [array([6., 8.], dtype=float32)])
    """

    traced: Traced
    inputs: Inputs
    read: Callable[[Any], Inputs]
    finish: Callable[[list[Any]], Any]
    infeed_queue: InfeedQueue | None = None
    options: dict[str, Any] = field(factory=dict)

    @property
    def module(self) -> Module:
        """The program of all replicas."""
        return self.traced.module

    @property
    def num_replicas(self) -> int:
        """How many replicas it is for."""
        return self.traced.num_replicas

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it can deadlock, before it runs."""
        return check(self.module)

    def __str__(self) -> str:
        return str(self.module)

    def __repr__(self) -> str:
        return f"<tpu.Program {self.module.name!r} of {self.num_replicas} replicas>"

    def run(self, inputs: Any = _GIVEN, **options: Any) -> Any:
        """Run it, and give the results as the call that made it does; variables have their new values then.

        `options` are those of `interpreter.execute` (`limits`, `seed`, `strict`, `observer`, ...), and `outfeed`.
        Raises argument_mismatch where inputs are not of the shapes that it was made for; Refused, also where an infeed
        queue is empty; Stopped where the run ends before its end.
        """
        rows, given = self._rows(inputs), self._options(options)
        results = running.execute(self.module, rows, **given)
        return self.finish(self._taken(results))

    def trace(self, inputs: Any = _GIVEN, **options: Any) -> Any:
        """Run it and keep what happens, as `interpreter.trace` does: `options` are its, `trace.page()` is a page of it.

        Variables keep the values that they had.
        """
        return running.trace(self.module, self._rows(inputs), **self._options(options))

    def _rows(self, inputs: Any) -> list[list[Any]]:
        """The arguments of each device: inputs, sizes, variables."""
        found = self.inputs if inputs is _GIVEN else self.read(inputs)
        if found is not self.inputs and (found.shapes, found.form) != (self.inputs.shapes, self.inputs.form):
            refuse(
                "argument_mismatch",
                f"{self!r} was made for {_told(self.inputs)}, and {_told(found)} are given",
                "the call itself traces anew for other shapes",
            )
        if not found.has_data:
            refuse("argument_mismatch", f"{self!r} was made of shapes: run(inputs) wants the arrays")
        if found.num_replicas != self.num_replicas:
            refuse("argument_mismatch", f"{self!r}, and inputs of {found.num_replicas} replicas are given")
        return self._with_state(found.rows)

    def _with_state(self, rows: Sequence[list[Any]]) -> list[list[Any]]:
        columns = [variable.on(self.num_replicas) for variable in self.traced.variables]
        whole = [[*row, *(column[replica] for column in columns)] for replica, row in enumerate(rows)]
        cores = self.module.num_partitions
        return whole if cores == 1 else [row for row in whole for _ in range(cores)]

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        given = {**self.options, **options}
        queue, cores = self.infeed_queue, self.module.num_partitions
        if queue is not None and "infeed" not in given:
            self._check_queue(queue)
            given["infeed"] = queue.feeds(cores)
        if cores > 1 and given.get("outfeed") is not None:
            outfeed = given["outfeed"]
            given["outfeed"] = lambda device, item: None if device % cores else outfeed(device // cores, item)
        return given

    def _check_queue(self, queue: InfeedQueue) -> None:
        """An empty queue is a verdict before the run."""
        counts = queue.counts()
        if queue.is_endless or min(counts) > 0:
            return
        verdict = check(self.module, infeed=[count for count in counts for _ in range(self.module.num_partitions)])
        if verdict.refused:
            raise running.Refused(verdict)

    def _taken(self, results: list[Any]) -> list[Any]:
        """The results of each replica in TensorFlow's structure; the variables take theirs."""
        mine = results[:: self.module.num_partitions]
        count = len(self.traced.results.values)
        for n, variable in enumerate(self.traced.assigned):
            variable.values = [np.asarray(each[count + n]) for each in mine]
        return [self.traced.results.of([np.asarray(value) for value in each[:count]]) for each in mine]


def _told(inputs: Inputs) -> str:
    shapes = ", ".join("None" if shape is None else str(shape) for shape in inputs.shapes)
    return f"inputs ({shapes}) of {inputs.num_replicas} replicas"
