"""`prove_passes`: the first pass of a compiler after which a program computes a different function.

A dump with the text after each pass (`--xla_dump_hlo_pass_re=.*`) begins with the global program. From the partitioner
on, texts are programs of each device. All texts are compared with the first one, with the same layouts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, evolve, field, frozen

from shape_inference import XbuildError
from xbuild.core.graph import Instruction, Module
from xbuild.core.issues import Issue
from xbuild.core.report_text import MORE, WIDTH, Line, LineReport, StyledText, folded, indented, more_line
from xbuild.files import targets
from xbuild.files.dumps import DumpedModule, Stage
from xbuild.files.jax_functions import dump_passes
from xbuild.files.programs import is_of_jax
from xbuild.process.progress import during, over
from xbuild.sharding.unpartitioned import annotated_devices
from xbuild.testing.contracts import collectives_of

from ..fields import Equivalence
from ..rules.limits import Limits
from .pairs import Shardings, pair_of, stated_inputs, stated_layouts, stated_mesh, stated_outputs
from .proof import Proof, prove_pair

START = "pipeline-start"
"""What XLA writes as the pass before the first one of a pipeline."""


@frozen(eq=False)
class PassChange:
    """A pass after which a program communicates differently: collectives by op, before and after it."""

    name: str
    before: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        old, new = dict(self.before), dict(self.after)
        ops = (op for op in sorted({*old, *new}) if old.get(op) != new.get(op))
        words = [f"{op} {old.get(op, 0)} -> {new.get(op, 0)}" for op in ops]
        return f"{self.name}: {', '.join(words) or 'other groups, types or sizes'}"

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data."""
        return {"pass": self.name, "before": dict(self.before), "after": dict(self.after)}


