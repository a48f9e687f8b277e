"""Where xb.tpu and TensorFlow's builder of graphs differ on purpose, call by call."""

from __future__ import annotations

from typing import Any

OUT_OF_RANGE = "dimension_out_of_range"
_GROUPS = {"rank_mismatch", "duplicate_replica", "missing_replica", "replica_out_of_range", "invalid_group"}
_PAIRS = {"bad_pairs", "duplicate_source", "duplicate_target", "replica_out_of_range"}


def reason(call: dict[str, Any], wanted: dict[str, Any], came: dict[str, Any]) -> str | None:
    """Why a call may end differently; None where it may not."""
    kind, refusal = call["kind"], came.get("error")
    if "error" not in wanted and kind in ("sum", "exchange") and refusal in _GROUPS:
        return "groups that TensorFlow's compiler refuses later"
    if "error" not in wanted and kind == "permute" and refusal in _PAIRS:
        return "pairs that TensorFlow's compiler refuses later"
    if "error" not in wanted and kind == "optimizer" and refusal == "duplicate_replica":
        return "repeated ids that TensorFlow does not catch"
    if "error" not in wanted and kind == "exchange" and refusal == "divisibility":
        return "one dimension that is split and joined, and does not divide"
    if "error" not in wanted and kind == "shard" and call["options"]["num_shards"] == 1 and refusal == OUT_OF_RANGE:
        return "the axis of the output of a single shard, which TensorFlow does not look at"
    if "error" not in wanted and refusal == "element_type_mismatch" and "None" in came["message"]:
        return "None on one replica and a scalar of int32 on another, for which TensorFlow puts a zero"
    if refusal is None and wanted.get("error") == "AttributeError":
        return "TensorFlow crashes"
    return None
