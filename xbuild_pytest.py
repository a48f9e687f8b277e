"""pytest loads this module when it starts. It imports xbuild only in a run that uses it.

`xbuild/testing/plugin.py` says what it adds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    with suppress(AttributeError):  # pytest would rewrite the asserts of all packages beside a plug-in, which is slow
        hook: Any = pluginmanager.rewrite_hook
        hook._must_rewrite.difference_update(("xbuild", "interpreter", "shape_inference", "jax_plugins", "examples"))
        hook._marked_for_rewrite_cache.clear()
    group = parser.getgroup("xbuild")
    group.addoption(
        "--xbuild-update", action="store_true", help="Write the contract files that xb.testing.contract compares with."
    )
    group.addoption(
        "--xbuild-guard",
        choices=("stop", "warn"),
        help="Check every program that JAX compiles in every test; stop fails the test, warn prints the report.",
    )
    parser.addini("xbuild_guard", "The default of --xbuild-guard: stop or warn.", default="")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--xbuild-update"):
        os.environ["XBUILD_UPDATE_CONTRACTS"] = "1"


@pytest.fixture
def xbuild_guard() -> Iterator[Any]:
    """The guard of this test: it checks every program that JAX compiles, and fails the test instead of running one
    that is refused. Its `programs` lists what it saw."""
    from xbuild.testing import plugin

    with plugin.guarded("stop") as guard:
        yield guard


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    mode = item.config.getoption("--xbuild-guard") or item.config.getini("xbuild_guard")
    if not mode:
        yield
        return
    from xbuild.testing import plugin

    with plugin.guarded(mode):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    if call.excinfo is not None and "xbuild.checking" in sys.modules:
        from xbuild.testing import plugin

        plugin.add_reports(outcome.get_result(), call.excinfo)
