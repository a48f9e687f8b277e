"""The process that runs a learner's code: `python -m xbuild.learning.child` reads a request and writes its answer.

The request on stdin is JSON: the name of a job (`jobs.JOBS`), its data, and the limits. The answer on stdout is JSON:
the data that the job returns, or `fault`, the reason why it returns none. The parent trusts neither.

Before it runs the code, the process limits itself: processor, memory, files, and no processes, signals or sockets. On
Linux, a filter of system calls (seccomp) refuses to start processes and programs, to send signals, to trace or limit
other processes, to open sockets, to open files for writing, and to change, move or remove files. Limits that a system
lacks are left out; the parent limits time and output anyway.
Source: Linux, Documentation/userspace-api/seccomp_filter.rst; the tables of system calls of x86_64 and aarch64.

Sections:

    The request and its answer
    The limits of the process
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import struct
import sys
from collections.abc import Mapping
from typing import Any

from shape_inference import XbuildError

from .forking import fork_for_requests
from .jobs import JOBS, prepare
from .puzzle import Unsolved
from .shelf import LessonError

# ----------------------------------------------------------------------------
# The request and its answer

_MOST_FAULT = 4000  # characters


def fork() -> None:
    """Do all imports, and answer each request in a fork of its own."""
    fork_for_requests(prepare, main)


def main() -> None:
    """Answer one request; what the learner's code prints to file descriptors is discarded."""
    request = json.loads(sys.stdin.buffer.read())
    result = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    confine(**request["limits"])
    answer = json.dumps(_answer(request)).encode()
    while answer:
        answer = answer[os.write(result, answer) :]


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return JOBS[request["job"]](request)
    except (Unsolved, XbuildError, LessonError) as fault:
        return {"fault": str(fault)[:_MOST_FAULT]}
    except (MemoryError, RecursionError) as error:
        return {"fault": f"{type(error).__name__} in the solution"}


# ----------------------------------------------------------------------------
# The limits of the process

_CLONE_THREAD = 0x10000

_X86_64 = {
    "clone": 56, "clone3": 435, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "kill": 62, "tkill": 200,
    "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424, "ptrace": 101,
    "process_vm_readv": 310, "process_vm_writev": 311, "prlimit64": 302, "socket": 41, "io_uring_setup": 425,
    "unshare": 272, "setns": 308, "setpriority": 141, "sched_setaffinity": 203, "openat2": 437, "open": 2,
    "openat": 257, "creat": 85, "truncate": 76, "ftruncate": 77, "unlink": 87, "unlinkat": 263, "rename": 82,
    "renameat": 264, "renameat2": 316, "link": 86, "linkat": 265, "symlink": 88, "symlinkat": 266, "mkdir": 83,
    "mkdirat": 258, "rmdir": 84, "mknod": 133, "mknodat": 259, "chmod": 90, "fchmod": 91, "fchmodat": 268,
    "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235,
    "utimensat": 280, "futimesat": 261, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "fallocate": 285, "mount": 165, "umount2": 166, "bpf": 321,
}  # fmt: skip
_AARCH64 = {
    "clone": 220, "clone3": 435, "execve": 221, "execveat": 281, "kill": 129, "tkill": 130, "tgkill": 131,
    "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "pidfd_send_signal": 424, "ptrace": 117, "process_vm_readv": 270,
    "process_vm_writev": 271, "prlimit64": 261, "socket": 198, "io_uring_setup": 425, "unshare": 97, "setns": 268,
    "setpriority": 140, "sched_setaffinity": 122, "openat2": 437, "openat": 56, "truncate": 45, "ftruncate": 46,
    "unlinkat": 35, "renameat": 38, "renameat2": 276, "linkat": 37, "symlinkat": 36, "mkdirat": 34, "mknodat": 33,
    "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54, "utimensat": 88, "setxattr": 5,
    "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "fallocate": 47,
    "mount": 40, "umount2": 39, "bpf": 280,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
"""The number of the architecture and its system calls, by machine."""


def confine(seconds: int, memory: int) -> None:
    """Limit this process and all of its threads, for good; only what limits the system has.

    `seconds` are of the processor, `memory` is the address space in bytes. No file can be written, and no process
    started.
    """
    with contextlib.suppress(ImportError):
        import resource

        limits = {
            "RLIMIT_CPU": seconds, "RLIMIT_AS": memory, "RLIMIT_FSIZE": 0, "RLIMIT_NPROC": 0, "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": 64,
        }  # fmt: skip
        for name, most in limits.items():
            with contextlib.suppress(ValueError, OSError, AttributeError):
                spare = 1 if name == "RLIMIT_CPU" else 0  # the first limit sends a signal that names it
                resource.setrlimit(getattr(resource, name), (most, most + spare))
    if sys.platform == "linux" and platform.machine() in _MACHINES:
        _filter_calls(*_MACHINES[platform.machine()])


_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in seccomp_data
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EXAMINED = {"clone": (0, _CLONE_THREAD, "allow", "refuse"), "open": (1, _WRITES, "refuse", "allow"),
             "openat": (2, _WRITES, "refuse", "allow")}  # fmt: skip
"""System calls that an argument decides: its place, bits, and the results if one of the bits is set, and if none is."""
_UNKNOWN = ("clone3", "openat2")
"""System calls without which the C library uses older ones."""
_X32 = 0x40000000  # from here on, system calls of x86_64 with 32-bit pointers
_ENDS = {"allow": 0x7FFF0000, "refuse": 0x00050000 | errno.EPERM, "unknown": 0x00050000 | errno.ENOSYS}
"""The results of the filter."""


def _filter_calls(architecture: int, calls: Mapping[str, int]) -> None:
    """Install the filter; without it, where the system has no seccomp."""
    refused = [number for name, number in calls.items() if name not in (*_EXAMINED, *_UNKNOWN)]
    steps: list[tuple[int, int, str, str]] = [
        (_LOAD, _ARCHITECTURE, "", ""),
        (_IF_EQUAL, architecture, "", "refuse"),
        (_LOAD, _NUMBER, "", ""),
        (_IF_AT_LEAST, _X32, "refuse", ""),
        *((_IF_EQUAL, number, "refuse", "") for number in refused),
        *((_IF_EQUAL, calls[name], "unknown", "") for name in _UNKNOWN),
    ]
    for name, (argument, bits, with_bits, without) in _EXAMINED.items():
        if name in calls:
            steps += [
                (_IF_EQUAL, calls[name], "", "skip"),
                (_LOAD, _ARGUMENTS + 8 * argument, "", ""),
                (_IF_SET, bits, with_bits, without),
            ]
    places = {name: len(steps) + number for number, name in enumerate(_ENDS)}

    def skipped(place: int, name: str) -> int:
        """The number of instructions that a jump skips: up to an end, or the two that examine; "" skips none."""
        return 2 if name == "skip" else places[name] - place - 1 if name else 0

    program = [(code, skipped(n, yes), skipped(n, no), value) for n, (code, value, yes, no) in enumerate(steps)]
    program += [(_RETURN, 0, 0, value) for value in _ENDS.values()]
    _install(b"".join(struct.pack("HBBI", *each) for each in program), len(program))


class _Filter(ctypes.Structure):
    """The struct sock_fprog of Linux."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _install(code: bytes, length: int) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Filter(length, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    prctl(38, 1, None, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if prctl(22, 2, ctypes.addressof(program), 0, 0) and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


if __name__ == "__main__":
    main()
