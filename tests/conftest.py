"""Settings that must hold before any test is imported."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# The oracle reads these when jax is first imported, whichever test does that.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

# One commit has one answer, on a busy machine too; random programs are the campaign's.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

# What a shell starts in the background has interrupts switched off, and tests of interrupts would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that forks in a pytest of its own if this process has threads of JAX, which a fork can deadlock."""
    native = sys.modules.get("interpreter.auto.native")
    has_threads = "jax" in sys.modules or (native is not None and native.is_started())
    if pyfuncitem.get_closest_marker("forks") is None or not has_threads:
        return None
    alone = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", pyfuncitem.nodeid]
    done = subprocess.run(alone, cwd=pyfuncitem.config.rootpath, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return True


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium that is on the machine; skipped where there is none: nothing is downloaded."""
    from tests.fuzzing.names import chromium

    with chromium() as found:
        if found is None:
            pytest.skip("wants Playwright (pip install playwright) and a Chromium on the PATH")
        yield found
