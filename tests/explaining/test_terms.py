"""docs/terms.md: `xbuild explain` knows each term, and all that reports label; reports use no word that it replaces."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import xbuild as xb
from examples.deadlocks import data_parallel, infeed_loop, parameter_server, pipeline, ring
from interpreter import StrictFailure, evaluate
from xbuild.reference.words import explain_word

TABLE = Path(__file__).parents[2] / "docs" / "terms.md"
REPLACED = {"subnormal", "arm", "remedy", "cure", "team", "party", "stall", "come to", "cut"}
"""Words of the third column that have no other meaning in a report."""


@cache
def terms() -> dict[str, str]:
    """The terms with the words that each replaces."""
    rows = [line.strip("|").split("|") for line in TABLE.read_text().splitlines() if line.startswith("|")][2:]
    return {term.strip(): words.strip() for term, _, words in rows}


@cache
def reports() -> tuple[str, ...]:
    """Reports of each kind: verdicts, stopped runs, strict runs, costs, timelines, differences, equivalences."""
    verdicts = [xb.check(each.program()) for each in (data_parallel, infeed_loop, parameter_server, pipeline, ring)]
    stopped = [data_parallel.main(), infeed_loop.main()]
    module = ring.program()
    cost, line = xb.cost(module), xb.timeline(xb.repaired(verdicts[-1]), "h100")
    one = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = tanh(x) ROOT z = add(y, x) }")
    other = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = tanh(x) ROOT z = subtract(y, x) }")
    found = [xb.diff(one, other), xb.equivalent(one, other), xb.equivalent(one, one)]
    return (*map(str, (*verdicts, cost, line, *found)), *stopped, *strict_reports())


def strict_reports() -> list[str]:
    failures = []
    for a, b in ((1.0, 0.0), (np.inf, np.inf), (3e38, 0.5)):
        with pytest.raises(StrictFailure) as failure:
            evaluate(xb.computation(xb.f32[1], xb.f32[1])(xb.divide), [a], [b], strict=True)
        failures.append(str(failure.value.report))
    return failures


def test_every_term_is_explained() -> None:
    assert [term for term in terms() if not explain_word(term)] == []


def test_every_term_has_one_row_and_replaces_no_other_term() -> None:
    text = TABLE.read_text()
    assert all(text.count(f"\n| {term} |") == 1 for term in terms())
    replaced = {word.strip() for words in terms().values() for word in re.sub(r"\(.*?\)", "", words).split(",")}
    assert replaced >= REPLACED


def test_the_labels_and_kinds_of_reports_are_explained() -> None:
    heads = [
        text.partition("\n\n")[0] if "a device computes" in text or "bound by" in text else text for text in reports()
    ]
    labels = {label for text in heads for label in re.findall(r"^ {2}([a-z][a-z ]*?) {2,}\S", text, re.MULTILINE)}
    kinds = {kind for text in reports() for kind in re.findall(r"\[([a-z_]+)\]$", text, re.MULTILINE)}
    titles = {"further devices", "root cause", "waiting as a result", "otherwise", "not decided"} & set(
        re.findall(r"^ {2}([a-z ]+)\b", "\n".join(reports()), re.MULTILINE)
    )
    assert {"cause", "fix", "note"} <= labels
    assert "deadlock" in kinds
    assert [word for word in sorted(labels | kinds | titles) if not explain_word(word)] == []


def test_the_terms_in_reports_are_those_of_the_table() -> None:
    text = "\n".join(reports()).lower()
    assert [word for word in sorted(REPLACED) if re.search(rf"\b{word}\b", text)] == []
    used = [term for term in terms() if re.search(rf"\b{re.escape(term)}s?\b", text)]
    assert len(used) > 15
    assert [term for term in used if not explain_word(term)] == []
