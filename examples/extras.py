"""A report for examples whose packages are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def wanted(extra: str) -> Iterator[None]:
    """A context for imports from an extra of the project; exits with the installing command if the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "a package").partition(".")[0]
        raise SystemExit(
            f"this example needs {package}, which is not installed: pip install 'xbuild-hlo[{extra}]'"
        ) from missing
