"""`xbuild run`: runs a program on all its devices, and prints a summary of the results.

Sections:

    The summary of the results
    The command
    Arguments
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from attrs import evolve

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.escaping import in_line

from .. import running
from ..checking.dataflow.promises import share_equal_arguments
from ..core.graph import Module, ModuleGroup
from ..core.issues import Issue
from ..core.report_text import join_words
from ..files import arrays as npz
from ..files.targets import file_of
from ..properties.effects import is_debug_print
from ..properties.sites import reached
from .formats import say_result
from .group import RUN_SECONDS, Amount, entries, load, main, module_of, report_failures, require, stop, takes_target
from .options import (
    PAGE,
    RunRecording,
    check_folder_exists,
    check_outside_trace,
    comparison_lines,
    partition_or_warn,
    partitioned_target,
    run_and_record,
    shows_all,
    takes_all,
    takes_format,
    takes_machine,
    takes_partition,
    takes_runtime,
    takes_send_buffers,
    takes_source_root,
)
from .outputs import MORE, check_distinct, prints_document, say, say_written, target_input, write_atomically

if TYPE_CHECKING:
    from ..runtimes.record import Runtime

# ----------------------------------------------------------------------------
# The summary of the results


def summary(results: Sequence[Any], shapes: Sequence[AnyShape], *, is_global: bool = False) -> Iterator[str]:
    """A line for each output of each device, or of the global program, with its elements or their range."""
    rows = [
        (
            "global" if is_global else f"device {device}",
            f"out{number}",
            str(shape),
            _array_text(np.asarray(leaf), shape),
        )
        for device, (result, result_shape) in enumerate(zip(results, shapes, strict=True))
        for number, (leaf, shape) in enumerate(npz.leaf_values(result, result_shape))
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))


def result_facts(
    results: Sequence[Any], shapes: Sequence[AnyShape], *, is_global: bool = False
) -> Iterator[dict[str, Any]]:
    """The outputs of each device, or of the global program, as plain data; of a large array, its range and mean."""
    from ..traces.summary import plain

    for device, (result, result_shape) in enumerate(zip(results, shapes, strict=True)):
        for number, (leaf, shape) in enumerate(npz.leaf_values(result, result_shape)):
            value = plain(np.asarray(leaf), _MOST_LISTED)
            yield {"device": None if is_global else device, "output": number, "shape": str(shape), "value": value}


_MOST_LISTED = 1000
"""The elements of the largest array that plain data list."""


def comparison_facts(compared: Sequence[Any], *, is_global: bool) -> Iterator[dict[str, Any]]:
    """The compared outputs as plain data."""
    from ..traces.summary import plain

    for each in compared:
        yield {
            "device": None if is_global else each.device,
            "output": each.output,
            "sides": [each.our_engine, each.engine],
            "same": each.same,
            "ulps": plain(np.float64(each.ulps)),
            "index": None if each.same else list(each.place),
            "values": None if each.same else [plain(np.asarray(value)) for value in (each.ours, each.theirs)],
            "note": each.note or None,
        }


def _difference_issues(compared: Sequence[Any]) -> Iterator[Issue]:
    """An error for each compared output that differs."""
    for each in compared:
        if not each.same:
            yield Issue("engines_differ", "error", str(each), devices=(each.device,), facts={"output": each.output})


def _array_text(array: Any, shape: Shape) -> str:
    """An array as text: its elements if they are few, else the minimum, the mean and the maximum."""
    if array.size <= 8:
        return " ".join(np.array2string(array, separator=", ", max_line_width=10**6).split())
    if shape.dtype.kind == "complex":
        return f"mean of magnitudes {np.abs(array).mean():.6g}"
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        return f"min {wide.min():.6g}  mean {wide.mean():.6g}  max {wide.max():.6g}"


# ----------------------------------------------------------------------------
# The command

DENORMALS = click.Choice(["flush", "keep"])
SEED = click.IntRange(min=0)
"""The type of a seed; NumPy's generators take no negative seed."""

_SECONDS = "Limit the run to this many seconds; with --page or --trace, half is reserved for writing.  [default: 3600]"


