"""The pages of pictures that move: their shell, their scripts, and the figures of machines that they start from."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from attrs import frozen

from shape_inference import refuse
from shape_inference.escaping import filled, in_html, in_json, policy

from ...timelines.machines import MACHINES


@frozen
class MovingPicture:
    """A picture that moves: its title, the question that it answers, and what to try on it."""

    title: str
    question: str
    tries: tuple[str, ...]
    is_wide: bool = False


PICTURES = {
    "all_reduce": MovingPicture(
        "An all-reduce, chunk by chunk",
        "Every device has an array, and every device needs the sum of all arrays. What is sent, to whom, and "
        "how long does it take?",
        (
            "Ring: watch one chunk. It visits every device and returns as a sum. How many steps does this take "
            "for twice as many devices?",
            "Make the array small. Which algorithm is the fastest now, and why not the ring?",
            "Put the devices into nodes, so that some links are slow. Compare the ring with the hierarchical one.",
        ),
    ),
    "lanes": MovingPicture(
        "Who waits for whom",
        "Each device goes through its list from the top. A sum or a transfer ends when all its devices have reached "
        "it. Drag the cards: which orders end?",
        (
            "Two sums: change one order so that the program ends. How many of the four pairs of orders end?",
            "The ring of three: no two devices disagree about an order. Why does it hang, and which one change helps?",
            "The pipeline: find all orders of stage 1 that end.",
        ),
        is_wide=True,
    ),
    "pipeline": MovingPicture(
        "Pipelines and their bubbles",
        "The layers of a model are split over stages, and a batch into microbatches. In which order should a stage run "
        "its forward and backward passes, and how long does it wait?",
        (
            "GPipe and 1F1B: which waits longer, and which holds more activations?",
            "Double the microbatches. What happens to the share of time in which stages wait? What does it cost?",
            "Split each stage into more chunks. What becomes shorter, and what becomes more?",
            "Zero bubble: where do the gradients of weights go, and why does nothing wait for them?",
        ),
        is_wide=True,
    ),
    "cuts": MovingPicture(
        "Cut a product",
        "Three arrays, each whole on every device or cut into a part for each. Which collectives does the product "
        "need, and how many bytes do they send?",
        (
            "Cut A by columns and B by rows. Why is a sum left over? What does it cost if C is whole, or cut?",
            "Find the cuts of A, B and C that need no collective. How many are there?",
            "Cut A by rows and B by columns. Change M and N: when does it pay to gather A, and when B?",
        ),
    ),
    "roofline": MovingPicture(
        "A layer on a roofline",
        "A layer multiplies a batch by its weights. Is a device busy computing, or does it wait for its memory or for "
        "its link?",
        (
            "Make the batch larger, from 1. When does the layer leave the slope, and why not before?",
            "Use more devices. Which cut makes the layer slide to the left, and which keeps its place?",
            "Cut w by rows. What does the all-reduce cost for a small batch, and for a large one?",
        ),
    ),
}
"""The pictures by name; `assets/NAME.js` draws each."""


def moving_page(name: str, links: str = "") -> str:
    """The page of a picture as HTML, in one file that needs no network; `links` is HTML for its top.

    Raises invalid_attribute if no picture has the name.

    >>> moving_page("all_reduce").splitlines()[0]
    '<!doctype html>'
    """
    if name not in PICTURES:
        refuse("invalid_attribute", f"picture {name!r} does not exist", f"the pictures are {', '.join(PICTURES)}")
    picture = PICTURES[name]
    script = _asset("controls.js") + _asset(f"{name}.js")
    tries = "".join(f"<li>{in_html(each)}</li>" for each in picture.tries)
    parts = {
        "shape": ' class="wide"' if picture.is_wide else "",
        "policy": policy(script),
        "title": in_html(picture.title),
        "links": links,
        "question": in_html(picture.question),
        "tries": f"<ul>{tries}</ul>",
        "style": _asset("moving.css"),
        "data": in_json({"machines": _machines(), "devices": _devices()}),
        "script": script,
    }
    return filled(_asset("moving.html"), parts)


def _machines() -> dict[str, Any]:
    """The links of each machine that has nodes: seconds of a step, and bytes per second, inside and between nodes."""
    return {
        name: {
            "inside": {"alpha": inside.alpha, "bandwidth": inside.bandwidth},
            "network": {"alpha": each.network.alpha, "bandwidth": each.network.bandwidth},
        }
        for name, each in MACHINES.items()
        if each.network is not None and (inside := each.link())
    }


def _devices() -> dict[str, Any]:
    """The speeds of each machine: FLOPs and bytes of memory per second, and bytes per second on a link."""
    return {
        name: {
            "flops": {dtype: each.peak(dtype) for dtype in ("bf16", "f32")},
            "memory": each.memory_bandwidth,
            "link": each.link().bandwidth,
        }
        for name, each in MACHINES.items()
    }


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
