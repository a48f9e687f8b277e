"""The fix that lint prints for a full rematerialization: with it, XLA no longer warns."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

# The lines of the issues, after the first line of the function.
FIXES = re.compile(r"constraint to P\(|make_array_from_callback|again: state P\(")
REPORTED = {
    "jax#21562, xla#15207": [1],
    "jax#18591": [1],
    "openpi, activations": [4, 6],
    "marin, weights of experts": [1],
    "a solver with slabs": [1],
    "three axes at once": [1],
    "three axes in another order": [1],
    "LORRAX, columns": [1],
    "gathered for nothing": [1],
    "openpi#112": [2],
}


@pytest.mark.oracle
@pytest.mark.slow
def test_what_xla_warns_of_is_gone_with_the_fix() -> None:
    pytest.importorskip("jax")
    module = "tests.linting.jax_reshardings"
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, timeout=300, check=True)
    rows = json.loads(done.stdout)
    lines = {}
    for name, before, found, after, left in rows:
        named = [(line, fix) for rule, line, fix in found if rule == "full_rematerialization"]
        assert bool(before) == bool(named) or name == "gathered for nothing", name  # XLA gathers here without a warning
        assert all(
            re.search(r"constraint to P\(|make_array_from_callback|again: state P\(", fix) for _, fix in named
        ), name
        assert after == 0, name
        assert left == [], name
        lines[name] = [line for line, _ in named]
    assert {name: lines[name] for name in REPORTED} == REPORTED
    assert sum(bool(found) for name, found in lines.items() if name not in REPORTED) >= 5
