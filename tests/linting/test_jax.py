"""Programs of JAX with a fault, as lowered and as compiled: `xb.lint` names the rule and the user's line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# The rule, and the line after the function's first; the stages in which it is found if not in both.
EXPECTED = {
    "shifted": [("permutation_zeros", 1)],
    "shifted_with_own": [],
    "summed_twice": [("reduced_twice", 2)],
    "bias_not_reduced": [("not_reduced", 2)],
    "all_reduced": [],
    "adam": [("replicated_state", 2)],
    "returns_whole": [("gathered_state", 2)],
    "gathers_in_loop": [("hoistable_collective", 2)],
    "sums_in_loop": [("hoistable_collective", 3)],
    "widened": [("f32_from_bf16", 1)],
    "summed_in_f32": [],
    "calls_back": [("blocking_callback", 1)],
    "prints": [],
    "moved": [("full_rematerialization", 1)],
    "columns": [("full_rematerialization", 1)],
    "padded": [("avoidable_gather", 1)],
    "transposed": [],
}
COMPILED: dict[tuple[str, str], list[tuple[str, int]]] = {
    ("returns_whole", "compiled"): [("sliced_reduction", 1)],
    ("gathers_in_loop", "compiled"): [],
    ("padded", "compiled"): [],
}
"""XLA:CPU itself moves the gather out of the loop; what is compiled has no shardings to change."""


@pytest.mark.oracle
@pytest.mark.slow
def test_the_rule_and_the_line_of_each_fault() -> None:
    pytest.importorskip("jax")
    module = "tests.linting.jax_programs"
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, timeout=300, check=True)
    rows = json.loads(done.stdout)
    assert {name for name, *_ in rows} == {*EXPECTED}
    for name, stage, warnings, found in rows:
        wanted = COMPILED.get((name, stage), EXPECTED[name])
        assert [(rule, line) for rule, line, _ in found] == wanted, (name, stage)
        assert all(is_own for _, _, is_own in found)
        assert bool(warnings) == any(rule == "full_rematerialization" for rule, _ in wanted), name
