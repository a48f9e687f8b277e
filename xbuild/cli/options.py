"""Options that several commands share: what each adds to a command, and how the command uses it.

Sections:

    The options --format and --json
    The option --machine
    The option --partition
    Recording a run: the step page, the folder of a trace, and the run of a refused program
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
from attrs import define, evolve, field

from shape_inference import AnyShape, XbuildError
from shape_inference.escaping import in_line

from ..core.graph import Module, ModuleGroup
from ..files.targets import Program
from .outputs import FORMAT, say

Command = TypeVar("Command", bound=Callable[..., Any])

if TYPE_CHECKING:
    from ..runtimes.record import Runtime
    from ..sharding.partition import Partitioned
    from ..traces import Trace


# ----------------------------------------------------------------------------
# The options --format and --json
#
# A command with them prints its result with `formats.say_result`, unless the format is text.

FORMATS = ("text", "json", "sarif", "github")


def takes_format(command: Any) -> Any:
    """A decorator that adds the options --format and --json to a command; `chosen_format` gives the format."""

    def choose(context: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            _store_format(context, value)

    def choose_json(context: click.Context, _: click.Parameter, is_set: bool) -> None:
        if is_set:
            _store_format(context, "json")

    add_json = click.option(
        "--json", "as_json", is_flag=True, expose_value=False, callback=choose_json, help="Same as --format json."
    )
    add_format = click.option(
        "--format",
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=choose,
        help="Print text, JSON, SARIF 2.1.0 or GitHub Actions annotations to stdout.  [default: text]",
    )
    return add_format(add_json(command))


def _store_format(context: click.Context, form: str) -> None:
    other = context.meta.setdefault(FORMAT, form)
    if other != form:
        other = form if other == "json" else other
        raise click.UsageError(f"--json and --format {other} cannot be used together: use only one")


# ----------------------------------------------------------------------------
# The option --machine
#
# Its value is looked up before the command begins.


def check_machine(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of --machine: an unknown name or an invalid machine file is a usage error."""
    if value is not None:
        from ..timelines import machine

        try:
            machine(value)
        except XbuildError as error:
            raise click.BadParameter(str(error), param=parameter) from None
    return value


# ----------------------------------------------------------------------------
# The option --partition
#
# The command loads a global program, annotated with shardings, and uses the program of each device.

PARTITION = "xbuild.partition"
_PARTITIONED_TARGET = "xbuild.partitioned_target"


@define
class PartitionedTarget:
    """A global program and its partition; `arguments` are the global arrays of a run, once they are read."""

    module: Module
    partitioned: Partitioned
    arguments: list[Any] | None = None

    @property
    def parameters(self) -> list[AnyShape]:
        """The shapes of the global arguments."""
        return list(self.partitioned.shapes)

    def split_arguments(self, arguments: list[Any]) -> list[list[Any]]:
        """The arguments of each device, which are shards of the global arrays; records the global arrays."""
        self.arguments = arguments
        return self.partitioned.arguments(*arguments)

    def join_results(self, *runs: list[Any]) -> tuple[list[AnyShape], ...]:
        """The shape of the global result, and the global results of several runs; an empty run has none."""
        return [self.partitioned.result], *([self.partitioned.joined(results)] if results else [] for results in runs)

    def compare_with_one_device(self, result: Any, **options: Any) -> list[Any]:
        """Compare each global output with the run of the global program on one device; rounding is no difference.

        Gives nothing, with a notice, if the program has parts for each device.
        """
        from ..sharding.unpartitioned import is_per_device_in_part

        if is_per_device_in_part(self.module):
            say(
                f"notice: parts of {self.module.name} are already partitioned, so a run on one device cannot check the "
                "result",
                err=True,
            )
            return []
        from ..running import engines, execute, rounding

        module, arguments = evolve(self.module, num_partitions=1), self.arguments or []
        (one,) = execute(module, [arguments], **options)
        partitioned = self.partitioned
        compared = engines.compare([result], [one], [partitioned.result], our_engine="partitioned", engine="one device")
        return rounding.excuse_rounding(
            compared,
            rounding.Run(module, [arguments], one, lambda results: results[0]),
            rounding.Run(partitioned.module, partitioned.arguments(*arguments), result, partitioned.joined),
            **options,
        )


def comparison_lines(compared: Sequence[Any], label: str) -> Iterator[str]:
    """A line for each compared output of the global program; `label` replaces the device at its start."""
    for output in compared:
        yield f"{label}  {str(output).partition('  ')[2]}"


def takes_partition(command: Any) -> Any:
    """A decorator that adds the option --partition to a command; `load` of the group then partitions the program."""

    def store(context: click.Context, _: click.Parameter, is_set: bool) -> None:
        context.meta[PARTITION] = is_set

    sentence = "Partition an annotated program first, and use the program that each device runs."
    return click.option("--partition", is_flag=True, expose_value=False, callback=store, help=sentence)(command)