@main.command()
@takes_target
@takes_partition
@takes_format
@click.option(
    "--inputs",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the arguments d<device>_arg<i>, or arg<i> for every device, from FILE.npz.",
)
@click.option("--random", "seed", type=SEED, metavar="SEED", help="Generate random arguments from this seed.")
@click.option(
    "--outputs",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the results d<device>_out<i> to FILE.npz.",
)
@click.option(
    "--infeed",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the infeed items d<device>_infeed<i>, or infeed<i> for every device, from FILE.npz.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Report clamped, dropped and out-of-range values, and the place where a NaN or infinity first appears.",
)
@takes_send_buffers
@takes_runtime
@click.option(
    "--denormals",
    type=DENORMALS,
    help="Flush denormal numbers to zero, as XLA does, or keep them.  [default: flush; keep with --against stablehlo]",
)
@click.option(
    "--engine",
    type=click.Choice(["interpreter", "auto", "xla", "stablehlo", "both"]),
    default="interpreter",
    show_default=True,
    help="Run the program on this engine; `auto` compiles parts if this pays, `stablehlo` is a reference interpreter, "
    "and `both` compares two engines.",
)
@click.option(
    "--against",
    type=click.Choice(["xla", "stablehlo"]),
    default="xla",
    help="Compare the interpreter with this engine (requires --engine both).",
    show_default=True,
)
@click.option(
    "--platform", default="cpu", help="Run real XLA on this JAX platform: cpu, gpu or tpu.", show_default=True
)
@click.option(
    "--eps",
    type=Amount(),
    help="Set the tolerance in eps of the element type (requires --engine both).  [default: depends on the type]",
)
@click.option(
    "--bisect",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE.npz",
    help="Find the first instruction that differs, and write its operands to FILE.npz and a program with only this "
    "instruction to FILE.hlo (requires --engine both).",
)
@click.option("--page", type=click.Path(dir_okay=False), help="Write a page, FILE.html, that replays the run.")
@takes_source_root
@takes_machine
@click.option(
    "--trace",
    "folder",
    type=click.Path(file_okay=False),
    help="Write a trace of the run to this folder, for `xbuild trace`.",
)
@click.option(
    "--trace-bytes",
    type=click.IntRange(min=0),
    default=1 << 30,
    help="Limit the values in the trace to this many bytes.  [default: 1 GiB]",
)
@click.option(
    "--trace-every",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Record the values of every N-th execution of an instruction.",
)
@click.option("--max-trips", type=click.IntRange(min=0), help="Limit each loop to this many trips.")
@click.option("--max-seconds", type=Amount(), help=_SECONDS)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=0),
    help="Limit each value to this many bytes.  [default: half of the machine's memory]",
)
@takes_all
def run(
    target: str,
    inputs: str | None,
    seed: int | None,
    outputs: str | None,
    infeed: str | None,
    strict: bool,
    send_buffers: int,
    runtime: Runtime | None,
    denormals: str | None,
    engine: str,
    against: str,
    platform: str,
    eps: float | None,
    bisect: str | None,
    page: str | None,
    source_root: str | None,
    machine: str | None,
    folder: str | None,
    trace_bytes: int,
    trace_every: int,
    max_trips: int | None,
    max_seconds: float | None,
    max_bytes: int | None,
) -> None:
    """Check a program, run it on all its devices, and print a summary of the results.

    With --engine auto, jaxlib compiles parts of the program if the run is expected to take far longer than compiling;
    the rest runs in the interpreter. A notice says what was compiled.

    With --engine xla, the program runs on real XLA, which comes with JAX. With --engine stablehlo, the program runs on
    StableHLO's reference interpreter, which comes with jaxlib. With --engine both, the command prints the results of
    the interpreter and, for each output, a line with its difference from real XLA (or, with --against stablehlo, from
    StableHLO's reference interpreter). The exit status is 1 if any output differs. With --bisect FILE.npz, the command
    then finds the first instruction whose value differs, and writes a program with this instruction only:
    `xbuild run FILE.hlo --inputs FILE.npz --engine both` runs it again.

    In the --infeed file, d<device>_infeed<i> is item i of one device, and infeed<i> is item i of every device. If an
    item is a tuple, d<device>_infeed<i>_<k> is its element k. If NumPy's file format does not support the type of an
    item, add the type to the name: infeed0:bf16.

    With --strict, the command prints findings to stderr and leaves the results unchanged. If a strict run has findings,
    the exit status is 1.

    With --partition, the arguments and results are global, and the command compares the results with a run of the
    global program on one device. Differences that shrink at higher precision count as rounding.

    With --page or --trace, the command records the run even if it stops early. A refused program runs until it is
    stuck.
    """
    other = against if engine == "both" else engine
    require("--engine both", engine == "both", "eps", "against", "bisect")
    require("--engine xla, or both against it", other == "xla", "platform")
    if other not in ("interpreter", "auto"):
        _check_denormals(denormals, other)
    require("--page", page, "source_root", "machine")
    require("--trace DIR", folder, "trace_bytes", "trace_every")
    check_outside_trace(folder, file_of(target), inputs, infeed, outputs, page)
    if outputs:
        check_folder_exists(outputs)
    read = {**target_input(target), "--inputs": inputs, "--infeed": infeed}
    part = None if bisect is None else str(Path(bisect).with_suffix(".hlo"))
    if bisect:
        check_folder_exists(bisect)
    check_distinct(read, {"--outputs": outputs, "--page": page, "--bisect": bisect, "--bisect, the program": part})
    program = partition_or_warn(module_of(load(target)), "run")
    if engine in ("interpreter", "auto", "both"):
        _say_skipped_prints(program)
    seconds = RUN_SECONDS if max_seconds is None else max_seconds
    maxima: dict[str, Any] = {"trips": max_trips, "seconds": seconds, "bytes": max_bytes}
    limits = running.Limits(**{key: value for key, value in maxima.items() if value is not None})
    arguments = load_arguments(program, inputs, seed, max_bytes)
    items = _read_infeed(infeed, engine, len(entries(program)), max_bytes)
    for options, is_used in (
        ("--strict needs", strict),
        ("--page and --trace need", page or folder),
        ("--runtime needs", runtime is not None),
    ):
        if is_used and engine not in ("interpreter", "both"):
            raise click.UsageError(f"{options} the interpreter, but --engine is {engine}")
    recording = RunRecording(page, folder, {"bytes": trace_bytes, "every": trace_every}, source_root, machine)
    if machine is not None:
        from ..timelines import timeline

        timeline(program, machine)  # refuses a machine or a program before the run
    if recording and limits.seconds is not None:
        limits = evolve(limits, seconds=limits.seconds / 2)
    results, theirs, failure = [], [], None
    mode: Any = denormals or ("keep" if other == "stablehlo" else "flush")
    with report_failures():
        if other == "xla":
            results = theirs = running.engines.execute_on_xla(program, arguments, platform=platform, limits=limits)
        if other == "auto":
            results = running.execute(
                program, arguments, send_buffers=send_buffers, denormals=mode, limits=limits, engine="auto"
            )
            for line in running.auto.choice_of(program).lines():
                say(f"notice: {line}", err=True)
        if other == "stablehlo":
            results = theirs = running.engines.execute_on_stablehlo(program, arguments, limits=limits)
        if engine in ("interpreter", "both"):
            run_options: dict[str, Any] = {"send_buffers": send_buffers, "strict": strict, "denormals": mode}
            run_options |= {"infeed": items, "limits": limits, "runtime": runtime}
            results, failure = run_and_record(program, arguments, recording, **run_options)
    shapes, split, with_one_device = [entry.root.shape for entry in entries(program)], partitioned_target(), []
    if split is not None:
        shapes, results, theirs = split.join_results(results, theirs)
        with report_failures():
            with_one_device = split.compare_with_one_device(results[0], denormals=mode, limits=limits)
    if outputs:
        _write_outputs(outputs, results, shapes)
    compared = running.engines.compare(results, theirs, shapes, eps, engine=other) if engine == "both" else []
    found = None
    if bisect and isinstance(program, Module) and not all(each.same for each in compared):
        with report_failures():
            found = _first_difference(program, arguments, other, platform, eps, mode, limits)
        if found is not None:
            _write_part(bisect, str(part), found)
    if engine == "both":
        lines = running.engines.comparison.lines(compared) if split is None else comparison_lines(compared, "global")
    else:
        lines = summary(results, shapes, is_global=split is not None)
    if prints_document():
        is_global, both = split is not None, [*compared, *with_one_device]
        same = all(each.same for each in both)
        facts = {
            "kind": "different" if not same else "findings" if failure else "ok",
            "refused": False,
            "name": program.name if isinstance(program, Module) else None,
            "num_devices": len(entries(program)),
            "engine": engine,
            "results": [*result_facts(results, shapes, is_global=is_global)],
            "compared": [*comparison_facts(compared, is_global=is_global)],
            "one_device": [*comparison_facts(with_one_device, is_global=True)],
            "findings": failure.report.to_dict()["findings"] if failure else [],
            "first_difference": None if found is None else found.to_dict(),
        }
        say_result(target, facts, [*(failure.report.issues if failure else ()), *_difference_issues(both)])
    else:
        for line in (*lines, *comparison_lines(with_one_device, "against one device")):
            say(line)
        for line in () if found is None else found.lines():
            say(line)
    _say_written_files(outputs, page, folder)
    if found is not None:
        say_written(bisect, "the operands of this instruction on each device")
        say_written(part, "the program with this instruction only")
    faults = ["\n".join(failure.report.lines(shows_all(), MORE))] if failure else []
    if not all(output.same for output in compared):
        faults.append("the engines differ")
    if not all(output.same for output in with_one_device):
        faults.append("the partitioned program differs from the one-device run")
    if faults:
        raise stop("\n".join(faults))


