"""What has to be set before any test is imported."""

import os

from hypothesis import settings

# The oracle reads these when jax is first imported, whichever test does that.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

# One commit has one answer, on a busy machine too; random programs are the campaign's.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
