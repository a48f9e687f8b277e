"""The choice of the engine `auto`: counts and times the runs of a program, compiles its parts once, keeps the faster.

Sections:

    Runs that stay in the interpreter
    The choice of a program: counting, the trial, and its report
    What a choice asks of its program
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

from attrs import Factory, define, evolve

from xbuild.checking.model.program import as_module
from xbuild.core.callbacks import CALLBACKS
from xbuild.core.graph import Computation, Module, ModuleGroup
from xbuild.core.memos import memo
from xbuild.properties.effects import FEEDS, is_with_host

from ..compiler.facts import give_native_code
from ..compiler.plan import plan_source
from ..engines.comparison import compare
from ..engines.programs import EngineError
from ..engines.rounding import Run, excuse_rounding
from ..kernels.values import by_device
from ..rules.limits import Limits, unlimited
from ..runtime.run import execute, read_all
from .estimates import seconds_in_interpreter, seconds_to_compile
from .folder import CompiledFolder, cache_folder
from .native import Native, compiled, is_of_parent, is_saved, is_started, require_jaxlib
from .parts import NativePart, Outlined

Program: TypeAlias = Computation | Module | ModuleGroup

# ----------------------------------------------------------------------------
# Runs that stay in the interpreter

_PLAIN = {
    "strict": False, "sequential": False, "observer": None, "runtime": None, "infeed": None, "outfeed": None,
    "check": True, "denormals": "flush",
}  # fmt: skip
"""The options of a run that may use native code."""


_OF_EVALUATE = {
    "seed": 0, "strict": False, "sequential": False, "observer": None, "limits": None, "denormals": "flush",
    "runtime": None,
}  # fmt: skip
"""The options of a call of `evaluate` without any, which takes a shorter way to its program."""


def reason_of_program(program: Program) -> str | None:
    """Why no part of a program is compiled, as a clause; None if parts may be.

    A trial runs a program again, so what the host sees of a run must not depend on how often it runs.
    """
    for entry in _entries(program):
        for each in (i for computation in entry.reachable() for i in computation.instructions):
            is_callback = each.opcode == "custom_call" and each.attributes.custom_call_target in CALLBACKS
            if is_callback or each.opcode in FEEDS or is_with_host(each):
                return f"{each.opcode.replace('_', '-')} %{each.name} reaches the host"
    return None


def reason_of_options(options: Mapping[str, Any], parts: Sequence[NativePart], temporary: int = 0) -> str | None:
    """Why a run with these options stays in the interpreter; None if it may use native code of these parts."""
    for name, plain in _PLAIN.items():
        if options.get(name, plain) != plain:
            return f"a run with {name}={options[name]!r} needs the interpreter"
    if is_of_parent():
        return "the process was forked from one that uses jaxlib"
    limits = options.get("limits")
    if not unlimited():
        return "the run is inside another run that has limits"
    if limits is None:
        return None
    if limits.trips is not None and any(part.has_loop for part in parts):
        return "native code does not count trips, and they are limited"
    if limits.seconds is not None and not all(part.is_bounded for part in parts):
        return "a loop of unknown length cannot be stopped in native code, and the seconds are limited"
    if limits.bytes is not None and temporary > limits.bytes:
        return f"native code uses {temporary:,} bytes of temporary memory, and the limit is {limits.bytes:,}"
    return None


# ----------------------------------------------------------------------------
# The choice of a program: counting, the trial, and its report

State: TypeAlias = Literal["counting", "compiled", "interpreter"]

AT_ONCE = 10.0
"""A program is compiled before its first run if this run is expected to take so many times as long as compiling."""

LOAD_SECONDS = 0.01  # to read a compiled part from its file
START_SECONDS = 0.3  # to start jaxlib
GAIN = 0.97
"""The greatest ratio of the times with and without native code for which the native code is kept."""

TRIES, TRY_SECONDS = 15, 0.25
"""The most runs of a trial, and the seconds after which it ends."""


def choice_of(program: Program, engine: str = "auto") -> EngineChoice:
    """The choice of a program, kept with the program: its state, what is compiled, and why the rest is not.

    Raises ValueError for an engine that is not `auto`, and EngineError if jaxlib is missing.
    """
    if engine != "auto":
        raise ValueError(
            f"expected the engine 'interpreter' or 'auto', got {engine!r}; for other engines, call "
            "xb.engines.execute_on_xla or xb.engines.execute_on_stablehlo"
        )
    return memo(program, "choices", (), lambda: _new_choice(program))


def _new_choice(program: Program) -> EngineChoice:
    require_jaxlib()
    reason = reason_of_program(program)
    return EngineChoice(program) if reason is None else EngineChoice(program, "interpreter", reason)


@define(eq=False, slots=False)
class EngineChoice:
    """How the runs of one program are computed: in the interpreter alone, or with native code for its parts.

    A choice counts and times runs. As soon as the runs have taken as long as compiling is expected to take, it compiles
    the parts, and then runs both programs on the same arguments. If their results agree within the tolerances of
    `compare`, and native code is faster, all later runs use it. So the results of a program change at most once.

    `reason` says why the state is what it is. `runs` and `seconds` are those of the interpreter while it counted;
    `timed` has the shortest runs of the trial, in seconds: of the interpreter, and with native code.
    """

    program: Program
    state: State = "counting"
    reason: str = ""
    runs: int = 0
    seconds: float = 0.0
    timed: tuple[float, float] | None = None
    parts: tuple[NativePart, ...] = ()
    stays: Mapping[str, int] = Factory(dict)
    trouble: str = ""
    _native: Program | None = None
    _codes: tuple[Native, ...] = ()
    _cost: float | None = None
    _lock: Any = Factory(threading.Lock)

    def run(self, function: Callable[..., Any], arguments: Sequence[Any], **options: Any) -> Any:
        """Run the program with `evaluate` or `execute`, with native code if it is chosen and the options allow it."""
        if self.state == "compiled" and options == _OF_EVALUATE and unlimited() and not is_of_parent():
            return self._run_native(function, arguments, {})
        reason = reason_of_options(options, self.parts, self.temporary)
        if self.state == "compiled" and reason is None:
            return self._run_native(function, arguments, options)
        if self.state != "counting" or reason is not None:
            return function(self.program, *arguments, **options)
        return self._run_and_count(function, [_without_iterators(each) for each in arguments], options)

    def _run_native(self, function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        """A run with native code; if XLA fails, this run and all later ones are the interpreter's."""
        try:
            return function(self._native, *arguments, **options)
        except Exception:
            failed = next((code.failure for code in self._codes if code.failure), "")
            if not failed:
                raise
            self._stay(f"XLA failed: {failed}")
        return function(self.program, *arguments, **options)

    def _run_and_count(self, function: Callable[..., Any], arguments: list[Any], options: dict[str, Any]) -> Any:
        """A run in the interpreter, and the trial if it is due; or the first run with native code, if that pays."""
        if self.runs == 0 and self._pays_at_once() and self._may_compile(options, 0.0):
            with _attempt(self._lock) as is_ours:
                if is_ours and self._compile(options):
                    self._set("compiled", "the first run was expected to take far longer than compiling")
            return self.run(function, arguments, **options)
        start = time.perf_counter()
        result = function(self.program, *arguments, **options)
        taken = time.perf_counter() - start
        self.seconds, self.runs = self.seconds + taken, self.runs + 1
        if self.seconds >= self.cost and (self.runs > 1 or taken > 5 * self.cost) and self._may_compile(options, taken):
            with _attempt(self._lock) as is_ours:
                if is_ours and self.state == "counting":
                    self._try(function, arguments, options, result)
        return result

    def _try(self, function: Callable[..., Any], arguments: list[Any], options: dict[str, Any], result: Any) -> None:
        """Compile the parts, run both programs on the same arguments, and choose."""
        if not self._compile(options):
            return
        native = self.outline()
        try:
            theirs = function(native, *arguments, **options)
            difference = _difference(self.program, arguments, result, theirs, options.get("limits"))
        except Exception as error:
            self._stay(f"XLA failed: {error}")
            return
        if difference is not None:
            self._stay(f"the results of XLA differ: {difference}")
            return
        times: list[list[float]] = []
        start = time.perf_counter()
        while not times or (len(times) < TRIES and time.perf_counter() - start < TRY_SECONDS):
            times.append([_seconds_of(function, each, arguments, options) for each in (self.program, native)])
        without, with_code = map(min, zip(*times, strict=True))
        self.timed = without, with_code
        words = f"a run takes {_text(with_code)} with native code, {_text(without)} without"
        if with_code <= GAIN * without:
            self._set("compiled", words)
        else:
            self._stay(words)

    def lines(self) -> Iterator[str]:
        """What is compiled, how long runs took, and why the rest stays in the interpreter."""
        words = {"counting": "interpreter so far", "compiled": "native code", "interpreter": "interpreter"}
        yield f"engine auto: {words[self.state]}: {self.reason or self._counted()}"
        for part in self.parts:
            loops = "" if part.is_bounded else ", with a loop of unknown length"
            saved = ", compiled before" if self.state == "counting" and is_saved(part) else ""
            yield f"  part of {part.instructions} instructions{loops}{saved}: {part.opcodes}"
        for reason, number in sorted(self.stays.items(), key=lambda row: -row[1]):
            yield f"  {number} instruction{'s' * (number != 1)} in the interpreter: {reason}"
        if self.trouble:
            yield f"  {self.trouble}"

    def plan_source(self) -> str:
        """The Python source of the plan with calls of the parts in their places, below comments that describe them."""
        outlined = Outlined()
        entries = _entries(_with_parts(self.program, outlined))
        for part in outlined.parts:
            give_native_code(part.called, partial(_not_compiled))  # one object for each part has one name
        self.outline()
        comments = "".join(f"# {line}\n" for line in self.lines())
        return "".join([comments, *(plan_source(entry) for entry in entries)])

    def _counted(self) -> str:
        if not self.runs:
            return "no run yet"
        return f"{self.runs} run{'s' * (self.runs > 1)} took {_text(self.seconds)}, compiling takes {_text(self.cost)}"

    def outline(self) -> Program:
        """The program with calls of its parts, which are found at the first call."""
        if self._native is None:
            outlined = Outlined()
            self._native = _with_parts(self.program, outlined)
            self.parts, self.stays = tuple(outlined.parts), outlined.reasons
        return self._native

    @property
    def temporary(self) -> int:
        """The most bytes of temporary memory that native code of a part uses."""
        return max((code.temporary for code in self._codes), default=0)

    @property
    def cost(self) -> float:
        """The seconds that compiling the parts is expected to take; reading compiled ones takes less."""
        if self._cost is None:
            self.outline()
            each = (LOAD_SECONDS if is_saved(part) else seconds_to_compile(part.module) for part in self.parts)
            self._cost = START_SECONDS * (not is_started()) + sum(each)
            if not self.parts:
                self._stay("no part is worth compiling")
        return self._cost

    def _pays_at_once(self) -> bool:
        """Whether the first run is expected to take far longer than compiling."""
        seconds = sum(map(seconds_in_interpreter, _entries(self.program)))
        return seconds > AT_ONCE * START_SECONDS and seconds > AT_ONCE * self.cost and bool(self.parts)

    def _may_compile(self, options: Mapping[str, Any], taken: float) -> bool:
        """Whether the limits of a run leave time to compile and to try, and the parts may run under them."""
        limits = options.get("limits")
        if self.state != "counting" or reason_of_options(options, self.parts) is not None:
            return False
        return limits is None or limits.seconds is None or 9 * taken + 2 * self.cost < limits.seconds

    def _compile(self, options: Mapping[str, Any]) -> bool:
        """Compile all parts; whether this succeeds. Otherwise the program stays in the interpreter."""
        self.outline()
        limits = options.get("limits") or Limits()
        codes = []
        for part in self.parts:
            code = compiled(part, limits.bytes, CompiledFolder(cache_folder()))
            if isinstance(code, str):
                self._stay(f"a part of {part.instructions} instructions is not compiled: {code}")
                return False
            codes.append(code)
        for code in codes:
            give_native_code(code.part.called, code)
        self._codes, self.trouble = tuple(codes), next((code.trouble for code in codes if code.trouble), "")
        return True

    def _set(self, state: State, reason: str) -> None:
        self.state, self.reason = state, reason

    def _stay(self, reason: str) -> None:
        self._set("interpreter", reason)
        self._native = None