@frozen(kw_only=True, eq=False)
class PassProof(LineReport):
    """The verdict of `xb.prove_passes` on a program and its passes.

    `whole` compares the first text with the last. If they differ, `guilty` is the first pass after which the function
    is different, and `proof` compares the texts before and after this pass; if any texts between these two
    are undecided, `between` lists the other passes that may be the cause. `partitioner` is the pass that turns the
    global program into a program for each device, if the texts show which pass does this. `changes` are the passes
    after which the program communicates differently.
    """

    name: str
    texts: int
    whole: Proof
    guilty: str | None = None
    proof: Proof | None = None
    between: tuple[str, ...] = ()
    partitioner: str | None = None
    changes: tuple[PassChange, ...] = ()
    unread: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the first and the last text compute the same function."""
        return bool(self.whole)

    @property
    def kind(self) -> str:
        """The verdict on the first and the last text: equal, different or undecided."""
        return self.whole.kind

    @property
    def verdict(self) -> Equivalence:
        """The verdict on the first and the last text."""
        return self.whole.verdict

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions before and after the guilty pass at which the programs diverge."""
        difference = None if self.proof is None else self.proof.verdict.difference
        return () if difference is None else tuple(each for each in (difference.value, difference.other) if each)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The verdict as an issue at the line of the instruction that the guilty pass changed."""
        found = (self.proof or self.whole).issues
        if self.guilty is None:
            return found
        message = f"after the pass {self.guilty}, {self.name} computes a different function"
        return tuple(
            evolve(each, message=f"{message}\n{each.message}", facts={**each.facts, "pass": self.guilty})
            for each in found
        )

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """Return the lines of the report: the guilty pass and the difference, then the changes in communication."""
        if self.guilty is None:
            yield from self.whole.lines(all, width, more)
        else:
            first = f"different: {self.name} computes a different function after the pass {self.guilty}"
            yield (StyledText(first, "bad"),)
            if self.between:
                passes = ", ".join(self.between)
                yield from indented(f"or after one of these, whose texts are undecided: {passes}", width)
            yield from indented(self._place(), width)
            assert self.proof is not None
            yield from (line for number, line in enumerate(self.proof.lines(all, width, more)) if number)
        if self.partitioner is not None:
            sentence = "texts before it are one global program, and texts after it are programs of each device"
            yield from indented(f"partitioned by {self.partitioner}: {sentence}", width, "dim")
        if self.changes:
            yield ("  passes after which the program communicates differently",)
            shown, hidden = folded(self.changes, all)
            for change in shown:
                yield from indented(str(change), width, "dim")
            if hidden:
                yield more_line(hidden, more)
        for sentence in self.unread:
            yield from indented(sentence, width, "dim")

    def _place(self) -> str:
        return f"{self.texts} texts compared by bisection; the text before this pass equals the first one"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return {
            **(self.proof or self.whole).to_dict(), "kind": self.kind, "name": self.name, "texts": self.texts,
            "pass": self.guilty, "between": list(self.between), "partitioner": self.partitioner,
            "changes": [change.to_dict() for change in self.changes], "unread": list(self.unread),
        }  # fmt: skip


def prove_passes(
    target: Any,
    *arguments: Any,
    domain: Mapping[int, Any] | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> PassProof:
    """Find the first pass of XLA after which a program computes a different function.

    `target` is a JAX function, plain or jitted, with arguments or their shapes (`kwargs` are keyword arguments), or a
    Traced or Lowered without arguments. JAX lowers and compiles it, but does not run it, and XLA writes the text after
    each pass into a temporary folder. `target` may also be a dump folder with one module, or FOLDER#NAME. XLA writes
    such a dump with the flags `--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*`.

    A bisection uses `xb.prove` to compare texts with the first text; the texts before and after the pass are then
    compared with each other. `domain`, `seed` and `limits` are passed to `xb.prove`.

    Raises TargetError if the folder has no such module, or only one text of it. Also raises any error that `xb.prove`
    raises for the first and the last text.

    Source: XLA, --xla_dump_hlo_pass_re; docs/proving.md.
    """
    options = {"domain": domain, "seed": seed, "limits": limits}
    if isinstance(target, str | DumpedModule):
        if arguments or kwargs:
            raise TypeError(
                "prove_passes: a dump takes no arguments; pass a JAX function with its arguments, or a dump"
            )
        return _prove_module(targets.module_in_dump(target) if isinstance(target, str) else target, options)
    if not is_of_jax(target) and not callable(target):
        raise TypeError(
            f"prove_passes: expected a JAX function with its arguments, or a dump folder, got {type(target).__name__}"
        )
    with TemporaryDirectory(prefix="xbuild-") as folder:
        dump_passes(target, arguments, kwargs or {}, folder)
        return _prove_module(targets.main_module_in_dump(folder), options)


def _prove_module(module: DumpedModule, options: Mapping[str, Any]) -> PassProof:
    with during(f"proving the passes of {module.key}"):
        return _Search(module, dict(options)).result()


@define(eq=False, slots=False)
class _Search:
    """The texts of a module, and the proofs that compare them with the first one."""

    module: DumpedModule
    options: dict[str, Any]
    proofs: dict[int, Proof | None] = field(factory=dict, init=False)
    programs: dict[int, Module | XbuildError] = field(factory=dict, init=False)

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages with different texts, in order."""
        found: list[Stage] = []
        last = ""
        for stage in self.module.stages:
            text = targets.text_of_file(stage.path)
            if text != last:
                found.append(stage)
            last = text
        if len(found) < 2:
            raise targets.TargetError(
                f"{self.module.key} has only one stage, {self.module.stages[0].path.name}; expected a dump with a "
                "stage for each pass, such as the one that --xla_dump_hlo_pass_re=.* writes"
            )
        return found

    def result(self) -> PassProof:
        last = len(self.stages) - 1
        whole = self.proof(last)
        if whole is None:
            error = self.error(0) or self.error(last)
            assert error is not None
            raise error
        found = PassProof(
            name=self.module.key,
            texts=len(self.stages),
            whole=whole,
            partitioner=self.partitioner,
            changes=tuple(self.changes()),
        )
        if whole.kind == "different":
            low, high = self.bisect(last)
            confirmed = self.compare(low, high)
            proof = confirmed if confirmed is not None and confirmed.kind == "different" else self.proof(high)
            between = tuple(self.name_of(at) for at in range(low + 1, high))
            found = evolve(found, guilty=self.name_of(high), proof=proof, between=between)
        return evolve(found, unread=tuple(self.unread()))

    def bisect(self, high: int) -> tuple[int, int]:
        """Two texts, the first of which equals the first text and the second does not; others between are undecided."""
        low = 0
        undecided: set[int] = set()
        while open_ := [at for at in range(low + 1, high) if at not in undecided]:
            middle = open_[len(open_) // 2]
            proof = self.proof(middle)
            if proof is None or proof.kind == "undecided":
                undecided.add(middle)
            elif proof:
                low = middle
            else:
                high = middle
        return low, high

    def proof(self, at: int) -> Proof | None:
        """The comparison of a text with the first one; None if a text cannot be read or compared."""
        if at not in self.proofs:
            self.proofs[at] = self.compare(0, at)
        return self.proofs[at]

    def compare(self, one: int, other: int) -> Proof | None:
        before, after = self.program(one), self.program(other)
        if before is None or after is None:
            return None
        try:
            return prove_pair(pair_of(before, after, *self.layouts), **self.options)
        except XbuildError as error:
            self.programs.setdefault(-1 - other, error)
            return None

    def program(self, at: int) -> Module | None:
        """The program of a text; None if it cannot be read."""
        if at not in self.programs:
            try:
                found = targets.load(str(self.stages[at].path), is_global=True)
                assert isinstance(found, Module)
                self.programs[at] = found
            except XbuildError as error:
                self.programs[at] = error
        known = self.programs[at]
        return known if isinstance(known, Module) else None

    def error(self, at: int) -> XbuildError | None:
        """Why a text could not be read or compared."""
        several = (self.programs.get(at), self.programs.get(-1 - at))
        return next((each for each in several if isinstance(each, XbuildError)), None)

    def unread(self) -> Iterator[str]:
        """A sentence for each text that could not be read or compared."""
        for at in range(len(self.stages)):
            error = self.error(at)
            if error is not None:
                yield f"the text after {self.name_of(at)} is left out: {str(error).splitlines()[0]}"

    @cached_property
    def layouts(self) -> tuple[Shardings, Shardings]:
        """The shardings of arguments and of results, each as the last text states them that states some that fit."""
        first, last = self.program(0), self.program(len(self.stages) - 1)
        if first is None or last is None or last.num_devices == 1:
            return None, None
        mesh = stated_mesh(first, last)

        def find(stated: Any) -> Shardings:
            texts = (self.program(at) for at in reversed(range(len(self.stages))))  # read as far as they are needed
            return stated_layouts(stated, filter(None, texts), first, last, mesh)

        return find(stated_inputs), find(stated_outputs)

    # What passes do

    def name_of(self, at: int) -> str:
        """The pass that made a text: for the first text of a pipeline inside a pass, this pass."""
        stage = self.stages[at]
        place = self.module.stages.index(stage)
        if stage.name == START and place and self.module.stages[place - 1].following:
            earlier = self.module.stages[place - 1]
            stage = evolve(earlier, name=earlier.following)
        return f"{stage.pipeline}: {stage.name}" if stage.pipeline else stage.name

    def is_partitioned(self, at: int) -> bool:
        module = self.program(at)
        return module is not None and module.num_devices > 1 and not annotated_devices(module)

    @property
    def partitioner(self) -> str | None:
        """The pass after which a text is no longer global for the first time."""
        places = range(1, len(self.stages))
        found = next((at for at in places if self.is_partitioned(at) and not self.is_partitioned(at - 1)), None)
        return None if found is None else self.name_of(found)

    def changes(self) -> Iterator[PassChange]:
        """The passes after which the collectives of a partitioned program differ."""
        last: tuple[Any, Counter[str]] | None = None
        for at in over(range(len(self.stages)), "comparing collectives", "texts"):
            module = self.program(at)
            if module is None or not self.is_partitioned(at):
                continue
            rows = collectives_of(module, None)
            now = Counter((each.op, each.where, each.dtypes, each.arrays, each.bytes, each.times) for each in rows)
            ops = Counter(each.op.replace("_", "-") for each in rows)
            if last is not None and last[0] != now:
                yield PassChange(self.name_of(at), _sorted(last[1]), _sorted(ops))
            elif last is None and ops and at:
                yield PassChange(self.name_of(at), (), _sorted(ops))
            last = now, ops


def _sorted(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items()))
