"""`lint`: applies the rules to a program, leaves out what costs little or is allowed, and reports the rest.

Sections:

    LintReport: what was found, as data and as text
    lint: the issues of a program
    Issues of one cause, and what they must cost
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from shape_inference import XbuildError, refuse
from shape_inference.escaping import in_line

from ..core.graph import Computation, MetadataSource, Module, ModuleGroup, Source, TextSource, module_in
from ..core.hooks import Reported
from ..core.issues import Issue
from ..core.report_text import WIDTH, Line, StyledText, folded, indented, labelled, more_line, plain
from ..costs import cost
from ..costs.report import short
from ..files.programs import is_of_jax
from ..process.limits import ask, no_collection, room_for_calls
from ..process.progress import during, over
from ..properties.mesh import Mesh
from ..sharding.partition import Partitioned, partition
from ..sharding.unpartitioned import annotated_devices
from ..text.comments import ALLOWED
from ..timelines.machines import Machine
from ..timelines.machines import machine as named_machine
from .comments import Readable, apply_comments
from .facts import ProgramFacts
from .rules import RULES, Rule

MACHINE = "h100"
"""The machine on which time is modelled unless another is stated."""

LEAST = 0.01
"""The least share of the seconds of a program, or of the bytes of its arguments, that is worth a report."""

MORE = "report(all=True) shows them"

# ----------------------------------------------------------------------------
# LintReport: what was found, as data and as text


@frozen(repr=False)
class LintReport(Reported):
    """The result of `lint` for a program. It is true if `lint` found nothing. `str` returns the report.

    `issues` starts with the issues that cost the most seconds, and ends with the notes. `seconds` is the time that the
    program takes on the machine, and `allowed` is the number of issues that comments allow. `notes` says what was not
    examined.
    """

    name: str
    machine: str
    seconds: float
    issues: tuple[Issue, ...]
    allowed: int = 0
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.issues

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        facts = {name: getattr(self, name) for name in ("name", "machine", "seconds", "allowed")}
        return {**facts, "notes": list(self.notes), "issues": [each.to_dict() for each in self.issues]}

    def report(self, all: bool = False) -> str:
        """Return the report as text, with the first ten issues, or with all of them if `all` is true."""
        return plain(report_lines(self, all))

    def __str__(self) -> str:
        return self.report()

    __repr__ = __str__

    def _styled_lines(self) -> Iterable[Line]:
        return report_lines(self)


def report_lines(report: LintReport, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
    """The lines of the report; `more` says how to see the issues that are folded."""
    count = len(report.issues)
    name = in_line(report.name)
    allowed = f"; comments allow {report.allowed}" if report.allowed else ""
    if not count:
        yield (StyledText(f"clean: {name} has nothing to report{allowed}", "good"),)
    else:
        lost = sum(each.facts.get("seconds", 0.0) for each in report.issues)
        of = f" of {seconds_text(report.seconds)}" if report.seconds else ""
        spent = f", which cost {seconds_text(lost)}{of} on {in_line(report.machine)}" if lost else ""
        yield (StyledText(f"{name}: {count} issue{'s' * (count != 1)}{spent}{allowed}", "waits"),)
    shown, hidden = folded(report.issues, all)
    for each in shown:
        yield ()
        yield from _issue_lines(each, report.seconds, width)
    if hidden:
        yield ()
        yield more_line(hidden, more, noun="issue")
    if report.notes:
        yield ()
    for note in report.notes:
        yield from labelled("note", note, width, title="dim")


def _issue_lines(found: Issue, total: float, width: int) -> Iterator[Line]:
    place = f"  {found.source}" if found.source is not None else ""
    yield (StyledText(found.rule, "name"), StyledText(place, "dim"))
    yield from indented(in_line(found.message), width)
    costs = _cost_text(found, total)
    if costs:
        yield from labelled("cost", costs, width, title="dim")
    if found.fix:
        yield from labelled("fix", in_line(found.fix), width)


def _cost_text(found: Issue, total: float) -> str:
    """The bytes and seconds of an issue, and their share of the program's seconds."""
    size, seconds, count = (found.facts.get(name, 0) for name in ("bytes", "seconds", "count"))
    parts = [short(size, "B")] if size else []
    if seconds:
        share = f" ({seconds / total:.1%} of the program)" if total and seconds < total else ""
        parts.append(f"{seconds_text(seconds)}{share}")
    if count > 1:
        parts.append(f"in {count:,} places")
    return ", ".join(parts)


