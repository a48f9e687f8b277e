"""The command group `xbuild`, and what its commands share: late imports, limits, loading of a target, exit codes.

Sections:

    Commands imported when they first run
    Limits of a command: seconds and bytes of memory
    The command group xbuild
    Loading of a target, usage errors, and the end of a command
"""

from __future__ import annotations

import importlib
import math
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import click
from attrs import define, field
from click.core import ParameterSource

from shape_inference import XbuildError

from ..core.graph import Computation, Module, ModuleGroup
from ..files import targets as target_files
from ..files.arrays import remove_unfinished
from ..files.targets import Program
from ..process import progress
from ..process.limits import held_bytes
from .candidates import targets
from .options import PARTITION, Command, partition_target, shows_all
from .outputs import INTERRUPTED, MORE, prints_document, report_width, run_to_exit_code, say, say_lines

# ----------------------------------------------------------------------------
# Commands imported when they first run


@define
class LateCommands(MutableMapping[str, click.Command]):
    """Commands by name; `modules` names the module of each, which adds its commands here when it is imported."""

    modules: Mapping[str, str]
    _entered: dict[str, click.Command] = field(factory=dict)

    def __getitem__(self, name: str) -> click.Command:
        if name in self.modules and name not in self._entered:
            import_module(self.modules[name])
        return self._entered[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._entered[name] = command

    def __delitem__(self, name: str) -> None:
        del self._entered[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.modules, **self._entered})

    def __len__(self) -> int:
        return len({*self.modules, *self._entered})

    def __contains__(self, name: object) -> bool:
        return name in self.modules or name in self._entered


# ----------------------------------------------------------------------------
# Limits of a command: seconds and bytes of memory
#
# At its limit the command ends and reports the limit.
#
# An alarm stops a long pass: it raises in the main thread between two bytecodes of Python. If one operation does not
# return in time, such as one on huge arrays, a second thread ends the whole process. Files are written completely or
# not at all, so no partial file remains.

LIMIT = 3
"""The exit code of a command that reached a limit."""

_LONGEST = 1e9  # seconds, about thirty years; timers refuse much longer times
_MOST = 2**63 - 1  # bytes; the largest limit of the system
_FEWEST = 1 << 20
"""The least memory of a command: without the bytes to call a function and to raise an error, Python aborts."""
_ALARM_INTERVAL = 1.0  # seconds between alarms, in case the first exception was swallowed
_ROOT = Path(__file__).resolve().parents[2]
_ACTIVITIES = (
    ("xbuild/text/printer", "printing text"), ("xbuild/text/spelling", ""),  # its caller reads or prints
    ("xbuild/text/", "reading text"), ("xbuild/checking/", "checking the program"),
    ("xbuild/pictures/", "drawing a picture"), ("xbuild/pages/", "writing a page"),
    ("xbuild/editing/", "comparing or extracting programs"), ("xbuild/traces/", "reading a trace"),
    ("xbuild/stepping/", "stepping through a trace"), ("interpreter/", "running the program"),
    ("xbuild/files/", "reading or generating arrays"),
)  # fmt: skip
"""What the command is doing while code under a path runs."""


class TimeIsOver(BaseException):
    """Raised by the alarm, with the message for the user; no `except Exception` catches it."""