def partition_target(program: Program) -> Module:
    """The program of each device of an annotated program; `partitioned_target` returns both later."""
    from ..sharding.partition import partition

    if isinstance(program, ModuleGroup):
        raise click.UsageError(
            "--partition takes one program for all devices, but the target has one program for each device"
        )
    module = program if isinstance(program, Module) else Module(program.name, program)
    target = PartitionedTarget(module, partition(module))
    click.get_current_context().meta[_PARTITIONED_TARGET] = target
    return target.partitioned.module


def partition_parts(program: Module) -> Module | None:
    """The program of each device of a program that is written per device in part, with a notice; else None.

    Such a program, as of `jax.shard_map`, cannot be checked or run before it is partitioned.
    """
    from ..sharding.unpartitioned import annotated_devices, is_per_device_in_part

    if not is_per_device_in_part(program):
        return None
    try:
        partitioned = partition_target(program)
    except XbuildError:
        return None
    name, devices = in_line(program.name), annotated_devices(program)
    say(f"notice: {name} is for {devices} devices but is not partitioned yet, so xbuild has partitioned it", err=True)
    return partitioned


def partitioned_target() -> PartitionedTarget | None:
    """The command's program before and after --partition; None without that option."""
    context = click.get_current_context(silent=True)
    target = None if context is None else context.meta.get(_PARTITIONED_TARGET)
    assert target is None or isinstance(target, PartitionedTarget)
    return target


AnyProgram = TypeVar("AnyProgram", bound=Program)


def partition_or_warn(program: AnyProgram, participle: str) -> AnyProgram | Module:
    """The program, partitioned if it is written per device in part; a warning on stderr if it is annotated otherwise.

    `participle` says what the command does with a global program, as in "is run".
    """
    from ..sharding.unpartitioned import not_partitioned

    if partitioned_target() is None and isinstance(program, Module):
        partitioned = partition_parts(program)
        if partitioned is not None:
            return partitioned
    several = program.modules.values() if isinstance(program, ModuleGroup) else (program,)
    for module in dict.fromkeys(each for each in several if isinstance(each, Module)):
        if note := not_partitioned(module, participle):
            say(f"notice: {note}; --partition partitions the program first", err=True)
    return program


# ----------------------------------------------------------------------------
# Recording a run
#
# The step page, the folder of the trace, and the run of a refused program up to where it is stuck.

PAGE = "a page for any browser that replays the run"
"""What a step page is, for the line that says that it was written."""

REFUSED_SECONDS, REFUSED_TRIPS = 3.0, 100_000
"""Default limits on the seconds and trips of the run of a refused program."""


def check_page(page: str) -> None:
    """Raise a usage error if a page cannot have this name, or its folder does not exist."""
    if Path(page).suffix not in (".html", ".htm"):
        raise click.UsageError(f"--page {page}: expected a file name that ends in .html")
    check_folder_exists(page)


def _check_page(recording: Any, attribute: Any, page: str | None) -> None:
    if page is not None:
        check_page(page)


def check_folder_exists(path: str) -> None:
    """Raise a usage error if the folder of a file that the command will write does not exist."""
    if not Path(path).absolute().parent.is_dir():
        raise click.UsageError(f"cannot write {path}: the folder does not exist")


def check_outside_trace(folder: str | None, *files: str | None) -> None:
    """Raise a usage error if a file of the command is in the folder of its trace."""
    if folder is None:
        return
    from ..traces.folder import TraceError, apart_from

    try:
        apart_from(Path(folder), [each for each in files if each])
    except TraceError as error:
        raise click.UsageError(str(error)) from None


def takes_all(command: Command) -> Command:
    """A decorator that adds the option --all to a command that prints a report; `shows_all` asks for it."""

    def keep(context: click.Context, _: click.Parameter, is_set: bool) -> None:
        context.meta[_ALL] = is_set

    sentence = "Show all rows of each list instead of the first ten and, for a dump folder, every stage of each module."
    return click.option("--all", is_flag=True, expose_value=False, callback=keep, help=sentence)(command)


_ALL = "xbuild.all"