def seconds_text(seconds: float) -> str:
    """A time with three significant digits: `1.2 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


# ----------------------------------------------------------------------------
# lint: the issues of a program


def lint(
    program: Any,
    machine: Machine | str = MACHINE,
    *,
    mesh: Mesh | None = None,
    rules: Sequence[str] | None = None,
    least: float = LEAST,
    source_root: str | os.PathLike[str] | None = None,
) -> LintReport:
    """Report valid code that is costly or surprising.

    `program` is a Computation, Module or ModuleGroup, program text, a path, or a lowered or compiled JAX function. A
    program that is annotated with shardings is partitioned first. Each issue has the user's line, and the bytes and
    seconds that the issue costs on `machine`, which is a Machine, a name such as v5e, or the path of a machine file.
    `docs/lint.md` describes the rules; `rules` names the rules to apply. An issue that costs only time is reported if
    its share of the program's time is at least `least`. An issue that costs only memory is reported if its share of the
    bytes of the program's arguments is at least `least`.

    The comment `# xbuild: allow RULE` on the user's line allows an issue; a comment that allows nothing is reported.
    Comments are read from the files whose code this process runs; for HLO text, only from files below `source_root`.

    Raises TypeError if the argument is not a program, and invalid_attribute if the machine or a rule is unknown, or if
    `least` is out of range.

    >>> import xbuild as xb
    >>> twice = xb.computation(xb.f32[1024])(lambda x: xb.cross_replica_sum(xb.cross_replica_sum(x)))
    >>> report = xb.lint(xb.Module("twice", twice, num_replicas=4))
    >>> bool(report), [each.rule for each in report.issues], report.issues[0].facts["factor"]
    (False, ['reduced_twice'], 4)
    """
    found = named_machine(machine) if isinstance(machine, str) else machine
    if not isinstance(found, Machine):
        raise TypeError(
            f"lint: expected the name of a machine, such as 'h100', or xb.Machine(flops=...), got {machine!r}"
        )
    applied = _rules(rules)
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        refuse("invalid_attribute", f"lint: least is {least!r}; expected a share from 0 to 1", "least=0.01")
    is_own = is_of_jax(program)
    converted, whole = module_in(program), None
    if is_own and isinstance(converted, Module) and converted.num_partitions > 1:
        whole = module_in(program, is_global=True)
    if isinstance(converted, Computation):
        converted = Module(converted.name, converted)
    if not isinstance(converted, Module | ModuleGroup):
        raise TypeError(f"lint: expected a program, such as a Module or HLO text, got {program!r}")
    readable = Readable(is_own, None if source_root is None else Path(source_root))
    return lint_program(converted, found, mesh, applied, least, readable, whole)


def _rules(names: Sequence[str] | None) -> list[Rule]:
    if names is None:
        return [*RULES.values()]
    keys = [each.replace("-", "_") for each in names]
    for key in keys:
        if key not in RULES:
            refuse("invalid_attribute", f"lint: unknown rule {key!r}", f"the rules are {', '.join(RULES)}")
    return [RULES[key] for key in keys]


def lint_program(
    program: Module | ModuleGroup,
    machine: Machine,
    mesh: Mesh | None,
    rules: Sequence[Rule],
    least: float,
    readable: Readable,
    whole: Module | None = None,
) -> LintReport:
    """The report of a program, with the files that may be read for comments.

    `whole` is the program before XLA partitioned it, if that is known: rules of shardings also examine its partition.
    """
    partitions: list[ProgramFacts] = []
    if whole is not None and annotated_devices(whole):
        partitions, _ = _facts_of(whole, machine, mesh, least)
    stated = partitions[0].partitioned if partitions else None
    programs, notes = _facts_of(program, machine, mesh, least, stated)
    issues = _issues(programs, rules)
    issues += _issues(partitions, [each for each in rules if each.name in OF_SHARDINGS])
    sources = dict.fromkeys(
        source for facts in programs for each in facts.flow.home if (source := each.source) is not None
    )
    modules = (program,) if isinstance(program, Module) else dict.fromkeys(program.modules.values())
    written = [each for module in modules for each in module.annotations.get(ALLOWED, ())]
    left, allowed = apply_comments(_once(issues), sources, readable, written)
    left.sort(key=lambda each: (each.level == "note", -each.facts.get("seconds", 0.0)))
    name = program.name if isinstance(program, Module) else f"{program.num_devices} programs"
    seconds = max(facts.total_seconds for facts in programs)
    return LintReport(name, machine.name, seconds, tuple(left), allowed, tuple(notes))


OF_SHARDINGS = ("not_reduced", "replicated_state", "gathered_state", "avoidable_gather")
"""The rules that need shardings, which the text of XLA's partitioner lacks."""