@define(eq=False)
class TimeLimit:
    """The limit of seconds of one command.

    `slack` is extra time in which a run that has reached its limit can report. It is 0 if the run is a part of other
    work, as in `equivalent`: such a command ends at once, since a report of the run would be taken for its result.
    """

    seconds: float
    slack: float
    _has_warned_run: bool = field(default=False, init=False)
    activity: str = field(default="", init=False)
    is_over: bool = field(default=False, init=False)
    _before: Any = field(default=None, init=False)
    _thread: threading.Timer | None = field(default=None, init=False)

    def start(self) -> None:
        if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
            return
        self._before = signal.getsignal(signal.SIGALRM)
        first = max(self.seconds + self.slack, 0.001)
        self._thread = threading.Timer(first * 1.25 + 2 + self.slack, self._end)
        self._thread.daemon = True
        self._thread.start()
        # The alarm is set last, so that its exception finds the state that `stop` restores.
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, first, _ALARM_INTERVAL)

    def stop(self) -> None:
        """Stop the clock: the command has ended, or waits for its user."""
        self.is_over = True
        progress.end()
        if self._thread is not None:
            self._thread.cancel()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._thread = None

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Handle the alarm: a run ends with a report of how far it got, any other work ends at once."""
        run = sys.modules.get("interpreter.rules.limits")
        if self.is_over:
            return
        if self.slack and not self._has_warned_run and run is not None and not run.unlimited():
            self._has_warned_run = True
            signal.setitimer(signal.ITIMER_REAL, max(self.slack, _ALARM_INTERVAL), _ALARM_INTERVAL)
            raise run.LimitReached("limit_seconds", f"reached the limit of {self.seconds:g} seconds")
        self.activity = self.activity or _activity(frame)
        raise TimeIsOver(self.message())

    def _end(self) -> None:
        """End the process, from a second thread: the main thread is inside one step that does not return."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        progress.end()
        os.write(2, f"{self.message(self.activity or _activity(frame))}\n".encode())
        remove_unfinished()
        os._exit(LIMIT)

    def message(self, activity: str | None = None) -> str:
        return (
            f"stopped: reached the limit of {self.seconds:g} seconds while {activity or self.activity}; no unfinished "
            f"file is written [limit_seconds]\n  use --max-seconds {max(1, math.ceil(self.seconds * 4))} to allow more"
        )


def _activity(frame: FrameType | None) -> str:
    """What the command is doing, from the innermost frame that tells."""
    for inner, _ in traceback.walk_stack(frame) if frame else ():
        if activity := _activity_of_file(inner.f_code.co_filename):
            return activity
    return "working"


def _activity_of_file(file: str) -> str | None:
    try:
        path = Path(file).relative_to(_ROOT).as_posix()
    except ValueError:
        return None
    return next((activity for prefix, activity in _ACTIVITIES if path.startswith(prefix)), None)


@contextmanager
def limited(seconds: float | None, bytes: int | None, slack: float = 0) -> Iterator[TimeLimit | None]:
    """Inside, the limits hold: the limit of seconds raises TimeIsOver, the limit of bytes MemoryError."""
    limit = None if seconds is None or seconds > _LONGEST else TimeLimit(seconds, slack)
    with ExitStack() as stack:
        if limit is not None:
            stack.enter_context(_quiet_finalizers())
            stack.callback(limit.stop)
            limit.start()  # before the bytes are limited, since a thread takes memory
        if bytes is not None:
            stack.enter_context(_limit_bytes(bytes))
        try:
            yield limit
        finally:  # no call precedes this store, so no alarm can ring before it and skip the rest of the exit
            if limit is not None:
                limit.is_over = True


@contextmanager
def _quiet_finalizers() -> Iterator[None]:
    """Inside, ignore an alarm that rings in a finalizer, since Python can only print its exception; it rings again."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda error: None if isinstance(error.exc_value, TimeIsOver) else before(error)
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def _limit_bytes(bytes: int) -> Iterator[None]:
    """Inside, this process may take at most `bytes` more memory than it holds; only on Linux."""
    held = held_bytes()
    if held is None:
        yield
        return
    if bytes < _FEWEST:
        raise MemoryError
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [min(held + bytes, _MOST), *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# ----------------------------------------------------------------------------
# The command group xbuild

REFUSED = 1
"""The exit code of a command that refuses a program, or finds a difference."""


class Amount(click.FloatRange):
    """The type of an option that takes a number of 0 or more; refuses NaN, which compares with nothing."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        amount = super().convert(value, parameter, context)
        return self.fail(f"{value} is not a number.", parameter, context) if math.isnan(amount) else amount


SECONDS = 300.0
RUN_SECONDS = 3600.0
"""Default limits on the seconds of a command that reads, checks or draws, and of one that runs a program."""

STARTING = 15
"""Seconds in which JAX may start, which do not count as seconds of a run."""

_MAX_SECONDS = "Limit the command to this many seconds; if it reaches the limit, its exit status is 3."
_MAX_BYTES = "Limit the command's memory to this many bytes.  [default: half of the machine's memory]"


def _count_option(name: str) -> click.Option:
    """An option of every command with a target; `load` reads its value."""

    def store(context: click.Context, _: click.Parameter, value: int | None) -> None:
        context.meta[f"xbuild.{name}"] = value

    sentence = (
        f"Set the number of {name} of a program in HLO text.  [default: inferred from its header, groups and pairs]"
    )
    return click.Option(
        [f"--{name}"], type=click.IntRange(min=1), metavar="N", expose_value=False, callback=store, help=sentence
    )