def shows_all() -> bool:
    """Whether the command line has --all."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_ALL))


def takes_source_root(command: Command) -> Command:
    """A decorator that adds the option --source-root to a command that writes a page."""
    sentence = "On the page, show the source files in this folder that the program mentions.  [default: none]"
    return click.option("--source-root", type=click.Path(exists=True, file_okay=False), help=sentence)(command)


def takes_send_buffers(command: Command) -> Command:
    """A decorator that adds the option --send-buffers to a command that checks or runs a program."""
    sentence = "Allow this many sends on each channel to proceed before their recvs are posted."
    kind = click.IntRange(min=0)
    return click.option("--send-buffers", type=kind, default=0, show_default=True, help=sentence)(command)


Waiting: TypeAlias = Mapping[str, Any]
"""The arguments of the check that say how devices wait, by name: send_buffers and runtime."""


def takes_runtime(command: Command) -> Command:
    """A decorator that adds the option --runtime, whose value is a record, to a command that checks or runs."""
    sentence = (
        "Make devices wait as this runtime does: nccl, gloo, xla_cpu, xla_gpu, tpu, or a TOML file with the fields of "
        "xb.Runtime.  [default: none]"
    )
    kind = "NAME|FILE.toml"
    return click.option("--runtime", metavar=kind, callback=_read_runtime, help=sentence)(command)


def _read_runtime(_: click.Context, parameter: click.Parameter, value: str | None) -> Runtime | None:
    """The callback of --runtime."""
    return None if value is None else read_runtime(value, parameter)


def read_runtime(value: str, parameter: click.Parameter) -> Runtime:
    """The runtime of this name or in this file; an unknown name or an invalid file is a usage error."""
    from ..runtimes.record import runtime_of

    try:
        return runtime_of(value)
    except XbuildError as error:
        raise click.BadParameter(str(error), param=parameter) from None


def takes_machine(command: Command) -> Command:
    """A decorator that adds the option --machine to a command that writes a page."""
    sentence = "On the page, also show the lanes to scale, with times modelled on this machine (see `xbuild cost`)."
    return click.option("--machine", metavar="NAME", callback=check_machine, help=sentence)(command)


@define
class RunRecording:
    """Where a run is recorded (a page, a folder, both or neither), and how many of its values."""

    page: str | None = field(default=None, validator=_check_page)
    folder: str | None = None
    sampling: dict[str, int] = field(factory=dict)
    source_root: str | None = None
    machine: str | None = None

    def __bool__(self) -> bool:
        return self.page is not None or self.folder is not None

    @property
    def options(self) -> dict[str, Any]:
        if self.folder is not None:
            return {"origins": self.page is not None, "folder": self.folder, **self.sampling}
        return {"origins": True, "bytes": 1 << 30}

    def write_page(self, trace: Trace) -> None:
        """Write the page of a trace, if the user requested one."""
        if self.page is None:
            return
        from ..pages import write_page

        target = partitioned_target()
        partitioned = None if target is None else target.partitioned
        try:
            write_page(trace, self.page, source_root=self.source_root, machine=self.machine, partitioned=partitioned)
        except OSError as error:
            raise click.UsageError(f"{self.page}: {error.strerror}") from None


def run_and_record(
    program: Module | ModuleGroup, arguments: list[Any], recording: RunRecording, **options: Any
) -> tuple[Any, Any]:
    """The results of a run and its StrictFailure, if it has one; raises what `execute` raises, after recording it."""
    from ..checking import Refused
    from ..running import Stopped, StrictFailure, execute

    if not recording:
        try:
            return execute(program, arguments, **options), None
        except StrictFailure as failure:
            return failure.results, failure
    from ..running import tracing

    try:
        trace, end = _report_trace_errors(tracing.run_traced, program, arguments, **recording.options, **options)
    except Refused as refused:
        recording.write_page(
            _report_trace_errors(trace_refused, program, arguments, refused.verdict, recording.options, **options)
        )
        raise
    recording.write_page(trace)
    if isinstance(end, Stopped):
        raise end
    return trace.results, end


def _report_trace_errors(record: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function that writes a trace; a folder that cannot be written is a usage error."""
    from ..traces import TraceError

    try:
        return record(*arguments, **options)
    except TraceError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None


def trace_refused(
    program: Module | ModuleGroup, arguments: list[Any], verdict: Any, options: dict[str, Any], **run_options: Any
) -> Trace:
    """The trace of a refused program, run in recorded order until it is stuck; empty if it cannot run at all."""
    from attrs import evolve

    from ..running import Limits, trace, tracing
    from ..traces import TraceError

    limits = run_options.pop("limits", None) or Limits()
    seconds = REFUSED_SECONDS if limits.seconds is None else limits.seconds
    limits = evolve(limits, seconds=seconds, trips=REFUSED_TRIPS if limits.trips is None else limits.trips)
    try:
        return trace(program, arguments, check=False, limits=limits, **options, **run_options)
    except (TraceError, OSError):
        raise
    except Exception:  # a program that is refused for its structure may fail in any way
        empty = tracing.without_run(program, verdict)
        if options.get("folder") is not None:
            empty.save(options["folder"])
        return empty
