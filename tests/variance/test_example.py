"""The sharded transformer block: gradients by type are those without types, and less is sent."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples import sharded_block


def test_gradients_by_type_are_those_without_types_and_less_is_sent() -> None:
    for a, b in zip(*sharded_block.compare_gradients(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    by_type = sharded_block.communication(sharded_block.typed().module)
    without = sharded_block.communication(sharded_block.untyped())
    assert "reduce_scatter" not in by_type["count"]
    assert by_type["count"].total() < without["count"].total()
    assert by_type["bytes"].total() < 0.7 * without["bytes"].total()


def test_its_loss_is_that_of_one_device() -> None:
    whole = xb.shard_map(sharded_block.loss, xb.Mesh(batch=1, model=1), xb.P(), xb.P())
    given = sharded_block.arguments()
    np.testing.assert_allclose(sharded_block.forward().run(*given), whole(*given), rtol=1e-5)
