"""A story: a thread about a job that hung, its cause as a small program, and a program that runs to completion."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import frozen

import xbuild as xb
from xbuild.runtimes.record import runtime_of

HERE = Path(__file__).parent


@frozen
class Inputs:
    """The arguments of each device and, if the program reads an infeed, the items of each device.

    `words` says what is special about them.
    """

    words: str
    arguments: Sequence[Sequence[Any]]
    infeed: Sequence[Sequence[Any]] | None = None


@frozen
class Story:
    """What a module of this folder states about its programs `broken` and `fixed`.

    A run of `broken` on `hanging` stops where the verdict says. A run of `fixed` on the same arguments, or on
    `fixed_inputs` if its parameters are different, returns `results`, one for each device. If data decide, `broken`
    completes on `harmless`. `omitted` says what the programs leave out. `written_out` is true if the programs state,
    as instructions, something that the runtime does on its own. `runtime` is the runtime on which the job hung: a name,
    or a file in this folder; without one, the program hangs by the rules of HLO.
    """

    title: str
    threads: tuple[str, ...]
    symptom: str
    cause: str
    fix: str
    omitted: str
    hanging: Inputs
    results: Sequence[Any]
    harmless: Inputs | None = None
    fixed_inputs: Inputs | None = None
    written_out: bool = False
    runtime: str = ""


@frozen
class Told:
    """A story with the module that tells it."""

    module: ModuleType
    story: Story

    @property
    def name(self) -> str:
        return self.module.__name__.rpartition(".")[2]

    @property
    def file(self) -> str:
        return f"examples/hangs/{self.name}.py"

    @property
    def runtime(self) -> xb.Runtime | None:
        """The runtime on which the programs are checked and run."""
        name = self.story.runtime
        return runtime_of(str(HERE / name) if name.endswith(".toml") else name) if name else None

    @property
    def option(self) -> str:
        """The option of commands for this runtime."""
        name = self.story.runtime
        return f" --runtime {f'examples/hangs/{name}' if name.endswith('.toml') else name}" if name else ""

    @property
    def broken(self) -> Callable[[], xb.Module | xb.ModuleGroup]:
        return self.module.broken  # type: ignore[no-any-return]

    @property
    def fixed(self) -> Callable[[], xb.Module | xb.ModuleGroup]:
        return self.module.fixed  # type: ignore[no-any-return]

    def run_broken(self, inputs: Inputs | None = None) -> Any:
        """The results of the broken program, in its recorded order; raises xb.Stopped where it hangs."""
        return self._execute(self.broken(), inputs or self.story.hanging, check=False)

    def run_fixed(self) -> Any:
        """The results of the fixed program on the inputs on which the broken one hangs."""
        return self._execute(self.fixed(), self.story.fixed_inputs or self.story.hanging, check=True)

    def check(self, program: xb.Module | xb.ModuleGroup) -> xb.Verdict:
        """The verdict on one of the two programs."""
        return xb.check(program, runtime=self.runtime)

    def _execute(self, program: xb.Module | xb.ModuleGroup, inputs: Inputs, check: bool) -> Any:
        infeed = {} if inputs.infeed is None else {"infeed": inputs.infeed}
        return xb.execute(program, inputs.arguments, check=check, runtime=self.runtime, **infeed)

    def diff(self) -> str:
        """The difference between the two programs, with all of the source that they share."""
        before, after = (_source(self.module, without) for without in ("fixed", "broken"))
        lines = [*difflib.unified_diff(before, after, lineterm="", n=len(before) + len(after))]
        return "\n".join(lines[3:])


def _source(module: ModuleType, without: str) -> list[str]:
    """The lines of a module from its first constant or function to `fixed`, without one of the two programs."""
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    lines = text.splitlines()
    parts = [node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.FunctionDef)]
    programs = {node.name: node for node in parts if isinstance(node, ast.FunctionDef)}
    left_out = programs[without]
    kept = [
        line
        for number, line in enumerate(lines[: programs["fixed"].end_lineno], 1)
        if number >= parts[0].lineno and not left_out.lineno <= number <= (left_out.end_lineno or 0)
    ]
    named = "\n".join(kept).strip().replace("def broken(", "def program(").replace("def fixed(", "def program(")
    return re.sub(r"\n{2,}", "\n\n", named).splitlines()
