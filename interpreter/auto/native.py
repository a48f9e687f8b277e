"""Native code of parts: jaxlib in this process, and compiled parts as functions of NumPy arrays.

Sections:

    The library: one client for each process, never one of a parent
    Compiling
    Calls: arrays in and out
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import platform
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape, TupleShape
from xbuild.stablehlo.reading.bytecode_child import hlo

from ..engines.client import lower
from ..engines.outcomes import error_of
from ..engines.process import Failure
from ..engines.programs import EngineError
from ..kernels.values import NativeMemory
from ..rules.limits import Limits
from .folder import CompiledFolder, cache_folder
from .parts import NativePart

# ----------------------------------------------------------------------------
# The library: one client for each process, never one of a parent


@frozen(eq=False)
class _Library:
    """jaxlib's client of the CPU and its device, with what calls need of jaxlib."""

    client: Any
    device: Any
    internals: Any
    process: int


_made: list[_Library] = []
_making = threading.Lock()


def require_jaxlib() -> None:
    """Raise EngineError if jaxlib is missing."""
    if importlib.util.find_spec("jaxlib") is None:
        raise EngineError(
            "missing_extra",
            "the engine auto needs jaxlib, which is not installed: pip install 'xbuild-hlo[xla]' [missing_extra]",
        )


def is_started() -> bool:
    """Whether this process has a client."""
    return bool(_made)


def is_of_parent() -> bool:
    """Whether this process was forked from one that has a client: its threads are not here, so it cannot be used."""
    return bool(_made) and _made[0].process != os.getpid()


def library() -> _Library:
    """The client of this process, made at the first call. Raises EngineError if jaxlib lacks an internal."""
    with _making:
        if not _made:
            require_jaxlib()
            try:
                _made.append(_new_library())
            except (ImportError, AttributeError) as error:
                raise error_of(Failure("misfit", str(error)), Limits(), "xla", None) from None
        return _made[0]


def _new_library() -> _Library:
    known = os.environ.get("TF_CPP_MIN_LOG_LEVEL")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # jaxlib reads it once; it reports its devices otherwise
    try:
        from jaxlib import _jax, xla_client

        for owner, name in (
            (hlo(), "hlo_module_from_text"), (_jax, "dlpack_managed_tensor_to_buffer"), (_jax, "DeviceList"),
            (xla_client, "CompileOptions"),
        ):  # fmt: skip
            getattr(owner, name)
        client = xla_client.make_cpu_client()
        for name in ("compile_and_load", "deserialize_executable"):
            getattr(client, name)
        return _Library(client, client.local_devices()[0], _jax, os.getpid())
    finally:
        if known is None:
            os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)


# ----------------------------------------------------------------------------
# Compiling


@functools.cache
def _machine() -> str:
    """What machine code depends on besides its program: the version of jaxlib, the features of the processor."""
    features = f"{platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.lower().startswith(("flags", "features")))
    except (OSError, StopIteration):
        pass
    return json.dumps([version("jaxlib"), platform.system(), platform.machine(), features])


def key_of(part: NativePart) -> str:
    """The name of the compiled part: a digest of its text, the version of jaxlib, the processor and XLA's flags."""
    words = [part.module.to_hlo(), _machine(), os.environ.get("XLA_FLAGS", "")]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def is_saved(part: NativePart) -> bool:
    """Whether the folder of compiled parts has a file for this part."""
    return (cache_folder() / f"{key_of(part)}.part").exists()


def compiled(part: NativePart, most_bytes: int | None = None, folder: CompiledFolder | None = None) -> Native | str:
    """The native code of a part, or the reason why it has none.

    `most_bytes` bounds its temporary memory; without a `folder`, the part is compiled anew, and not saved.
    """
    at, key, trouble = library(), key_of(part), ""
    executable, body = None, None if folder is None else folder.read(key)
    try:
        if body is not None:
            executable = _loaded(at, body)
        if executable is None:
            executable = _compile(at, part.module.to_hlo())
            if folder is not None:
                trouble = _save(folder, key, executable)
        used = executable.get_compiled_memory_stats().temp_size_in_bytes
    except Exception as error:
        return f"XLA refuses it: {str(error).splitlines()[0][:200]}"
    if most_bytes is not None and used > most_bytes:
        return f"it would use {used:,} bytes of temporary memory, and the limit is {most_bytes:,}"
    return Native(part, executable, at, used, trouble)


def _save(folder: CompiledFolder, key: str, executable: Any) -> str:
    """Save an executable in place of what the folder has under its key; why this fails, or nothing."""
    try:
        folder.write(key, executable.serialize())
    except Exception as error:  # XLA cannot save every executable
        return f"a compiled part is not saved: {str(error).splitlines()[0][:200]}"
    return folder.trouble


def _compile(at: _Library, text: str) -> Any:
    program = lower(hlo().hlo_module_from_text(text))
    return at.client.compile_and_load(program, at.internals.DeviceList((at.device,)), _options())


def _loaded(at: _Library, body: bytes) -> Any:
    """The executable of a saved part; None if this jaxlib does not read it."""
    try:
        return at.client.deserialize_executable(body, at.internals.DeviceList((at.device,)), _options())
    except Exception:
        return None


