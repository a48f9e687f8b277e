"""What an example says where a package that it wants is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def wanted(extra: str) -> Iterator[None]:
    """Imports that an extra of the project brings; ends the program with the line that installs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "a package").partition(".")[0]
        raise SystemExit(
            f"this example wants {package}, which is not installed: pip install 'xbuild-hlo[{extra}]'"
        ) from missing