def _first_difference(
    program: Module,
    arguments: list[Any],
    other: str,
    platform: str,
    eps: float | None,
    denormals: str,
    limits: Any,
) -> Any:
    """The first instruction whose value differs between the interpreter and the other engine."""
    engines = running.engines
    options = {"platform": platform, "limits": limits}
    with (
        engines.bisection.engine("interpreter", program.num_devices, limits=limits, denormals=denormals) as ours,
        engines.bisection.engine(other, program.num_devices, **options) as theirs,
    ):
        return engines.bisect(program, arguments, ours, theirs, eps=eps, names=("interpreter", other))


def _say_skipped_prints(program: Module | ModuleGroup) -> None:
    """Say which calls of jax.debug.print the interpreter skips."""
    computations = dict.fromkeys(each for entry in dict.fromkeys(entries(program)) for each in reached(entry))
    skipped = [call for each in computations for call in each.instructions if is_debug_print(call)]
    names = [*dict.fromkeys(in_line(call.name) for call in skipped)]
    if names:
        more = [f"{len(names) - 3} more"] * (len(names) > 3)
        which = join_words([*names[:3], *more])
        say(f"notice: the run skips {which}: only the process that lowered the program can call jax.debug", err=True)


def _write_part(path: str, part: str, found: Any) -> None:
    """Write the operands of an instruction, and the program that has it only."""
    shapes = [TupleShape(each.shape for each in found.program.entry.parameters)] * len(found.operands)
    try:
        npz.write_results(path, [tuple(row) for row in found.operands], shapes, "arg")
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
    write_atomically(Path(part), found.program.to_hlo())


