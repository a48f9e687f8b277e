"""Runtime: how a runtime matches, buffers, creates communicators, launches and waits; presets, and records as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from attrs import evolve, field, fields, frozen

from shape_inference import refuse

from ..files.arrays import ArchiveError, read_text

Matching: TypeAlias = Literal["site", "channel", "order"]
Pairing: TypeAlias = Literal["channel", "order"]
Creation: TypeAlias = Literal["exist", "first_use", "split", "start"]
Streams: TypeAlias = Literal["each", "communicator", "one"]
Launches: TypeAlias = Literal["together", "in_turn"]

_HINT = "xb.RUNTIMES lists the presets, and docs/checker.md explains each field"


def _one_of(choices: Any) -> Any:
    known = get_args(choices)

    def validate(owner: Any, attribute: Any, value: Any) -> None:
        if value not in known:
            refuse(
                "invalid_attribute",
                f"Runtime: {attribute.name} is {value!r}; expected one of {', '.join(map(repr, known))}",
                _HINT,
            )

    return validate


def _at_least(least: int, *, whole: bool = False) -> Any:
    def validate(owner: Any, attribute: Any, value: Any) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not value >= least or (value != float("inf") and value != int(value)):
            kind = "a whole number" if whole else "a whole number or inf"
            refuse("invalid_attribute", f"Runtime: {attribute.name} is {value!r}; expected {kind} of at least {least}",
                   _HINT)  # fmt: skip
        if whole and value == float("inf"):
            refuse("invalid_attribute", f"Runtime: {attribute.name} is inf; expected a whole number", _HINT)

    return validate


def _is_bool(owner: Any, attribute: Any, value: Any) -> None:
    if not isinstance(value, bool):
        refuse("invalid_attribute", f"Runtime: {attribute.name} is {value!r}; expected True or False", _HINT)


def _is_text(owner: Any, attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or not value:
        refuse("invalid_attribute", f"Runtime: {attribute.name} is {value!r}; expected a name", _HINT)


def _names(given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        refuse(
            "invalid_attribute", f"Runtime: synchronizing is {given!r}; expected names of custom call targets", _HINT
        )
    return tuple(names)


@frozen(kw_only=True)
class Runtime:
    """How a runtime makes devices wait. The default values are the rules of `xb.check` without a runtime.

    Each device launches its instructions in order, and a synchronous instruction ends before the next one begins.

    - `collectives`: collectives match by "site" (the same instruction on all devices), by "channel" (one channel_id and
      one group), or by "order": the n-th collective of each member of a group, whatever it is.
    - `own_pairs`: permutes with different source-target pairs meet, and each device receives by its own pairs.
    - `transfers`: sends and recvs match by "channel", or by "order": the n-th send from one device to another goes to
      the n-th recv there.
    - `eager_bytes`: a send of at most this many bytes ends before its recv is posted.
    - `communicators`: they "exist"; the "first_use" of a group creates its communicator, which waits for all members;
      a first use is a "split", which waits for the members of all groups of the collective; or a device creates all its
      communicators at the "start" of the program, largest first.
    - `pair_communicators`: the first transfer between two devices creates a communicator of these two.
    - `creation_lock`: each host creates one communicator at a time, for all its devices.
    - `streams`: each started collective runs on a stream of its own ("each"), on that of its group ("communicator"), or
      all on "one" stream of the device. A stream runs its collectives in the order of their launches.
    - `resident`: a device runs at most this many collectives at the same time, and a collective that waits for others
      keeps its place.
    - `launch_order`: the collectives of a device begin in the order of their launches, on whatever streams.
    - `synchronizing`: custom calls of these targets wait until all collectives that their device has started end.
    - `threads`: the threads of each host. A collective holds one until it ends; a custom call with a side effect, of a
      Python function or of a synchronizing target holds one until it returns.
    - `callback_threads`: the further threads that a custom call needs at the same time, as one that calls the runtime.
    - `devices_per_host`: the number of devices of each host; None if one host has all.
    - `launches`: a host launches the programs of its devices "together", or "in_turn": each after the one before ends.

    Raises invalid_attribute if a value is not one of these.

    >>> import xbuild as xb
    >>> xb.Runtime(name="mine", collectives="order", eager_bytes=4096).eager_bytes
    4096

    Source: `RUNTIMES`, whose fields docs/checker.md lists with their sources.
    """

    name: str = field(default="runtime", validator=_is_text)
    collectives: Matching = field(default="site", validator=_one_of(Matching))
    own_pairs: bool = field(default=False, validator=_is_bool)
    transfers: Pairing = field(default="channel", validator=_one_of(Pairing))
    eager_bytes: float = field(default=0, validator=_at_least(0))
    communicators: Creation = field(default="exist", validator=_one_of(Creation))
    pair_communicators: bool = field(default=False, validator=_is_bool)
    creation_lock: bool = field(default=False, validator=_is_bool)
    streams: Streams = field(default="each", validator=_one_of(Streams))
    resident: float = field(default=float("inf"), validator=_at_least(1))
    launch_order: bool = field(default=False, validator=_is_bool)
    synchronizing: tuple[str, ...] = field(default=(), converter=_names)
    threads: float = field(default=float("inf"), validator=_at_least(1))
    callback_threads: int = field(default=0, validator=_at_least(0, whole=True))
    devices_per_host: int | None = field(default=None)
    launches: Launches = field(default="together", validator=_one_of(Launches))

    @devices_per_host.validator
    def _check_devices(self, attribute: Any, value: Any) -> None:
        if value is not None:
            _at_least(1, whole=True)(self, attribute, value)

    @property
    def is_timed(self) -> bool:
        """Whether the outcome may depend on which of several waiting calls comes first."""
        return self.creation_lock or min(self.resident, self.threads) < float("inf")

    def host_of(self, device: int) -> int:
        """Return the number of the host of a device."""
        return 0 if self.devices_per_host is None else device // self.devices_per_host

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, in the form of a runtime file."""
        found = {each.name: getattr(self, each.name) for each in fields(Runtime)}
        changed = {each.name: found[each.name] for each in fields(Runtime) if found[each.name] != each.default}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in changed.items()}


