"""From which elements of the operands an element of the result came: of each op exactly these light up, no others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.asking import lit, name
from tests.browser.conftest import Open

X, Y, ROWS, SIGNAL, KERNEL = (f"parameter.{number}" for number in range(1, 6))


def numbers(which: str, index: tuple[int, ...]) -> str:
    """An element of an argument, as the page tells it: what the arguments hold is known from their places."""
    extents, first = {X: ((3, 4), 0), Y: ((4, 2), 20), SIGNAL: ((1, 1, 5), 40), KERNEL: ((1, 1, 3), 50)}[which]
    flat = 0
    for extent, place in zip(extents, index, strict=True):
        flat = flat * extent + place
    return f"{which} [{','.join(map(str, index))}] = {first + flat}"


@pytest.mark.parametrize(
    ("op", "index", "wanted"),
    [
        # The start 7 is moved back to 2, the last row.
        ("picked", 0, [numbers(X, (2, 0)), f"{ROWS} [0,0] = 7"]),
        ("picked", 3, [numbers(X, (0, 1)), f"{ROWS} [1,0] = 0"]),
        # Row 7 is outside and dropped; row 0 is added to.
        ("spilled", 2, [numbers(X, (0, 2)), f"{ROWS} [1,0] = 0", numbers(Y, (2, 1))]),
        ("spilled", 9, [numbers(X, (2, 1))]),
        ("windows", 0, [numbers(X, (i, j)) for i in (0, 1) for j in (0, 1)]),
        ("windows", 5, [numbers(X, (i, j)) for i in (1, 2) for j in (2, 3)]),
        ("filtered", 0, [*(numbers(SIGNAL, (0, 0, i)) for i in (0, 1)), *(numbers(KERNEL, (0, 0, i)) for i in (1, 2))]),
        (
            "filtered",
            2,
            [*(numbers(SIGNAL, (0, 0, i)) for i in (1, 2, 3)), *(numbers(KERNEL, (0, 0, i)) for i in (0, 1, 2))],
        ),
        ("product", 5, [*(numbers(X, (2, k)) for k in range(4)), *(numbers(Y, (k, 1)) for k in range(4))]),
        ("spread", 6, [numbers(X, (1, 2))]),
        ("spread", 23, [numbers(X, (2, 3))]),
        ("turned", 10, [numbers(X, (1, 3))]),
        ("padded", 17, [numbers(X, (1, 2))]),
    ],
)
def test_of_each_op(opened: Open, op: str, index: int, wanted: list[str]) -> None:
    page = opened("moved", f"at={op}&index={index}")
    assert name(page) == op
    arguments = [each for each in lit(page) if each.startswith("parameter")]
    assert arguments == wanted


def test_the_start_of_a_slice(opened: Open) -> None:
    """A start of 9 is moved back to 2, and is where element 1 of the slice is from."""
    logarithm, start = lit(opened("strict", "at=taken&index=1"))
    assert logarithm.startswith("logarithm [3] = ")
    assert start == "parameter.2 [] = 9"


@pytest.mark.parametrize("index", [4, 10])
def test_a_hole_is_of_the_padding_value(opened: Open, index: int) -> None:
    (found,) = lit(opened("moved", f"at=padded&index={index}"))
    assert found.endswith("[] = -1")


def test_a_click_and_the_arrows_choose_an_element(opened: Open) -> None:
    page = opened("scattered", "at=transpose.3&device=1")
    page.click(".dev.on .cell >> nth=1")
    assert lit(page) == ["reshape.2 [1,0] = 6"]
    page.keyboard.press("ArrowRight")
    assert lit(page) == ["reshape.2 [0,1] = 5"]
    assert "WHERE TRANSPOSE.3[1,0] COMES FROM" in page.inner_text("#side")


def test_what_lights_up_is_in_view(opened: Open) -> None:
    page = opened("moved", "at=spread")
    page.set_viewport_size({"width": 1400, "height": 420})
    page.click(".dev.on .cell >> nth=23")
    assert page.evaluate(
        """() => { const [cell, side] = [document.querySelector("#side .lit"), document.getElementById("side")]
          .map(each => each.getBoundingClientRect()); return cell.top >= side.top && cell.bottom <= side.bottom; }"""
    )


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        ("at=all-gather.4&device=1&index=5", ["replica 3 transpose.3 [0,1] = 14"]),
        ("at=all-to-all.5&device=0&index=2", ["replica 2 transpose.3 [0,0] = 8"]),
    ],
)
def test_from_another_device(opened: Open, at: str, wanted: list[str]) -> None:
    assert lit(opened("scattered", at)) == wanted


def test_of_a_sum_from_all_devices(opened: Open) -> None:
    found = lit(opened("scattered", "step=8&device=2&index=1"))
    assert [each.split()[1] for each in found] == ["0", "1", "2", "3"]


def test_a_value_that_was_sent(opened: Open) -> None:
    page = opened("ring", "at=recv-done.14&device=2")
    page.click(".dev.on .cell >> nth=2")
    (found,) = lit(page)
    assert found.startswith("replica 1 dynamic-slice.12 [2]")


def test_numbers_of_small_arrays_and_colours_of_large_ones(opened: Open) -> None:
    page: Any = opened("ring", "at=parameter.1&device=1")
    assert page.inner_text(".dev.on .cell >> nth=15") == "31"
    page = opened("digits", "at=dot.4")
    assert page.locator(".dev.on canvas.heat").count() == 1
    assert "mean" in page.inner_text(".dev.on")
