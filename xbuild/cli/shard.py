"""`xbuild shard`: the sharding of every value of a program, why it has it, and what several shardings cost."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import evolve

import xbuild
from shape_inference import Shape, XbuildError, leaves
from shape_inference.escaping import in_line

from .. import shard as sharding
from ..core.graph import Module, ModuleGroup
from ..core.issues import Issue
from ..core.report_text import WIDTH, Line, StyledText, folded, labelled, more_line, wrapped
from ..costs.report import columns, short
from ..explaining.collectives import CollectiveReason, explain_collectives
from ..files import targets as target_files
from ..properties.mesh import mesh_of
from ..sharding.partition import Advice, Communication, CommunicationCost, Partitioned, advise, partition
from ..sharding.propagation import Conflict, Propagated, propagate
from ..sharding.propagation import short as short_form
from ..sharding.propagation.propagating import StrategyName
from .candidates import instructions, targets
from .formats import say_document, say_result
from .group import counts_given, load, main, module_targets, options_used, refuse, require, takes_target
from .options import shows_all, takes_all, takes_format
from .outputs import MORE, check_distinct, prints_document, say, say_lines, target_input
from .viz import format_of, takes_theme, write

# ----------------------------------------------------------------------------
# The collectives that partitioning inserts, and what several shardings of one program cost


def bytes_by_axes(partitioned: Partitioned) -> Counter[str]:
    """The bytes that a device sends over each set of axes, whose names are joined by commas."""
    sums = Counter[str]()
    for communication in partitioned.communications:
        sums[_axis_names(communication)] += communication.bytes
    return sums


def _axis_names(communication: Communication) -> str:
    return ",".join(dict.fromkeys(axis.name for axis in communication.axes))


Item = TypeVar("Item")


def _first(items: Sequence[Item], top: int | None, size: Callable[[Item], float]) -> Sequence[Item]:
    """The `top` items of the largest size, in their order; all without `top`."""
    if top is None or top >= len(items):
        return items
    largest = sorted(range(len(items)), key=lambda number: -size(items[number]))[:top]
    return [items[number] for number in sorted(largest)]


def answer_line(partitioned: Partitioned) -> Line:
    """What partitioning inserts, what a device sends by axis, and whether the program can deadlock."""
    sums, count = bytes_by_axes(partitioned), len(partitioned.communications)
    verdict = xbuild.check(partitioned.module)
    by_axes = ", ".join(f"{axes} {short(size, 'B')}" for axes, size in sorted(sums.items()))
    sent = f"a device sends {short(sum(sums.values()), 'B')}{f' ({by_axes})' if by_axes else ''}"
    kind = StyledText(f"check: {verdict.kind}", {"ok": "good", "depends": "waits"}.get(verdict.kind, "bad"))
    return (
        StyledText("partitioned by xbuild", "title"),
        f": {count} collective{'s' * (count != 1)} inserted; {sent}; ",
        kind,
    )


def collective_lines(partitioned: Partitioned, machine: str, all: bool, top: int | None = None) -> Iterator[Line]:
    """Each collective of a partitioned program with its cost and its reason.

    `top` is the number of collectives that are listed; else ten, or `all`. Those that send most are listed, in order.
    """
    if not partitioned.communications:
        return
    yield ()
    yield (f"collectives, with the bytes that a device sends and the total time on {machine}",)
    costs = partitioned.costs(machine)
    count = len(folded(costs, all)[0]) if top is None else top
    shown, hidden = _folded_to(costs, count, all, lambda priced: priced.communication.bytes * priced.runs)
    for priced in shown:
        yield from _describe_collective(priced)
    if hidden:
        yield more_line(hidden, MORE)


def _folded_to(
    items: Sequence[Item], top: int | None, all: bool, size: Callable[[Item], float]
) -> tuple[Sequence[Item], int]:
    """The `top` largest items if it is given, else the first ten or `all`; and how many are hidden."""
    if top is None:
        return folded(items, all)
    shown = _first(items, top, size)
    return shown, len(items) - len(shown)


def _describe_collective(priced: CommunicationCost) -> Iterator[Line]:
    """A line that names a collective with its cost, and its reason below."""
    communication = priced.communication
    source = "" if communication.source is None else f"  {communication.source}"
    cost = f"{short(communication.bytes, 'B')}{_runs(priced)}  {short(priced.total_seconds * 1e6, 'us')}"
    name = StyledText(in_line(communication.name), "name")
    yield ("  ", name, f"  over {_axis_names(communication)}  {cost}", StyledText(in_line(source), "dim"))
    yield from ((f"      {part}",) for part in wrapped(in_line(communication.reason), WIDTH - 6))


def _runs(priced: CommunicationCost) -> str:
    """How often a collective runs, if not once."""
    times = f" x {priced.runs}" if priced.runs != 1 else ""
    return times if priced.is_known else f"{times} x ?"


def describe_collectives(partitioned: Partitioned, machine: str, top: int | None = None) -> dict[str, Any]:
    """The same as plain data."""
    listed = _first(partitioned.costs(machine), top, lambda priced: priced.total_seconds)
    return {
        "machine": machine,
        "communications": [priced.to_dict() for priced in listed],
        "bytes_by_axis": dict(sorted(bytes_by_axes(partitioned).items())),
        "verdict": xbuild.check(partitioned.module).kind,
    }


def collective_issues(partitioned: Partitioned, machine: str, top: int | None = None) -> Iterator[Issue]:
    """A note for each inserted collective with its reason, and the issues of a partitioned program that is refused."""
    for priced in _first(partitioned.costs(machine), top, lambda priced: priced.total_seconds):
        communication = priced.communication
        yield Issue(
            rule="collective",
            level="note",
            message=f"{communication.opcode.replace('_', '-')} over {_axis_names(communication)} is inserted: "
            f"{communication.reason}",
            source=communication.source,
            instructions=(communication.name,),
            facts={"bytes": communication.bytes, "runs": priced.runs, "seconds": priced.total_seconds},
        )
    verdict = xbuild.check(partitioned.module)
    yield from (evolve(issue, level="warning") for issue in verdict.issues if issue.level != "note")


def _conflict_issue(conflict: Conflict, paths: Mapping[str, str]) -> Issue:
    """A warning about an instruction at which shardings conflict, so that arrays are resharded."""
    sentence = f"resharded because shardings conflict: {conflict.sentence(paths)}"
    return Issue("conflict", "warning", sentence, conflict.where, (conflict.at,))


def advice_for(subject: Partitioned | Propagated, name: str) -> tuple[Advice, ...]:
    """Shardings that avoid a collective; nothing if no inserted collective has this name."""
    if isinstance(subject, Partitioned) and any(inserted.name == name for inserted in subject.communications):
        return advise(subject, name)
    return ()


def costs_of_shardings(module: Module, strategy: StrategyName, machine: str) -> dict[str, Any]:
    """What a device of a partitioned program sends, holds and computes, and its exposed communication time."""
    propagated = propagate(module, strategy=strategy)
    partitioned = partition(propagated)
    modelled = xbuild.timeline(partitioned.module, machine, mesh=partitioned.mesh)
    return {
        "mesh": dict(partitioned.mesh.sizes),
        "collectives": len(partitioned.communications),
        "bytes_by_axis": dict(sorted(bytes_by_axes(partitioned).items())),
        "exposed_seconds": modelled.exposed,
        "peak_memory": modelled.cost.peak_memory,
        "flops": modelled.cost.flops,
        "verdict": xbuild.check(partitioned.module).kind,
    }


def comparison_table(names: Sequence[str], rows: Sequence[dict[str, Any]], machine: str) -> Iterator[str]:
    """A table with a column for each sharding and a line for each cost."""
    axes = sorted({axis for row in rows for axis in row["bytes_by_axis"]})
    yield from columns(("per device", *names), [
        ("mesh", *(" x ".join(f"{axis}={size}" for axis, size in row["mesh"].items()) for row in rows)),
        ("collectives", *(str(row["collectives"]) for row in rows)),
        *((f"bytes over {axis}", *(short(row["bytes_by_axis"].get(axis, 0), "B") for row in rows)) for axis in axes),
        (f"exposed on {machine}", *(short(row["exposed_seconds"] * 1e6, "us") for row in rows)),
        ("peak memory", *(short(row["peak_memory"], "B") for row in rows)),
        ("FLOPs", *(short(row["flops"]) for row in rows)),
        ("check", *(row["verdict"] for row in rows)),
    ])  # fmt: skip


# ----------------------------------------------------------------------------
# The collectives of a program that XLA has partitioned


def compiled_programs(target: str, is_asked: bool) -> tuple[Module, Module | None] | None:
    """The program that XLA compiled, and the one before; None if the target has only a program before partitioning.

    With `is_asked`, XLA compiles what JAX lowered.
    """
    folder = target_files.split_target(target)[0]
    try:
        if is_asked and ".py" in target:
            before, after = target_files.load_with_compiled(target)
        elif target_files.is_dump(folder) and not counts_given("stage"):
            texts = target_files.module_in_dump(target).stages
            programs = [target_files.load(str(texts[place].path), is_global=True) for place in {0, len(texts) - 1}]
            before, after = programs[0], programs[-1]
        else:
            before, after = None, load(target, is_global=True)
    except target_files.TargetError as error:
        raise click.UsageError(str(error)) from None
    except (target_files.UserError, XbuildError) as error:
        raise refuse(error, target) from None
    if not isinstance(after, Module) or (not is_asked and not after.is_scheduled):
        return None
    return after, before if isinstance(before, Module) and before is not after else None


def say_compiled(target: str, compiled: Module, before: Module | None, top: int | None) -> None:
    """Print the collectives of a program that XLA partitioned, those that send most first, with their reasons."""
    mesh = None if before is None else mesh_of(before)
    fits = mesh is not None and mesh.num_devices == compiled.num_devices
    cost = xbuild.cost(compiled, mesh=mesh if fits else None)
    found = sorted(explain_collectives(cost, before), key=lambda each: -each.cost.link_bytes)
    if prints_document():
        issues = [
            Issue("collective", "note", f"{each.whose}: {each.reason}", each.source, (each.instruction.name,))
            for each in found[:top]
        ]
        facts = {"module": compiled.name, "compiled": True, "communications": [each.to_dict() for each in found[:top]]}
        say_result(target, facts, issues)
        return
    lines: list[Line] = [_compiled_head(compiled, found)]
    shown, hidden = _folded_to(found, top, shows_all(), lambda each: each.cost.link_bytes)
    for each in shown:
        lines += [(), *_compiled_lines(each)]
    if hidden:
        lines.append(more_line(hidden, MORE))
    if before is None and not all(each.is_written for each in found):
        note = (
            "a dump folder, or FILE.py:NAME with --compiled, has the text before partitioning, which states shardings"
        )
        lines += [(), *labelled("note", note, WIDTH, "dim")]
    say_lines(lines)


def _compiled_head(compiled: Module, found: Sequence[CollectiveReason]) -> Line:
    """How many collectives a program has, whose they are, and what a device sends."""
    written, sent = sum(each.is_written for each in found), sum(each.cost.link_bytes for each in found)
    count = f"{len(found)} collective{'s' * (len(found) != 1)}"
    whose = f"{written} of them written by you, {len(found) - written} inserted by XLA"
    head = f": {count}, {whose}; {short(sent, 'B')} sent by a device"
    return StyledText(f"{in_line(compiled.name)}, partitioned by XLA", "title"), head


_MOST_EXPLAINED = 3
"""The most modules of a dump whose collectives are explained; of more, each has one line."""


def say_modules(modules: Sequence[str], top: int | None) -> None:
    """Explain the modules of a dump that have collectives, or print one line for each if they are many."""
    programs = {each: compiled_programs(each, False) for each in modules}
    reasons = {
        each: [*explain_collectives(xbuild.cost(found[0]), found[1])]
        for each, found in programs.items() if found is not None
    }  # fmt: skip
    silent = [each for each, found in reasons.items() if not found]
    told = [each for each in modules if each not in silent]
    for each in told:
        found = programs[each]
        if found is None:
            line = answer_line(partition(propagate(load_module(each))))
            say_lines([(in_line(each.rpartition("#")[2]), ", ", *line)])
        elif len(told) <= _MOST_EXPLAINED:
            say_compiled(each, *found, top)
            say()
        else:
            say_lines([_compiled_head(found[0], reasons[each])])
    if silent:
        say(f"{len(silent)} module{'s have' if len(silent) > 1 else ' has'} no collectives")
    if len(told) > _MOST_EXPLAINED:
        say(f"notice: xbuild shard {shlex.quote(told[0])} explains each collective", err=True)


def _compiled_lines(each: CollectiveReason) -> Iterator[Line]:
    times = f" x {each.cost.times}" if each.cost.times != 1 else ""
    size = f"  {short(each.cost.collective.link_bytes if each.cost.collective else 0, 'B')}{times}"
    groups = str(each.cost.collective).partition(" ")[2]
    source = "" if each.source is None else f"  {in_line(str(each.source))}"
    yield ("  ", StyledText(in_line(each.instruction.name), "name"), f"  {groups}{size}", StyledText(source, "dim"))
    yield from ((f"      {part}",) for part in wrapped(in_line(f"{each.whose}: {each.reason}"), WIDTH - 6))


# ----------------------------------------------------------------------------
# The command: the sharding of every value of a program, and why it has it

_PICTURE = (
    "Draw the program before and after partitioning (with --explain, the tiles of a value) to this .svg or .html file."
)


@main.command()
@takes_target
@click.argument("others", metavar="[--compare OTHERS]", nargs=-1, shell_complete=targets)
@click.option("--explain", "name", metavar="NAME", shell_complete=instructions,
              help="Explain why this value has its sharding, or why this collective is inserted.")  # fmt: skip
@click.option("--strategy", type=click.Choice(["shardy", "dialect"]), default="shardy", show_default=True,
              help="Propagate shardings as Shardy does, or by the rules of MLIR's shard dialect.")  # fmt: skip
@click.option("--hlo", "as_hlo", is_flag=True, help="Print HLO text with the sharding of every value.")
@click.option("--compiled", is_flag=True,
              help="Explain the collectives that XLA compiles, not those of xbuild's partitioner.")  # fmt: skip
@click.option("--partitioned", "as_spmd", is_flag=True, help="Print the program that each device runs, as HLO text.")
@takes_format
@click.option("-o", "--output", type=click.Path(dir_okay=False), help=_PICTURE)
@takes_theme
@click.option(
    "--compare",
    is_flag=True,
    help="Compare the costs of TARGET and OTHERS, which are targets or names in TARGET's file.",
)
@click.option(
    "--machine", metavar="NAME", default="h100", show_default=True, help="Show times modelled for this machine."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="Show only this many of the largest arrays and of the longest collectives.  [default: all]",
)
@takes_all
def shard(
    target: str,
    name: str | None,
    others: tuple[str, ...],
    compare: bool,
    compiled: bool,
    machine: str,
    output: str | None,
    theme: str,
    **how: Any,
) -> None:
    """Propagate a program's shardings, and show how each value is sharded and which collectives are inserted.

    The command does not run the program. The table shows where each value's sharding comes from, and `--explain NAME`
    traces a sharding to the line that states it. Above the table, the command lists each collective that partitioning
    inserts, with its reason and its time on the machine. For a collective, `--explain NAME` also suggests changes to
    stated shardings that would avoid the collective.

    If XLA has compiled the program, as in a dump folder, the command lists XLA's own collectives: which of them you
    wrote, and for which op, argument or result XLA inserted each of the others. With --compiled, XLA compiles what JAX
    lowered (FILE.py:NAME) first.

    To compare the costs of several shardings side by side, use `xbuild shard TARGET --compare A B`. A and B may be
    names in TARGET's file.
    """
    refuse_both("compare", "name", "as_hlo", "as_spmd")
    for option in ("compare", "name", "as_hlo", "as_spmd", "output"):
        refuse_both("top", option)
        refuse_both("compiled", option)
    for option in ("as_json", "format"):
        refuse_both(option, "as_hlo", "as_spmd")
    for option in ("compare", "as_hlo", "as_spmd", "as_json", "format"):
        refuse_both("output", option)
    require("-o FILE", output, "theme")
    check_distinct(target_input(target), {"-o": output})
    if others and not compare:
        raise click.UsageError(f"{others[0]} is a second target; to compare it with {target}, use --compare")
    if compare:
        targets_to_compare = [target, *(complete_target(target, other) for other in others)]
        say_comparison(targets_to_compare, how["strategy"], machine)
        return
    modules = module_targets(target, "name", "output", "as_hlo", "as_spmd", "as_json", "format", "top", "compiled")
    if len(modules) > 1:
        say_modules(modules, how["top"])
        return
    if not (name or output or how["as_hlo"] or how["as_spmd"]):
        programs = compiled_programs(target, compiled)
        if programs is not None:
            say_compiled(target, *programs, how["top"])
            return
    propagated = sharding.propagate(load_module(target), strategy=how["strategy"])
    if output is not None:
        write(draw(propagated, name, format_of(output), theme), output)
        return
    if name is not None:
        say_explanation(target, propagated, name)
    elif how["as_hlo"]:
        say(propagated.module.to_hlo())
    else:
        say_shardings(target, propagated, machine, how["as_spmd"], how["top"])


def say_explanation(target: str, propagated: Propagated, name: str) -> None:
    """Print why a value has its sharding and what was inserted for it; or why a collective was inserted, and which
    shardings avoid it.
    """
    subject: sharding.Partitioned | Propagated
    try:
        subject = sharding.partition(propagated)
    except XbuildError:
        subject = propagated  # a program that cannot be partitioned still has explanations
    explanation, advice = sharding.explain(subject, name), advice_for(subject, name)
    facts = {**explanation.to_dict(), **({"advice": [item.to_dict() for item in advice]} if advice else {})}
    if not say_result(target, facts, (), part="explain"):
        say("\n".join([str(explanation), *(f"  {item}" for item in advice)]))


def say_shardings(target: str, propagated: Propagated, machine: str, as_spmd: bool, top: int | None = None) -> None:
    """Print the shardings and the inserted collectives, in the format of --format, or the partitioned program."""
    if as_spmd:
        say(sharding.partition(propagated).module.to_hlo())
        return
    partitioned: sharding.Partitioned | str
    kind = ""
    try:
        partitioned = sharding.partition(propagated)
    except XbuildError as error:
        partitioned, kind = str(error).splitlines()[0], error.kind
    if prints_document():
        issues = [_conflict_issue(conflict, propagated.paths) for conflict in propagated.conflicts[:top]]
        inserted: dict[str, Any] = {"refused": partitioned}
        if isinstance(partitioned, str):
            issues.append(Issue(kind, "warning", f"not partitioned: {partitioned}"))
        else:
            inserted = describe_collectives(partitioned, machine, top)
            issues += collective_issues(partitioned, machine, top)
        say_result(target, {**describe_shardings(propagated, top), "partitioned": inserted}, issues)
        return
    if isinstance(partitioned, str):
        say_lines(
            [(StyledText(f"not partitioned: {partitioned}", "bad"),), *sharding_lines(propagated, shows_all(), top)]
        )
        return
    below = collective_lines(partitioned, machine, shows_all(), top)
    say_lines([answer_line(partitioned), *below, (), *sharding_lines(propagated, shows_all(), top)])


def draw(propagated: Propagated, name: str | None, form: str, theme: str) -> str | bytes:
    """The picture of a partition, or of the tiles of one value with the reasons for its sharding."""
    from ..pictures import Drawing
    from ..pictures.showing import picture_of
    from ..pictures.tiles import tile_picture
    from ..pictures.views import View

    if name is None:
        return Drawing(picture_of(sharding.partition(propagated), View()), theme=theme).render(form)
    if form not in ("svg", "html", "txt"):
        raise click.UsageError(f"tiles can be drawn as svg, html or txt, not as {form}")
    leaf = _first_sharded_leaf(propagated.sharding(name))
    report = str(sharding.explain(propagated, name, leaf=leaf)).partition("\n")[2]
    return Drawing(tile_picture(sharding.tiling(propagated, name, leaf=leaf), report), theme=theme).render(form)


def _first_sharded_leaf(shardings: Any) -> int:
    """The number of the first sharded array of a tuple; 0 if there is none, and for an array."""
    several = shardings if isinstance(shardings, tuple) else ()
    return next((n for n, leaf in enumerate(several) if getattr(leaf, "cut_axes", ())), 0)


def load_module(target: str) -> Module:
    """The one program of a target, before XLA partitions it; raises a usage error if it has one for each device."""
    program = load(target, is_global=True)
    if isinstance(program, ModuleGroup):
        raise click.UsageError(
            "shard takes one program for all devices, but the target has one program for each device"
        )
    return program if isinstance(program, Module) else Module(program.name, program)


def complete_target(target: str, other: str) -> str:
    """A target as it is; a name in the file of the first target as a target."""
    file, colon, _ = target.rpartition(":")
    is_name = bool(colon) and other.isidentifier() and not Path(other).exists()
    return f"{file}:{other}" if is_name else other


def say_comparison(targets: list[str], strategy: Any, machine: str) -> None:
    """Print what the shardings of several targets cost, side by side."""
    if len(targets) < 2:
        raise click.UsageError("--compare needs at least one other target: xbuild shard A --compare B C")
    rows = [costs_of_shardings(load_module(target), strategy, machine) for target in targets]
    programs = [{"target": target, "machine": machine, **row} for target, row in zip(targets, rows, strict=True)]
    if not say_document({"programs": programs}, (), part="compare"):
        say("\n".join(comparison_table([Path(name).name.rpartition(":")[2] for name in targets], rows, machine)))


def refuse_both(*exclusive: str) -> None:
    """Raise a usage error if two options are used that each choose what is printed."""
    if len(options := options_used(*exclusive)) > 1:
        raise click.UsageError(f"{options[0]} and {options[1]} cannot be used together: use only one")


def sharding_lines(propagated: Propagated, all: bool, top: int | None = None) -> Iterator[Line]:
    """The conflicts, then the sharding of each array and where it comes from.

    `top` is the number of arrays that are listed, the largest ones; else ten, or `all`.
    """
    rows = [sized for sized in _rows(propagated) if sized[1]["kind"] != "scalar"]
    sharded = sum(row["is_cut"] for _, row in rows)
    mesh = " x ".join(f"{axis}={size}" for axis, size in propagated.mesh.sizes)
    if propagated.conflicts:
        yield (f"resharded because shardings conflict ({len(propagated.conflicts)})",)
        conflicts, hidden = folded(propagated.conflicts[:top], all)
        yield from ((f"  {in_line(conflict.sentence(propagated.paths))}",) for conflict in conflicts)
        hidden = len(propagated.conflicts) - len(conflicts)
        if hidden:
            yield more_line(hidden, MORE)
        yield ()
    yield (f"{in_line(propagated.module.name)}: mesh {mesh}, {len(rows)} arrays, {sharded} sharded",)
    shown, hidden = _folded_to(rows, top, all, _bytes_of)
    table = columns(
        ("value", "in", "shape", "sharding", "why"),
        (
            (
                _label(row["name"], propagated.paths),
                row["computation"],
                row["shape"],
                row["sharding"],
                _label(row["why"], propagated.paths),
            )
            for _, row in shown
        ),
    )
    for number, line in enumerate(table):
        yield (line,) if number else (StyledText(line, "dim"),)
    if hidden:
        yield more_line(hidden, MORE, "value")


def _label(text: str, names: Mapping[str, str]) -> str:
    """A cell of the table, with parameters by the names that reports give them."""
    before, start, rest = ("", "", text) if not text.startswith("from ") else text.partition("from ")
    name = re.split(r"[\[,]", rest, maxsplit=1)[0]
    return f"{before}{start}{names.get(name, name)}{rest[len(name) :]}"


def describe_shardings(propagated: Propagated, top: int | None = None) -> dict[str, Any]:
    """The table as plain data."""
    return {
        "module": propagated.module.name,
        "mesh": dict(propagated.mesh.sizes),
        "strategy": propagated.strategy,
        "values": [row for _, row in _first([*_rows(propagated)], top, _bytes_of)],
        "conflicts": [_describe_conflict(conflict) for conflict in propagated.conflicts[:top]],
    }


def _describe_conflict(conflict: Conflict) -> dict[str, Any]:
    axes = {name: [axis.name for axis in own] for name, own in conflict.axes}
    return {"at": conflict.at, "op": conflict.what, "rule": conflict.rule, "factor": conflict.factor, "axes": axes}


def _bytes_of(sized: tuple[int, dict[str, Any]]) -> int:
    return sized[0]


def _rows(propagated: Propagated) -> Iterator[tuple[int, dict[str, Any]]]:
    """The bytes and a row for each array that an instruction returns; tuples that only pack arrays have none."""
    entry = propagated.module.entry
    for computation, instruction in propagated.homes():
        if instruction.opcode in ("tuple", "get_tuple_element") and instruction.name != entry.root.name:
            continue
        own = propagated.shardings.get(instruction, ())
        leaf_shardings = own if isinstance(own, tuple) else (own,)
        for leaf, (shape, leaf_sharding) in enumerate(zip(leaves(instruction.shape), leaf_shardings, strict=False)):
            if isinstance(shape, Shape):
                cause = propagated.cause_of(instruction, leaf)
                yield (
                    shape.bytes,
                    {
                        "name": instruction.name + (f"[{leaf}]" if isinstance(own, tuple) else ""),
                        "computation": "" if computation == entry.name else computation,
                        "shape": str(shape.plain()),
                        "sharding": short_form(leaf_sharding),
                        "kind": cause.kind if shape.rank else "scalar",
                        "is_cut": any(dim.axes for dim in getattr(leaf_sharding, "dims", ())),
                        "why": _cause_text(cause),
                        "source": cause.source,
                        "line": None if cause.where is None else str(cause.where),
                    },
                )


def _cause_text(cause: Any) -> str:
    if cause.kind != "propagated":
        return "" if cause.kind == "whole" else str(cause.kind)
    last = cause.steps[-1]
    return f"from {last.source}, by {last.what} {last.at} (level {last.level})"