RUNTIMES: Mapping[str, Runtime] = {
    each.name: each
    for each in (
        Runtime(
            name="nccl",
            collectives="order",
            transfers="order",
            communicators="first_use",
            pair_communicators=True,
            streams="communicator",
        ),
        Runtime(name="gloo", collectives="order"),
        Runtime(name="xla_cpu", collectives="channel", own_pairs=True),
        Runtime(name="xla_gpu", collectives="order", transfers="order", communicators="start", streams="one"),
        Runtime(name="tpu", collectives="channel"),
    )
}
"""Runtimes by name. The table in docs/checker.md cites a source for each field."""


_MOST_BYTES = 1 << 20
"""The largest runtime file that is read."""


def runtime_of(given: Runtime | str) -> Runtime:
    """The runtime that an argument is: a record, the name of a preset, or the path of a runtime file."""
    if isinstance(given, Runtime):
        return given
    if given in RUNTIMES:
        return RUNTIMES[given]
    try:
        text = read_text(Path(given), _MOST_BYTES).decode("utf-8")
    except (ArchiveError, ValueError) as error:
        refuse("invalid_attribute", f"runtime {given!r} is neither one of {', '.join(RUNTIMES)} nor a runtime file: "
               f"{error}", "pass a name, the path of a TOML file, or a record: xb.Runtime(...)")  # fmt: skip
        raise
    return runtime_from_text(text, Path(given).stem)


def runtime_from_text(text: str, name: str) -> Runtime:
    """The runtime that a TOML document describes: its fields, and `preset`, the runtime that they change."""
    import tomllib  # few runtimes are files

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        refuse("invalid_attribute", f"runtime {name}: the file is not TOML: {error}", _HINT)
        raise
    preset = data.pop("preset", None)
    known = [each.name for each in fields(Runtime)]
    if unknown := sorted(data.keys() - {*known}):
        refuse("invalid_attribute", f"runtime {name}: {unknown[0]!r} is not a field of a runtime",
               f"the fields are preset, {', '.join(known)}")  # fmt: skip
    if preset is not None and (not isinstance(preset, str) or preset not in RUNTIMES):
        refuse(
            "invalid_attribute", f"runtime {name}: preset is {preset!r}; expected one of {', '.join(RUNTIMES)}", _HINT
        )
    base = Runtime() if preset is None else RUNTIMES[preset]
    return evolve(base, **{"name": name, **data})