def _say_written_files(outputs: str | None, page: str | None, folder: str | None) -> None:
    """A line for each file or folder that the command wrote, with the command that reads it."""
    if outputs:
        say_written(outputs, "the results by device and output")
    if page:
        say_written(page, PAGE)
    if folder:
        say_written(
            folder, f"the trace; query it with `xbuild trace {folder}`, or replay it with `xbuild step {folder}`"
        )


def _check_denormals(denormals: str | None, other: str) -> None:
    """Refuse a mode for denormal numbers that the other engine does not have."""
    mode, does = {"xla": ("flush", "real XLA flushes"), "stablehlo": ("keep", "the reference interpreter keeps")}[other]
    if denormals not in (None, mode):
        raise click.UsageError(f"--denormals {denormals} conflicts with the engine: {does} denormal numbers")


def _write_outputs(path: str, results: list[Any], shapes: list[Any]) -> None:
    try:
        npz.write_results(path, results, shapes)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None


# ----------------------------------------------------------------------------
# Arguments


def load_arguments(
    program: Module | ModuleGroup, inputs: str | None, seed: int | None, most: int | None = None
) -> list[list[Any]]:
    """The arguments of each device, from the file or the seed; `_most_bytes(most)` limits their bytes."""
    target = partitioned_target()
    if target is not None:
        (global_arguments,) = _read_or_draw([target.parameters], inputs, seed, most)
        return target.split_arguments(global_arguments)
    arguments = _read_or_draw([[p.shape for p in entry.parameters] for entry in entries(program)], inputs, seed, most)
    return arguments if inputs else share_equal_arguments(program, arguments)


def _read_or_draw(shapes: list[list[Any]], inputs: str | None, seed: int | None, most: int | None) -> list[list[Any]]:
    if inputs and seed is not None:
        raise click.UsageError("--inputs and --random cannot be used together: use only one")
    if seed is None and not inputs and any(map(npz.count_leaves, shapes)):
        raise click.UsageError("the program has parameters: use --inputs FILE.npz or --random SEED")
    with _report_array_errors():
        if inputs:
            return npz.read_arguments(inputs, shapes, _most_bytes(most))
        return npz.random_arguments(seed or 0, shapes, _most_bytes(most))


def _read_infeed(path: str | None, engine: str, devices: int, most: int | None) -> list[list[Any]] | None:
    if path is None:
        return None
    if engine != "interpreter":
        raise click.UsageError(f"--infeed needs the interpreter, but --engine is {engine}")
    with _report_array_errors():
        return npz.read_infeed(path, devices, _most_bytes(most))


def _most_bytes(limit: int | None) -> int | None:
    """The limit on the bytes of all arguments: the limit of a single value, or half of the memory if that is more."""
    half = running.Limits().bytes
    return half if limit is None or half is None else max(limit, half)


@contextmanager
def _report_array_errors() -> Iterator[None]:
    try:
        yield
    except npz.ArchiveError as error:
        raise click.UsageError(str(error)) from None
