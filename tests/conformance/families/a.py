"""Acceptance cases of the TPU functions."""

from __future__ import annotations

from tests.conformance.families.judging import Case, Outputs, judged

# An error of the cases, and the kinds by which xbuild refuses it, where these have another name.
KINDS: dict[str, tuple[str, ...]] = {}


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    return judged(case, outcome, KINDS)


def outcome(case: Case) -> Outputs:
    """The outputs of a case by name."""
    raise LookupError(f"no function for {case['op']}")
