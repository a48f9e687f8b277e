"""Sandboxes for learners' code: bubblewrap, in which only Python and packages are visible, or a container."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from ..files.shipped import folder
from ..process.child import start

_PACKAGES = ("xbuild", "interpreter", "shape_inference")
_NEEDED = ("numpy", "attr", "attrs", "networkx", "ml_dtypes", "click")
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store")
_MARKS = ("/.dockerenv", "/run/.containerenv")
"""The files by which Docker and Podman mark a container."""
_SECONDS = 20


@frozen
class Sandbox:
    """A way to run a command: its name, and the words before the command."""

    name: str
    prefix: Sequence[str] = ()

    def command(self, words: Sequence[str]) -> list[str]:
        return [*self.prefix, *words]

    def process(self) -> subprocess.Popen[bytes]:
        """A process of `child.main`, which waits for a request."""
        return start(self.command(python_words("from xbuild.learning.child import main; main()")), environment())


def environment() -> dict[str, str]:
    """The variables of a process for learners' code: one thread, and nothing that the user has set."""
    return {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}


TRUSTED = Sandbox("none")
"""No sandbox: the code has the rights of the user."""


def python_words(code: str) -> list[str]:
    """The command that runs code in Python, which finds this xbuild and no files of the user."""
    root = str(Path(__file__).resolve().parents[2])
    return [sys.executable, "-I", "-B", "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"]


def bubblewrap() -> Sandbox | None:
    """Bubblewrap, if it is installed and works here."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    sandbox = Sandbox("bubblewrap", [program, *_bubblewrap_options()])
    try:
        tried = subprocess.run(
            sandbox.command(python_words("import xbuild.learning.child")),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return sandbox if tried.returncode == 0 else None


def _bubblewrap_options() -> Iterator[str]:
    """No network, no other processes, an empty home; read-only Python and packages, without the shipped solutions."""
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--dev", "/dev", "--proc", "/proc")
    yield from ("--tmpfs", "/tmp", "--chdir", "/tmp")  # first, in case Python or xbuild is below this folder
    for path in _SYSTEM:
        yield from ("--ro-bind-try", path, path)
    for path in sorted(_visible_folders()):
        yield from ("--ro-bind", path, path)
    for path in sorted(_hidden_folders()):
        yield from ("--tmpfs", path)


def _hidden_folders() -> set[str]:
    """The folders with solutions: those of this xbuild, and of a second one that is installed."""
    installed = (Path(each or ".").resolve() / "xbuild" / "examples" for each in sys.path)
    return {str(folder()), *(str(each) for each in installed if each.is_dir())}


def _visible_folders() -> set[str]:
    """The folders of Python, of the packages that xbuild needs, and of xbuild's own packages, without links."""
    folders = {sys.prefix, sys.base_prefix, str(Path(os.path.realpath(sys.executable)).parent)}
    folders |= {str(place.parent) for name in _NEEDED for place in _places(name)}
    folders |= {str(place) for name in _PACKAGES for place in _places(name)}
    return {each for each in folders if each not in ("/", "/usr")}


def _places(name: str) -> list[Path]:
    """The folders of a package."""
    spec = importlib.util.find_spec(name)
    return [Path(place) for place in (spec.submodule_search_locations if spec else None) or []]


def container(classroom: Path) -> Sandbox | None:
    """The container in which xbuild runs, if the folder with the solutions cannot be written."""
    is_inside = any(os.path.exists(mark) for mark in _MARKS)
    return Sandbox("container") if is_inside and not os.access(classroom, os.W_OK) else None


def find_sandbox(classroom: Path) -> Sandbox | None:
    """The sandbox for the solutions in a folder, or None."""
    return bubblewrap() or container(classroom)
