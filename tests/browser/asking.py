"""Queries on an open page that several browser tests share."""

from __future__ import annotations

import re
import time
from typing import Any


def step(page: Any) -> int:
    return int(re.findall(r"\d+", page.inner_text("#clock"))[0])


def name(page: Any) -> str:
    """The instruction that is shown."""
    return str(page.inner_text("#side h3")).split()[0]


def lit(page: Any) -> list[str]:
    """The elements that light up, with the heads of what they are in."""
    script = "all => all.map(c => `${c.closest('.dev').querySelector('button').innerText} ${c.title}`)"
    return list(page.eval_on_selector_all("#side .lit", script))


def until(page: Any, expression: str) -> None:
    """Wait until an expression of JavaScript holds; what Playwright has for it, the policy of a page forbids."""
    end = time.monotonic() + 10
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)
