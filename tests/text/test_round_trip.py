"""Real XLA takes what we print of what we read for the same program; `python -m tests.round_trip` runs all of them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.oracle
pytest.importorskip("jaxlib")

from tests.round_trip import ENTRIES  # noqa: E402

from .. import round_trip  # noqa: E402

RUNNABLE = [entry for entry in ENTRIES if entry["kind"] != "parse-only"]


def test_xla_reads_our_text_as_what_we_read() -> None:
    assert round_trip.read_otherwise(ENTRIES) == []


@pytest.mark.slow
def test_xla_runs_our_text_as_what_we_read() -> None:
    assert round_trip.run_otherwise(RUNNABLE[::12]) == []


@pytest.mark.slow
def test_another_program_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(each for each in RUNNABLE if each["file"] == "unary_float_0.hlo")
    changed = round_trip.xb.parse_hlo((round_trip.FOLDER / entry["file"]).read_text().replace(" sine(", " cosine("))
    monkeypatch.setattr(round_trip.xb, "parse_hlo", lambda *_: changed)
    assert len(round_trip.read_otherwise([entry])) == 3
    assert "unary_float_0.hlo: " in round_trip.run_otherwise([entry])[0]