def _metavar(kind: object) -> str | None:
    """The placeholder for the value of an option in its help: N for an integer, X for any number; else click's."""
    return "N" if isinstance(kind, click.IntRange) else "X" if isinstance(kind, click.FloatRange) else None


_SIZE = re.compile(r"([A-Za-z_][\w.]*)=(\d{1,9})", re.ASCII)


def _shape_option() -> click.Option:
    """The option that states the size of a dimension that StableHLO text leaves unknown."""

    def store(context: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
        matches = [_SIZE.fullmatch(value) for value in values]
        for value, match in zip(values, matches, strict=True):
            if match is None:
                raise click.BadParameter(f"{value!r}: expected NAME=SIZE, such as b=4 or arg0.1=4")
        context.meta["xbuild.shapes"] = {match[1]: int(match[2]) for match in matches if match}

    sentence = (
        "Set the size of an unknown dimension in StableHLO text, by name (b=4) or by argument and dimension (arg0.1=4)."
    )
    return click.Option(
        ["--shape"], multiple=True, metavar="NAME=SIZE", expose_value=False, callback=store, help=sentence
    )


def _stage_option() -> click.Option:
    """The option that selects a text of each module of a dump folder."""

    def store(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta["xbuild.stage"] = value

    sentence = (
        "Read each module in a dump folder as of this stage: `before`, `after` or the name of a pass.  "
        "[default: the last]"
    )
    return click.Option(["--stage"], metavar="STAGE", expose_value=False, callback=store, help=sentence)


class Limited(click.Command):
    """A command with --max-seconds and --max-bytes; a command that declares --max-seconds itself runs a program.

    Such a run ends by itself with a report; the clock of the command allows more time, so that the report is written.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if any(parameter.name == "target" for parameter in self.params):
            counts = [_count_option(name) for name in ("replicas", "partitions")]
            self.params += [*counts, _shape_option(), _stage_option()]
        for parameter in self.params:
            if isinstance(parameter, click.Option) and parameter.metavar is None and not parameter.is_flag:
                parameter.metavar = _metavar(parameter.type)
        self.runs = any(parameter.name == "max_seconds" for parameter in self.params)
        if not self.runs:
            seconds = click.Option(
                ["--max-seconds"], type=Amount(), metavar="S", default=SECONDS, show_default=True, help=_MAX_SECONDS
            )
            limit = click.IntRange(min=0)
            self.params += [seconds, click.Option(["--max-bytes"], type=limit, metavar="N", help=_MAX_BYTES)]

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not context.resilient_parsing:
            return super().parse_args(context, args)
        # A shell requests completions: options must have no effect.
        callbacks = [(parameter, parameter.callback) for parameter in self.params]
        try:
            for parameter in self.params:
                parameter.callback = None
            return super().parse_args(context, args)
        finally:
            for parameter, callback in callbacks:
                parameter.callback = callback

    def invoke(self, context: click.Context) -> Any:
        from ..process.limits import memory

        limits = context.params if self.runs else {key: context.params.pop(key) for key in ("max_seconds", "max_bytes")}
        seconds = RUN_SECONDS if limits["max_seconds"] is None else limits["max_seconds"]
        most = memory() if self.runs else memory() // 2 if limits["max_bytes"] is None else limits["max_bytes"]
        slack = 1 + seconds / 10 + STARTING * (context.params.get("engine", "interpreter") != "interpreter")
        context.obj = None
        try:
            stream = None if prints_document() or context.params.get("as_json") else progress.terminal()
            with progress.shown(stream), limited(seconds, most, slack if self.runs else 0) as context.obj:
                return super().invoke(context)
        except XbuildError as error:
            raise refuse(error) from None
        except TimeIsOver as over:
            message = str(over)
        except MemoryError:
            message = _out_of_memory_message(most, self.runs)
        except (ImportError, SystemError) as error:
            if not _is_out_of_memory(error):
                raise
            message = _out_of_memory_message(most, self.runs)
        except RecursionError:
            message = "stopped: the program is nested too deeply to process [nested_too_deep]"
        say(message, err=True)
        raise SystemExit(LIMIT)


def _is_out_of_memory(error: ImportError | SystemError) -> bool:
    """Whether the limit of bytes caused an error: the limit has ended, so a failed import succeeds now.

    CPython raises SystemError if a native function fails without an exception, as some do that get no memory.
    """
    if isinstance(error, SystemError):
        return True
    import ctypes
    from importlib.machinery import EXTENSION_SUFFIXES

    try:
        if error.path and error.path.endswith(tuple(EXTENSION_SUFFIXES)):  # its name lacks the package
            return bool(ctypes.CDLL(error.path))
        if not (error.path and error.name):
            return False
        missing = re.match(r"cannot import name '(\w+)'", str(error))  # it is still missing if the code is wrong
        module = importlib.import_module(error.name)
        return missing is None or hasattr(module, missing[1])
    except (ImportError, OSError):
        return False


def _out_of_memory_message(most: int, runs: bool) -> str:
    fix = "use --trace-bytes to record less" if runs else f"use --max-bytes {max(most * 2, _FEWEST)} to allow more"
    return f"stopped: the command needs more than {most:,} bytes of memory [limit_bytes]\n  {fix}"


class _Group(click.Group):
    """The group: a command that cannot write, or is interrupted, ends with a message; click handles a closed pipe."""

    command_class = Limited

    def add_late_commands(self, commands: Mapping[str, tuple[str, str]]) -> None:
        """Add commands by name, each with the module that defines it and the first sentence of its help."""
        self.commands = LateCommands({name: module for name, (module, _) in commands.items()})
        self.sentences = {name: sentence for name, (_, sentence) in commands.items()}

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with the full first sentence of its help, without importing their modules."""
        rows = [(name, self.sentences[name]) for name in self.list_commands(context)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        run = partial(super().main, *arguments, standalone_mode=False, **options)
        if not standalone_mode:
            return run()
        sys.exit(run_to_exit_code(run))


def _print_versions(context: click.Context, _option: click.Parameter, is_given: bool) -> None:
    """Print one line with the versions on which a result can depend, for reports of faults."""
    if not is_given or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    found = [f"Python {python_version()}"]
    for package in ("numpy", "ml_dtypes", "jaxlib"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    say(f"xbuild {version('xbuild-hlo')} ({', '.join(found)})")
    context.exit()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Print the versions of xbuild, Python, NumPy, ml_dtypes and, where installed, jaxlib and exit.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Read, check, run, draw and explain XLA programs.

    TARGET is the program that a command reads. In FILE.py:NAME, NAME is a Computation, Module or ModuleGroup, or a
    function without arguments that returns one. The function may also return a program that JAX has lowered, such as
    step.lower(x), or compiled. For a lowered program, most commands read the output of XLA's partitioner, before other
    passes combine its collectives. FILE.hlo, FILE.mlir and FILE.txt contain text that XLA or JAX prints, and FILE.pb
    contains an HLO proto, which is read with jaxlib. A hyphen (-) means stdin. A folder holds either a dump (written by
    --xla_dump_to, JAX_DUMP_IR_TO or `xbuild guard --report`) or one program for each device (device0.hlo, device1.hlo
    and so on).

    If a file or dump has several modules, FILE.hlo#2, FILE.hlo#NAME or FOLDER#NAME selects one. Without a selection,
    check, lint and show process all modules.

    The exit status is 0 for ok, 1 if the program is refused or its run stops early, 2 for a usage error, 3 if the
    command reaches its limit on seconds or bytes, and 130 if it is interrupted.

    To learn what a word in a report means, use `xbuild explain WORD`. To set up completion in your shell, see `xbuild
    completion --help`.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False


# ----------------------------------------------------------------------------
# Loading of a target, usage errors, and the end of a command


def takes_target(command: Command) -> Command:
    """A decorator that adds the argument TARGET to a command."""
    return click.argument("target", shell_complete=targets)(command)


def load(target: str, *, is_global: bool = False) -> Program:
    """Load the program that a target names; a target that cannot be loaded ends the command.

    With `is_global` what JAX lowers is not partitioned.
    """
    try:
        return read_target(target, is_global=is_global)
    except target_files.TargetError as error:
        raise click.UsageError(str(error)) from None
    except (target_files.UserError, XbuildError) as error:
        raise refuse(error, target) from None


def read_target(target: str, *, is_global: bool = False) -> Program:
    """The program that a target names, partitioned with --partition; raises TargetError, UserError and XbuildError."""
    program = target_files.load(target, **counts_given("stage"), is_global=is_global)
    _say_inferred_counts(program)
    return partition_target(program) if click.get_current_context().meta.get(PARTITION) else program


def counts_given(*more: str) -> dict[str, Any]:
    """The values of --replicas, --partitions, --shape and `more` of these options, if they are used."""
    meta, options = click.get_current_context().meta, ("replicas", "partitions", "shapes", *more)
    return {key: meta[f"xbuild.{key}"] for key in options if meta.get(f"xbuild.{key}")}


def module_targets(given: str | Sequence[str], *single: str) -> list[str]:
    """A target for each module of files; raises a usage error if there are several and a `single` option is used."""
    several = (given,) if isinstance(given, str) else given
    try:
        modules = [module for target in several for module in target_files.module_targets(target)]
    except target_files.TargetError as error:
        raise click.UsageError(str(error)) from None
    if len(modules) > 1 and (options := options_used(*single)):
        has = f"{several[0]} has {len(modules)}" if len(several) == 1 else f"the targets have {len(modules)}"
        raise click.UsageError(f"{options[0]} takes one program, but {has}; name one program, such as {modules[0]}")
    return modules


def _say_inferred_counts(program: Program) -> None:
    """Report on stderr the counts of devices that no header states."""
    sentence = program.annotations.get("inferred_counts") if isinstance(program, Module) else None
    if sentence:
        say(
            f"{sentence}; the header does not state these counts; to override them, use --replicas and --partitions",
            err=True,
        )


def options_used(*parameters: str) -> list[str]:
    """The options among these parameters that the command line has, as they are spelled there."""
    context = click.get_current_context()
    spelled = {parameter.name: parameter.opts[-1] for parameter in context.command.params}
    return [spelled[p] for p in parameters if context.get_parameter_source(p) is ParameterSource.COMMANDLINE]


def require(required: str, is_used: object, *parameters: str) -> None:
    """Raise a usage error if one of these options is used without the option that it refines."""
    if not is_used and (options := options_used(*parameters)):
        raise click.UsageError(f"{options[0]} has no effect without {required}")


def stop(report: str) -> SystemExit:
    """Print a report on stderr; returns the exception that ends the command with the exit code of a refused program."""
    say(report, err=True)
    return SystemExit(REFUSED)


def refuse(error: Exception, target: str | None = None) -> SystemExit:
    """Report an error on stderr and in the command's document; returns the exception that ends the command."""
    _say_refusal(error, target)
    return stop(str(error))


def _say_refusal(error: Exception, target: str | None = None) -> None:
    """Print the document of a program that is refused or of a run that stops, unless the format is text."""
    if prints_document():
        from .formats import facts_of, issues_of, say_result

        name = _first_target() if target is None else target
        say_result(name, facts_of(error), issues_of(error, name))


def _first_target() -> str:
    """The first target of the command line."""
    parameters = click.get_current_context().params
    named = parameters.get("target", parameters.get("one", ""))
    return named if isinstance(named, str) else named[0]


@contextmanager
def report_failures(interrupted: str = "interrupted before the run started or after it ended") -> Iterator[None]:
    """Inside, a run that is refused or stops ends the command, with its report on stderr and in its document.

    An interrupt ends it with the message `interrupted`.
    """
    from ..checking import Refused
    from ..running import Stopped

    try:
        yield
    except (Refused, Stopped) as error:
        _say_refusal(error)
        lines = error.lines(shows_all(), report_width(err=True), MORE)
        say_lines([*lines, *((note,) for note in getattr(error, "__notes__", ()))], err=True)
        raise SystemExit(REFUSED) from None
    except XbuildError as error:
        _say_refusal(error)
        raise stop("\n".join([str(error), *getattr(error, "__notes__", ())])) from None
    except KeyboardInterrupt:
        say(interrupted, err=True)
        raise SystemExit(INTERRUPTED) from None


def module_of(program: Program) -> Module | ModuleGroup:
    """The program as a module; a computation becomes a module for one device."""
    return Module(program.name, program) if isinstance(program, Computation) else program


def entries(program: Module | ModuleGroup) -> list[Computation]:
    """The entry of each device's program."""
    if isinstance(program, Module):
        return [program.entry] * program.num_devices
    return [program.modules[device].entry for device in sorted(program.modules)]
