"""Settings that must hold before any test is imported."""

import os
import signal

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