def _facts_of(
    program: Module | ModuleGroup,
    machine: Machine,
    mesh: Mesh | None,
    least: float,
    stated: Partitioned | None = None,
) -> tuple[list[ProgramFacts], list[str]]:
    """The facts of each different program, after the partition of an annotated one; and notes.

    `stated` is the partition by xbuild of a program that XLA partitioned.
    """
    partitioned, notes = None, []
    if isinstance(program, Module) and annotated_devices(program):
        partitioned, note = _partitioned(program)
        notes += [note] if note else []
    examined = program if partitioned is None else partitioned.module
    with no_collection(), during("linting"):
        counted = cost(examined, mesh=mesh if partitioned is None else partitioned.mesh)
        is_own = isinstance(examined, ModuleGroup)
        facts = [
            ProgramFacts(
                module,
                counted,
                tuple(row for row in counted.rows if row.program == number),
                machine,
                is_own,
                least,
                partitioned,
                partitioned or stated,
            )
            for number, module in enumerate(counted.programs)
        ]
    return facts, notes


def _issues(programs: Sequence[ProgramFacts], rules: Sequence[Rule]) -> list[Issue]:
    """The issues of programs that are worth a report."""
    found: list[Issue] = []
    with no_collection(), room_for_calls({facts.module.entry for facts in programs}), during("linting"):
        for facts in programs:
            for each in over(rules, "linting", "rules"):
                ask()
                found += _worth_reporting(each, merged(each.find(facts)), facts)
    return found


def _partitioned(module: Module) -> tuple[Partitioned | None, str]:
    """The partition of an annotated program, or the reason why it failed."""
    try:
        return partition(module), ""
    except XbuildError as error:
        reason = str(error).partition("\n")[0]
        return None, f"{module.name} is annotated with shardings but was not partitioned: {reason}"


# ----------------------------------------------------------------------------
# Issues of one cause, and what they must cost

_DIGITS = re.compile(r"\d+")


def merged(issues: Iterable[Issue]) -> list[Issue]:
    """The issues, with those of one rule and one line as one, which has the sums of their bytes and seconds.

    Without metadata, the scope takes the place of the line, or the opcodes and shapes; numbers in them do not count.
    """
    together: dict[Any, list[Issue]] = {}
    for each in issues:
        together.setdefault(_cause(each), []).append(each)
    return [_as_one(several) for several in together.values()]


def _cause(found: Issue) -> Any:
    source = found.source
    if source is not None and type(source) is not TextSource:
        return source.file, source.line, _DIGITS.sub("", found.fix)
    return _DIGITS.sub("", found.message), _DIGITS.sub("", found.fix)


def _as_one(several: list[Issue]) -> Issue:
    if len(several) == 1:
        return several[0]
    first = max(several, key=lambda each: each.facts.get("seconds", 0.0))
    sums = {name: sum(each.facts.get(name, 0) for each in several) for name in ("bytes", "seconds")}
    names = tuple(dict.fromkeys(name for each in (first, *several) for name in each.instructions))
    devices = tuple(sorted({device for each in several for device in each.devices}))
    return evolve(first, instructions=names, devices=devices, facts={**first.facts, **sums, "count": len(several)})


def _worth_reporting(rule: Rule, issues: Iterable[Issue], facts: ProgramFacts) -> Iterator[Issue]:
    for each in issues:
        seconds, size = each.facts.get("seconds", 0.0), each.facts.get("bytes", 0)
        if rule.measure == "seconds" and seconds < facts.least_seconds:
            continue
        if rule.measure == "memory" and size < facts.least_share * facts.argument_bytes:
            continue
        yield each


def _once(issues: Sequence[Issue]) -> list[Issue]:
    """The issues without those that several programs share: the same rule at the same place, for other devices."""
    found: dict[tuple[str, Source | None, str], Issue] = {}
    for each in issues:
        told = "" if isinstance(each.source, MetadataSource) else each.message
        found.setdefault((each.rule, each.source, told), each)
    return [*found.values()]
