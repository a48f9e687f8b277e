"""Ops without operands, where cotangents end."""

from __future__ import annotations

from ..rules import zero_derivative

zero_derivative("constant", "iota", "parameter", "partition_id", "replica_id")
