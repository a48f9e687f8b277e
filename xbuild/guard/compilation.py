"""How the guard sees what JAX compiles: every executable passes through one function of JAX, compiled or cached.

JAX has an official hook on its compiler, but XLA does not run it for an executable from the persistent cache, and JAX
before 0.10.2 does not have it. `jax._src.compiler.compile_or_get_cached` gives every executable, and an executable has
its text; that function is wrapped. The hook is registered, too: it sees what is compiled past that function, and has
the text of an executable that does not give its own. A program that a user serialized and loads is not compiled:
`jax.experimental.serialize_executable` loads it, and its unpickler is wrapped.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from attrs import define

from .programs import say_once


class DeviceId(NamedTuple):
    """A device of JAX: its number, and the process that has it."""

    id: int
    process: int


See: TypeAlias = Callable[[str, str, tuple[DeviceId, ...]], None]


_Protos: TypeAlias = list[bytes]
_compilations: dict[int, _Protos] = {}
"""The calls of the wrapped function that are under way, each with what the hook saw since, in whatever thread.

The keys are the identities of the values: threads add and remove entries at the same time, each only its own.
"""

_HOOK = "xbuild_guard"
_attached: Callable[[], None] | None = None


def attach(see: See) -> None:
    """Call `see` with the name, the HLO text and the devices of each executable of JAX, which must be imported."""
    global _attached
    if _attached is not None:
        return
    hook = CompilerHook(see)
    restore, restore_loading = _wrap(see, hook), _wrap_loading(see)
    if restore is None and not hook.register():
        version = getattr(sys.modules.get("jax"), "__version__", "of an unknown version")
        say_once(f"JAX {version} does not let xbuild see the programs that it compiles")

    def detach_all() -> None:
        hook.clear()
        for each in (restore, restore_loading):
            if each is not None:
                each()

    _attached = detach_all


def detach() -> None:
    """Leave JAX as it was before `attach`."""
    global _attached
    if _attached is not None:
        _attached()
        _attached = None


def _wrap(see: See, hook: CompilerHook) -> Callable[[], None] | None:
    """Wrap the function that gives JAX its executables; the result restores it. None if JAX has no such function."""
    try:
        from jax._src import compiler

        original = compiler.compile_or_get_cached
    except (ImportError, AttributeError):
        return None

    @functools.wraps(original)
    def compile_or_get_cached(*arguments: Any, **named: Any) -> Any:
        hook.register()
        protos: _Protos = []
        _compilations[id(protos)] = protos
        try:
            executable = original(*arguments, **named)
        finally:
            del _compilations[id(protos)]
        with _failing_open():
            found = _text_of(executable, protos)
            if found is not None:
                see(*found, _devices_in(arguments, named))
        return executable

    compiler.compile_or_get_cached = compile_or_get_cached

    def restore() -> None:
        if compiler.compile_or_get_cached is compile_or_get_cached:
            compiler.compile_or_get_cached = original

    return restore


def _wrap_loading(see: See) -> Callable[[], None] | None:
    """Wrap the function that loads serialized executables; the result restores it. None if JAX has no such function."""
    try:
        from jax.experimental import serialize_executable

        unpickler = serialize_executable._JaxPjrtUnpickler
        original = unpickler.persistent_load
    except (ImportError, AttributeError):
        return None

    @functools.wraps(original)
    def persistent_load(self: Any, identifier: Any) -> Any:
        loaded = original(self, identifier)
        if hasattr(loaded, "hlo_modules"):  # it also loads devices and clients
            with _failing_open():
                found = _text_of(loaded, [])
                if found is not None:
                    see(*found, _device_ids(loaded.local_devices()))
        return loaded

    unpickler.persistent_load = persistent_load

    def restore() -> None:
        if unpickler.persistent_load is persistent_load:
            unpickler.persistent_load = original

    return restore


@contextmanager
def _failing_open() -> Iterator[None]:
    """Inside, an error of the guard is a warning, so that the user's program goes on."""
    try:
        yield
    except Exception as error:
        say_once(f"a program runs without a check: {error!r}")


def _text_of(executable: Any, protos: _Protos) -> tuple[str, str] | None:
    """The name and the text of an executable, or of the last module that the hook saw; None if there is neither."""
    try:
        module = executable.hlo_modules()[0]
    except Exception:  # not every backend gives the module of an executable
        return _text_of_proto(protos[-1]) if protos else None
    return module.name, module.to_string()


def _text_of_proto(proto: bytes) -> tuple[str, str]:
    from ..stablehlo.reading.bytecode_child import hlo

    module = hlo().HloModule.from_serialized_hlo_module_proto(proto)
    return module.name, module.to_string()


def _devices_in(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[DeviceId, ...]:
    """The devices of a program in the order of its device assignment: the third argument of JAX's function."""
    devices = named.get("devices", arguments[2] if len(arguments) > 2 else ())
    return _device_ids(devices.flatten().tolist() if hasattr(devices, "flatten") else devices)


def _device_ids(devices: Iterable[Any]) -> tuple[DeviceId, ...]:
    return tuple([DeviceId(each.id, each.process_index) for each in devices])


@define
class CompilerHook:
    """JAX's official hook: XLA calls it with each module that it compiles, in any thread, but not with a cached one."""

    see: See
    _clear: Callable[[], None] | None = None
    _is_tried: bool = False

    def register(self) -> bool:
        """Register the hook, once; whether it is there. JAX starts its backends for it, and must not be doing so."""
        if not self._is_tried:
            self._is_tried = True
            try:
                from jax.extend import xla

                stage = xla.PipelineStage.POST_SCHEDULER
                xla.register_hlo_module_transformation(self._transform, name=_HOOK, stage=stage)
            except Exception:  # this JAX, or the jaxlib beside it, has none
                return False
            self._clear = lambda: xla.clear_hlo_module_transformation(_HOOK, stage)
        return self._clear is not None

    def clear(self) -> None:
        if self._clear is not None:
            with _failing_open():
                self._clear()

    def _transform(self, proto: bytes) -> None:
        """See a module; gives None, since bytes would replace it."""
        under_way = list(_compilations.values())
        for protos in under_way:
            protos[:] = [proto]
        if under_way:
            return
        with _failing_open():
            self.see(*_text_of_proto(proto), ())
