"""Reports that a package an example needs is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def wanted(extra: str) -> Iterator[None]:
    """For imports that an extra of the project provides; without it, exit with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "a package").partition(".")[0]
        raise SystemExit(
            f"this example needs {package}, which is not installed: pip install 'xbuild-hlo[{extra}]'"
        ) from missing