def _options() -> Any:
    from jaxlib import xla_client

    return xla_client.CompileOptions()


# ----------------------------------------------------------------------------
# Calls: arrays in and out

MOST_COPIED = 1 << 18
"""The bytes of the largest operand that is copied into memory that XLA knows already; to pass other memory is slower
than to copy this much, unless it is aligned."""

ALIGNMENT = 64
"""The alignment, in bytes, of memory that XLA reads without a copy."""


@define(eq=False)
class Native:
    """The function of a part: takes and returns NumPy arrays and scalars as a plan does.

    An array is passed without a copy if its memory is contiguous and aligned to 64 bytes, and small ones are copied. A
    result is an array in the memory of XLA, which nothing else uses. `temporary` are the bytes that XLA uses besides;
    `trouble` says why the code is not saved, and `failure` why a call failed.
    """

    part: NativePart
    executable: Any
    at: _Library
    temporary: int
    trouble: str
    failure: str = ""
    _takes: tuple[Shape, ...] = field(init=False)
    _gives: tuple[tuple[Any, tuple[int, ...], Any], ...] = field(init=False)
    _free: list[_Operands] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        own, called = self.part.module.entry, self.part.called
        self._takes = tuple([each.shape for each in own.parameters if isinstance(each.shape, Shape)])
        assert isinstance(own.root.shape, TupleShape)
        assert isinstance(called.root.shape, TupleShape)
        shapes = zip(own.root.shape.elements, called.root.shape.elements, strict=True)
        self._gives = tuple(
            (given.dtype.dtype.str, given.dims, None if given == shape else shape.dtype.dtype)
            for given, shape in shapes
            if isinstance(given, Shape) and isinstance(shape, Shape)
        )

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The results of the part. An interrupt ends the call at once if a loop has an unknown number of trips."""
        return self._call(values) if self.part.is_bounded else _in_thread(self._call, values)

    def _call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            operands = self._free.pop()
        except IndexError:
            operands = _Operands(self.at, self._takes)
        try:
            sharded = self.executable.execute_sharded(operands.filled(values))
            arrays = [array for (array,) in sharded.disassemble_into_single_device_arrays()]
            results = tuple([_taken(array, *given) for array, given in zip(arrays, self._gives, strict=True)])
        except Exception as error:
            self.failure = str(error)
            raise
        self._free.append(operands)
        return results


def _in_thread(function: Callable[[Any], Any], given: Any) -> Any:
    """The result of a function that runs in a thread, which an interrupt abandons: XLA handles no signals."""
    outcome: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(function(given))
        except BaseException as error:
            outcome.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="xbuild native code", daemon=True).start()
    done.wait()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


@define(eq=False)
class _Operands:
    """The operands of one call at a time: XLA's arrays, of which the small ones are kept and filled anew."""

    at: _Library
    shapes: tuple[Shape, ...]
    _kept: list[tuple[Any, Any]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._kept = [self._made(shape) if shape.bytes <= MOST_COPIED else (None, None) for shape in self.shapes]

    def _made(self, shape: Shape) -> tuple[Any, Any]:
        """Aligned memory for an operand, and XLA's array in the same memory."""
        memory = _aligned(shape.dims, shape.dtype.dtype)
        array = self._put(memory)
        return (memory, array) if memory.size and array.unsafe_buffer_pointer() == memory.ctypes.data else (None, None)

    def _put(self, array: Any) -> Any:
        return self.at.internals.dlpack_managed_tensor_to_buffer(array.__dlpack__(), self.at.device, None)

    def filled(self, values: Sequence[Any]) -> list[Any]:
        """XLA's arrays with these values."""
        arrays = []
        for value, shape, (memory, array) in zip(values, self.shapes, self._kept, strict=True):
            if memory is None:
                arrays.append(self._put(_exportable(value, shape.dtype.dtype)))
                continue
            if value.dtype != memory.dtype:
                value = value.view(memory.dtype)
            memory[...] = value
            arrays.append(array)
        return arrays


def _aligned(dims: tuple[int, ...], dtype: Any) -> Any:
    """An array in aligned memory."""
    count = prod(dims) * dtype.itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(dims)


def _exportable(value: Any, dtype: Any) -> Any:
    """The array or scalar as a contiguous array, with its bits as this type, that NumPy lets others read."""
    array = np.asarray(value)
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if array.dtype != dtype:
        array = array.view(dtype)
    if not array.flags.writeable and array.size:  # XLA does not write to it
        return np.asarray(NativeMemory(array, array.ctypes.data, array.shape, array.dtype.str))
    return array if array.flags.writeable else array.copy()


def _taken(array: Any, dtype: str, dims: tuple[int, ...], as_type: Any) -> Any:
    """The result as an array in the memory of XLA, or as a scalar."""
    array.block_until_ready()
    if 0 in dims:
        return np.empty(dims, as_type or dtype)
    memory = np.asarray(NativeMemory(array, array.unsafe_buffer_pointer(), dims, dtype))
    if as_type is not None:
        memory = memory.view(as_type)
    return memory if dims else memory[()]
