"""JAX loads this module when it starts its first backend. It installs xbuild's guard if XBUILD_GUARD is set.

Without that variable nothing else is imported: an installed xbuild costs a program of JAX nothing.
"""

import os
import sys


def initialize() -> None:
    """What JAX calls before it compiles anything; whatever goes wrong here, JAX starts."""
    if os.environ.get("XBUILD_GUARD") or "xbuild.guard" in sys.modules:
        try:
            from xbuild import guard

            guard.begin_with_jax()
        except Exception as error:
            print(f"xbuild guard: not installed: {error}", file=sys.stderr)
