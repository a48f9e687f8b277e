"""Random calls end in a result or in a refusal, with a kind, the caller's line and nothing foreign."""

from __future__ import annotations

import pytest

from shape_inference.kinds import KINDS
from tests.tpu.tensorflow.calls import drawn
from tests.tpu.tensorflow.ours import outcome


@pytest.mark.parametrize("seed", range(5))
def test_a_result_or_a_refusal(seed: int) -> None:
    found = [outcome(call) for call in drawn(seed, 60)]
    refusals = [each for each in found if "error" in each]
    assert 10 < len(refusals) < 50
    for refusal in refusals:
        assert refusal["error"] in KINDS
        assert "tests/tpu/tensorflow/ours.py" in refusal["message"]
