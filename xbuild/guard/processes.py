"""Whether the processes of a job compiled the same program: JAX assumes it, and a job in which they did not hangs.

Each process that compiles a program for devices of several processes leaves a fingerprint in the key-value store of
`jax.distributed`, under the number of that program among those for the same devices, and reads those of the others.
Where fingerprints differ the texts are exchanged, and the check decides on the job: on each device the program of its
process. Different constants or fusions cannot hang; a collective that one process lacks can.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ..checking import Verdict, check
from ..core.graph import Module, ModuleGroup
from ..core.report_text import join_words
from ..text.reader import parse_hlo
from .compilation import DeviceId
from .programs import guarded_runtime, say

SECONDS = 60.0
"""How long a process waits for the others to compile; then it says so, and goes on."""

SILENT_SECONDS = 2.0
"""How long it waits before it says for which processes it waits."""

_SILENT = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*+"?)'
    r'|,? ?metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*+"?)*+\}'
    r"|^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d.*\n)*",
    re.MULTILINE,
)


class KeyValueStore(Protocol):
    """The part of the client of `jax.distributed` that is used."""

    def key_value_set(self, key: str, value: str) -> None: ...

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str: ...


@frozen
class Comparison:
    """The programs that the processes compiled at one point in a job.

    `names` maps each process to the name of its module. `absent` lists the processes that compiled nothing in time.
    `verdict` is the verdict on the complete job, or None if all processes compiled the same program.
    """

    names: Mapping[int, str]
    absent: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    verdict: Verdict | None = None

    @property
    def is_refused(self) -> bool:
        return self.verdict is not None and self.verdict.refused

    def __str__(self) -> str:
        if self.absent:
            return (
                f"{_processes(self.absent)} compiled no program here in {SECONDS:g} s: "
                f"{_processes(sorted(self.names))} will wait in {', '.join(sorted({*self.names.values()}))}"
            )
        if self.verdict is None:
            return "all processes compiled the same program"
        parts = join_words(f"{_processes(each)} ({self.names[each[0]]})" for each in self.groups)
        if not self.is_refused:
            return (
                f"{parts} compiled different programs, but the job cannot hang because of the difference: "
                f"{self.verdict}"
            )
        return f"{parts} compiled different programs, and the job would hang, or fail with mismatched sizes"


def _processes(numbers: Sequence[int]) -> str:
    names = ", ".join(map(str, numbers))
    return f"process {names}" if len(numbers) == 1 else f"processes {names}"


def fingerprint(text: str) -> str:
    """A digest of a program without its metadata, which differs between processes for no reason that matters."""
    return hashlib.sha256(_SILENT.sub(lambda found: found["string"] or "", text).encode()).hexdigest()


def compare(
    store: KeyValueStore, place: str, process: int, name: str, text: str, devices: Sequence[DeviceId]
) -> Comparison:
    """Leave the program of this process at a place of the job, and compare it with those of the other processes.

    Raises what the store raises, other than for a process that leaves nothing in time.
    """
    others = sorted({each.process for each in devices} - {process})
    mine = {"name": name, "fingerprint": fingerprint(text)}
    store.key_value_set(f"{place}/{process}/text", base64.b85encode(gzip.compress(text.encode(), mtime=0)).decode())
    store.key_value_set(f"{place}/{process}", json.dumps(mine))
    found: dict[int, dict[str, str]] = {process: mine}
    began = time.monotonic()

    def collect(until: float) -> list[int]:
        """Read the entries that arrive before a time after the beginning; the processes that left none."""
        for other in [each for each in others if each not in found]:
            entry = _wait(store, f"{place}/{other}", max(began + until - time.monotonic(), 0.001))
            if entry is not None:
                found[other] = json.loads(entry)
        return [each for each in others if each not in found]

    absent = collect(SILENT_SECONDS)
    if absent:
        say(f"process {process} waits for {_processes(absent)} to compile {name}, at most {SECONDS:g} s")
        absent = collect(SECONDS)
        if not absent:
            say(f"process {process} goes on: all have compiled {name}, after {time.monotonic() - began:.0f} s")
    names = {each: found[each]["name"] for each in sorted(found)}
    if absent:
        return Comparison(names, tuple(absent))

    def read(other: int) -> str:
        return text if other == process else _text(store, f"{place}/{other}/text")

    return _compared(names, {each: found[each]["fingerprint"] for each in names}, read, devices)


def compare_programs(names: Mapping[int, str], programs: Mapping[int, str | Module], num_devices: int) -> Comparison:
    """Compare the programs that the processes of a job compiled, given the text or module of each process.

    A dump does not say which devices a process has, so the devices are divided equally among the processes, in order.

    >>> text = "HloModule step\\n\\nENTRY e {\\n  ROOT x = f32[2] parameter(0)\\n}"
    >>> print(compare_programs({0: "step", 1: "step"}, {0: text, 1: text}, 2))
    all processes compiled the same program
    """
    processes = sorted(programs)
    devices = [DeviceId(n, processes[n * len(processes) // num_devices]) for n in range(num_devices)]
    return _compared(
        names, {each: fingerprint(_text_of(programs[each])) for each in processes}, programs.__getitem__, devices
    )


def _compared(
    names: Mapping[int, str],
    fingerprints: Mapping[int, str],
    read: Callable[[int], str | Module],
    devices: Sequence[DeviceId],
) -> Comparison:
    """The comparison of programs by their fingerprints; only of those that differ `read` gets the programs."""
    groups: dict[str, list[int]] = {}
    for each, mark in fingerprints.items():
        groups.setdefault(mark, []).append(each)
    if len(groups) == 1:
        return Comparison(names)
    texts = {first: read(first) for first, *_ in groups.values()}
    by_process = {each: texts[members[0]] for members in groups.values() for each in members}
    return Comparison(names, (), tuple(map(tuple, groups.values())), verdict_of_job(by_process, devices))


def _wait(store: KeyValueStore, key: str, seconds: float) -> str | None:
    try:
        return store.blocking_key_value_get(key, int(seconds * 1000))
    except Exception as error:  # the client raises an error of its own, of a type that differs between versions
        if "DEADLINE" in str(error).upper() or isinstance(error, TimeoutError):
            return None
        raise


def _text(store: KeyValueStore, key: str) -> str:
    return gzip.decompress(base64.b85decode(store.blocking_key_value_get(key, int(SECONDS * 1000)))).decode()


def _text_of(program: str | Module) -> str:
    return program if isinstance(program, str) else program.to_hlo()


def verdict_of_job(programs: Mapping[int, str | Module], devices: Sequence[DeviceId]) -> Verdict:
    """The verdict on a job: on each device, in the order of the device assignment, the program of its process."""
    read: dict[str | Module, Module] = {}
    for process, each in programs.items():
        if each not in read:
            read[each] = parse_hlo(each, f"<process {process}>", origins=True) if isinstance(each, str) else each
    job = ModuleGroup({place: read[programs[device.process]] for place, device in enumerate(devices)})
    return check(job, runtime=guarded_runtime())


def distributed() -> tuple[Any, int] | None:
    """The key-value store of this job and the number of this process; None outside `jax.distributed`."""
    from jax._src import distributed as jax_distributed

    state = jax_distributed.global_state
    return None if state.client is None else (state.client, state.process_id)
