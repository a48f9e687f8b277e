"""StableHLO text as XLA hands it to Shardy: constraints are ops of Shardy's, and top_k is a custom call."""

from __future__ import annotations

import re

CONSTRAINT = re.compile(
    r"stablehlo\.custom_call @Sharding\((?P<operand>%\S+)\) \{.*?xla\.sdy\.sharding = \"#sdy\.sharding_per_value"
    r"<\[<(?P<sharding>.*?)>\]>\".*?\} : \(.*?\) -> (?P<type>tensor<[^>]*>)"
)
TOP_K = re.compile(r"chlo\.top_k\((?P<operand>%\S+), k = (?P<k>\d+)\) : (?P<type>tensor<[^>]*>) -> ")


def imported(text: str) -> str:
    """The text with `sdy.sharding_constraint` for custom calls of Sharding, and mhlo.topk for chlo.top_k."""
    return TOP_K.sub(_top_k, CONSTRAINT.sub(_constraint, text))


def _constraint(found: re.Match[str]) -> str:
    sharding = found["sharding"].replace("\\22", '"')
    return f"sdy.sharding_constraint {found['operand']} <{sharding}> : {found['type']}"


def _top_k(found: re.Match[str]) -> str:
    attributes = f"{{mhlo.attributes = {{k = {found['k']} : i64, largest = true}}, mhlo.version = 1 : i64}}"
    return f"stablehlo.custom_call @mhlo.topk({found['operand']}) {attributes} : ({found['type']}) -> "