def _not_compiled(*_: Any) -> Any:
    raise AssertionError("a plan that is only shown was run")


@contextmanager
def _attempt(lock: Any) -> Iterator[bool]:
    """Take a lock if it is free; the value says whether it was."""
    is_ours = lock.acquire(blocking=False)
    try:
        yield is_ours
    finally:
        if is_ours:
            lock.release()


# ----------------------------------------------------------------------------
# What a choice asks of its program


def _seconds_of(
    function: Callable[..., Any], program: Program, arguments: Sequence[Any], options: Mapping[str, Any]
) -> float:
    start = time.perf_counter()
    function(program, *arguments, **options)
    return time.perf_counter() - start


def _entries(program: Program) -> list[Computation]:
    """The entry computations of a program, each once."""
    if isinstance(program, Computation):
        return [program]
    modules = [program] if isinstance(program, Module) else program.modules.values()
    return [*dict.fromkeys(module.entry for module in modules)]


def _with_parts(program: Program, outlined: Outlined) -> Program:
    """The program with calls in the places of its parts."""
    if isinstance(program, Computation):
        return outlined.computation(program)
    if isinstance(program, ModuleGroup):
        return evolve(program, modules={n: _module(each, outlined) for n, each in program.modules.items()})
    return _module(program, outlined)


