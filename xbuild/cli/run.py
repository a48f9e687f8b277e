"""`xbuild run`: runs a program on all its devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from attrs import evolve

from ..core.graph import Module, ModuleGroup
from ..files import arguments as npz_inputs
from ..files import results as archive
from ..files.targets import file_of
from ..properties.agreement import agreeing
from .group import RUN_SECONDS, Amount, entries, load, main, module_of, needs, reported, stop, takes_target
from .keeping import Asked, apart, executed, in_a_folder, takes_machine, takes_source_root
from .support.partition_option import parts, said_of, say_not_partitioned, takes_partition
from .support.paths import distinct, target_of
from .support.saying import say
from .support.summary import summary

DENORMALS = click.Choice(["flush", "keep"])
SEED = click.IntRange(min=0)
"""The type of a seed; NumPy's generators take no negative seed."""

_SECONDS = "Limit on the seconds of the run; with --page or --trace half of them are for these.  [default: 3600]"


@main.command()
@takes_target
@takes_partition
@click.option(
    "--inputs",
    type=click.Path(exists=True, dir_okay=False),
    help="File of arguments, FILE.npz: d<device>_arg<i>, or arg<i> for every device.",
)
@click.option("--random", "seed", type=SEED, metavar="SEED", help="Seed of random arguments.")
@click.option(
    "--outputs",
    type=click.Path(dir_okay=False, writable=True),
    help="File for the results, FILE.npz: d<device>_out<i>.",
)
@click.option(
    "--infeed",
    type=click.Path(exists=True, dir_okay=False),
    help="File of infeed items, FILE.npz: d<device>_infeed<i>, or infeed<i> for every device.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Report values that were clamped, dropped or out of range, and where NaN or infinity is born.",
)
@click.option(
    "--send-buffers",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many sends of a channel may go on before their recvs are posted.",
)
@click.option(
    "--denormals",
    type=DENORMALS,
    help="Whether denormal numbers become zero, as in XLA, or are kept, as with --against stablehlo.  [default: flush]",
)
@click.option(
    "--engine",
    type=click.Choice(["interpreter", "xla", "stablehlo", "both"]),
    default="interpreter",
    show_default=True,
    help="What runs the program: the interpreter, real XLA, StableHLO's reference interpreter, or two, compared.",
)
@click.option(
    "--against",
    type=click.Choice(["xla", "stablehlo"]),
    default="xla",
    help="The engine with which --engine both compares.",
    show_default=True,
)
@click.option(
    "--platform", default="cpu", help="Platform of JAX on which real XLA runs: cpu, gpu, tpu.", show_default=True
)
@click.option(
    "--eps", type=Amount(), help="Tolerance of --engine both, in eps of the element type.  [default: by type]"
)
@click.option("--page", type=click.Path(dir_okay=False), help="File for a page that replays the run, FILE.html.")
@takes_source_root
@takes_machine
@click.option(
    "--trace", "folder", type=click.Path(file_okay=False), help="Folder for the trace, which `xbuild trace` reads."
)
@click.option(
    "--trace-bytes",
    type=click.IntRange(min=0),
    default=1 << 30,
    help="Limit on the bytes of values in the trace.  [default: 1 GiB]",
)
@click.option(
    "--trace-every",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Keep the values of every N-th execution of an instruction.",
)
@click.option("--max-trips", type=click.IntRange(min=0), help="Limit on the trips of any one loop.")
@click.option("--max-seconds", type=Amount(), help=_SECONDS)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=0),
    help="Limit on the bytes of any one value.  [default: half of the machine's memory]",
)
def run(
    target: str,
    inputs: str | None,
    seed: int | None,
    outputs: str | None,
    infeed: str | None,
    strict: bool,
    send_buffers: int,
    denormals: str | None,
    engine: str,
    against: str,
    platform: str,
    eps: float | None,
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

    With --engine xla it runs on real XLA, which JAX brings; with --engine stablehlo on the reference interpreter of
    StableHLO, which jaxlib brings. With --engine both the results are the interpreter's, a line for each output says
    how far those of real XLA (or of --against stablehlo) are from them, and the exit code is 1 where one differs.

    Files of --infeed hold item i of a device as d<device>_infeed<i>, or infeed<i> for every device; of an item that
    is a tuple, element k is d<device>_infeed<i>_<k>. Types that NumPy's files lack are named, as in infeed0:bf16.

    With --strict the results are printed and written as without it; what was found is on stderr, and the exit code 1.

    With --partition the arguments are those of the program for one device, and so are the results, which are compared
    with those of a run on one device.

    With --page and --trace the run is kept, whatever ends it; of a program that is refused, up to where it is stuck.
    """
    from ..running import Limits, engines
    from ..timelines import timeline

    other = against if engine == "both" else engine
    needs("--engine both", engine == "both", "eps", "against")
    needs("--engine xla, or both against it", other == "xla", "platform")
    if other != "interpreter":
        _one_mode(denormals, other)
    needs("--page", page, "source_root", "machine")
    needs("--trace DIR", folder, "trace_bytes", "trace_every")
    apart(folder, file_of(target), inputs, infeed, outputs, page)
    if outputs:
        in_a_folder(outputs)
    read = {**target_of(target), "--inputs": inputs, "--infeed": infeed}
    distinct(read, {"--outputs": outputs, "--page": page})
    program = module_of(load(target))
    say_not_partitioned(program, "run")
    seconds = RUN_SECONDS if max_seconds is None else max_seconds
    given: dict[str, Any] = {"trips": max_trips, "seconds": seconds, "bytes": max_bytes}
    limits = Limits(**{key: value for key, value in given.items() if value is not None})
    arguments = arguments_of(program, inputs, seed, max_bytes)
    items = _infeed(infeed, engine, len(entries(program)), max_bytes)
    for option, value in (("--strict is", strict), ("--page and --trace are", page or folder)):
        if value and engine not in ("interpreter", "both"):
            raise click.UsageError(f"{option} for the interpreter, and --engine {engine} is given")
    asked = Asked(page, folder, {"bytes": trace_bytes, "every": trace_every}, source_root, machine)
    if machine is not None:
        timeline(program, machine)  # refuses a machine or a program before the run
    if asked and limits.seconds is not None:
        limits = evolve(limits, seconds=limits.seconds / 2)
    results, theirs, failure = [], [], None
    mode = denormals or ("keep" if other == "stablehlo" else "flush")
    with reported():
        if other == "xla":
            results = theirs = engines.execute_on_xla(program, arguments, platform=platform, limits=limits)
        if other == "stablehlo":
            results = theirs = engines.execute_on_stablehlo(program, arguments, limits=limits)
        if engine in ("interpreter", "both"):
            options: dict[str, Any] = {"send_buffers": send_buffers, "strict": strict, "denormals": mode}
            options |= {"infeed": items, "limits": limits}
            results, failure = executed(program, arguments, asked, **options)
    shapes, cut, alone = [entry.root.shape for entry in entries(program)], parts(), []
    if cut is not None:
        shapes, results, theirs = cut.joined(results, theirs)
        with reported():
            alone = cut.against_one_device(results[0], denormals=mode, limits=limits)
    if outputs:
        _write(outputs, results, shapes)
    compared = engines.compare(results, theirs, shapes, eps, engine=other) if engine == "both" else []
    if engine == "both":
        told = engines.comparison.lines(compared) if cut is None else said_of(compared, "global")
    else:
        told = summary(results, shapes, is_global=cut is not None)
    for line in (*told, *said_of(alone, "against one device")):
        say(line)
    for written in _written(outputs, page, folder):
        say(written)
    faults = [str(failure)] if failure else []
    if not all(each.same for each in compared):
        faults.append("the engines differ")
    if not all(each.same for each in alone):
        faults.append("the partitioned program differs from the one-device run")
    if faults:
        raise stop("\n".join(faults))


def _written(outputs: str | None, page: str | None, folder: str | None) -> Iterator[str]:
    """A line for each file or folder that a run has written, with the command that reads it."""
    if outputs:
        yield f"wrote {outputs}: the results, by device and output"
    if page:
        yield f"wrote {page}: a page that replays the run, for any browser"
    if folder:
        yield f"wrote {folder}: the trace; `xbuild trace {folder}` asks it, `xbuild step {folder}` goes through it"


def _one_mode(denormals: str | None, other: str) -> None:
    """Refuse a mode for denormal numbers that the engine beside the interpreter does not have."""
    mode, does = {"xla": ("flush", "real XLA flushes"), "stablehlo": ("keep", "the reference interpreter keeps")}[other]
    if denormals not in (None, mode):
        raise click.UsageError(f"--denormals {denormals} is given, and {does} denormal numbers")


def _write(path: str, results: list[Any], shapes: list[Any]) -> None:
    try:
        archive.write_results(path, results, shapes)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None


def _infeed(path: str | None, engine: str, devices: int, most: int | None) -> list[list[Any]] | None:
    if path is None:
        return None
    if engine != "interpreter":
        raise click.UsageError(f"--infeed is for the interpreter, and --engine {engine} is given")
    with _told():
        return npz_inputs.read_infeed(path, devices, most_bytes(most))


def most_bytes(given: int | None) -> int | None:
    """The limit on the bytes of all arguments: the limit of a single value, or half of the memory if that is more."""
    from ..running import Limits

    half = Limits().bytes
    return half if given is None or half is None else max(given, half)


def arguments_of(
    program: Module | ModuleGroup, inputs: str | None, seed: int | None, most: int | None = None
) -> list[list[Any]]:
    """The arguments of each device, from the file or the seed; `most_bytes(most)` limits their bytes."""
    cut = parts()
    shapes = [[p.shape for p in entry.parameters] for entry in entries(program)] if cut is None else [cut.parameters]
    found = _arguments(shapes, inputs, seed, most)
    if cut is not None:
        return cut.cut(found[0])
    return found if inputs else agreeing(program, found)


def _arguments(shapes: list[list[Any]], inputs: str | None, seed: int | None, most: int | None) -> list[list[Any]]:
    if inputs and seed is not None:
        raise click.UsageError("--inputs and --random are both given; one is wanted")
    if seed is None and not inputs and any(map(archive.count_leaves, shapes)):
        raise click.UsageError("the program has parameters: --inputs FILE.npz or --random SEED is wanted")
    with _told():
        if inputs:
            return npz_inputs.read_arguments(inputs, shapes, most_bytes(most))
        return archive.random_arguments(seed or 0, shapes, most_bytes(most))


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except archive.ArchiveError as error:
        raise click.UsageError(str(error)) from None
