"""Whether the package `interpreter` that Python finds is xbuild's: open-interpreter installs one of the same name."""

from __future__ import annotations

import importlib.util
import warnings
from importlib.machinery import ModuleSpec
from pathlib import Path

from shape_inference import XbuildError

_NAME = "interpreter"
_MARK = b"xbuild-hlo"  # stands in interpreter/__init__.py, as source and as bytecode


class PackageConflict(XbuildError, ImportError):
    """The error for a package `interpreter` that is missing or belongs to another project."""


def conflict() -> str | None:
    """The message about a missing or foreign package `interpreter`; None if the package is xbuild's own.

    Nothing is imported: the file that an import would run is read for the name of xbuild's distribution.
    """
    spec = _spec()
    if spec is not None and _is_own(spec):
        return None
    if spec is None or spec.origin is None:
        found = "xbuild's package 'interpreter' is missing"
    else:
        found = (
            f"the package 'interpreter' at {spec.origin} is not xbuild's (open-interpreter installs one of this name)"
        )
    return (
        f"{found}, so programs can be built but not run; run `pip install --force-reinstall --no-deps xbuild-hlo` to "
        "install xbuild's package, or use separate virtual environments to keep both packages"
    )


def warn_of_conflict() -> None:
    """Warn of a conflict at `import xbuild`; the warning names the line of the import."""
    if (sentence := conflict()) is not None:
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)


def refuse_conflict() -> None:
    """Raise PackageConflict where the package `interpreter` is not xbuild's."""
    if (sentence := conflict()) is not None:
        raise PackageConflict("package_conflict", f"{sentence} [package_conflict]")


def _spec() -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(_NAME)
    except ValueError:  # a module without a spec is imported under this name
        return ModuleSpec(_NAME, None, origin="an unknown place")


def _is_own(spec: ModuleSpec) -> bool:
    """Whether the file of the package, which may be in a zip file, contains the name of xbuild's distribution."""
    if spec.origin is None:
        return False
    read = getattr(spec.loader, "get_data", None)
    try:
        return _MARK in (Path(spec.origin).read_bytes() if read is None else read(spec.origin))
    except OSError:
        return False