def _module(module: Module, outlined: Outlined) -> Module:
    """The module with parts; one object for each given one, since a group may have a module several times."""
    entry = outlined.computation(module.entry)
    return memo(
        module,
        "with_parts",
        entry,
        lambda: evolve(module, entry=entry, computations=entry.reachable(), is_scheduled=False),
    )


def _difference(
    program: Program, arguments: Sequence[Any], ours: Any, theirs: Any, limits: Limits | None
) -> str | None:
    """The first output that differs beyond the tolerance of its type, as a sentence; None if all agree.

    On one device, a difference that shrinks in f64 as rounding does counts as none.
    """
    if isinstance(program, ModuleGroup):
        shapes = [program.modules[device].entry.root.shape for device in sorted(program.modules)]
        compared = compare(ours, theirs, shapes)
    else:
        module = as_module(program) if isinstance(program, Computation) else program
        if isinstance(program, Computation):
            ours, theirs, rows = [ours], [theirs], [tuple(arguments)]
        else:
            rows = by_device(arguments[0], [len(module.entry.parameters)] * module.num_devices)
        compared = compare(ours, theirs, [module.entry.root.shape] * module.num_devices)
        if module.num_devices == 1 and not all(each.same for each in compared):
            given = read_all([module], rows)
            runs = [
                Run(module, given, results[0], _first, function)
                for results, function in ((ours, execute), (theirs, _execute_natively))
            ]
            compared = excuse_rounding(compared, *runs, limits=limits)
    return next((str(each) for each in compared if not each.same), None)


def _first(results: Sequence[Any]) -> Any:
    return results[0]


def _execute_natively(module: Module, rows: Any, **options: Any) -> list[Any]:
    """Run a module with native code for its parts, which is used this once. Raises EngineError if it has none."""
    outlined = Outlined()
    program = _module(module, outlined)
    codes = [compiled(part) for part in outlined.parts]
    for part, code in zip(outlined.parts, codes, strict=True):
        if isinstance(code, str):
            raise EngineError("engine_unsupported", f"{code} [engine_unsupported]")
        give_native_code(part.called, code)
    if not codes:
        raise EngineError("engine_unsupported", "no part is compiled [engine_unsupported]")
    return execute(program, rows, **options)


def _without_iterators(value: Any) -> Any:
    """The arguments in a form that can be read twice."""
    if isinstance(value, Mapping):
        return {key: _without_iterators(each) for key, each in value.items()}
    if isinstance(value, Iterator):
        value = [*value]
    return [_without_iterators(each) for each in value] if isinstance(value, list) else value


def _text(seconds: float) -> str:
    """A duration with three digits, such as `12.3 ms`."""
    return (
        f"{seconds:.3g} s"
        if seconds >= 1
        else f"{seconds * 1e3:.3g} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.3g} us"
    )
