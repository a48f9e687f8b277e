"""Random schemes, and the law that a proof for all sizes never contradicts the check of one size.

`python -m tests.all_sizes.random_schemes --seconds 600 --seed 1` draws schemes, proves each without a check of single
sizes where it can, and compares the proofs with all sizes up to 24.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import xbuild as xb
from xbuild.all_sizes.ranking import Prover
from xbuild.all_sizes.schemes import all_events_happen, events_of
from xbuild.all_sizes.sizes import OutsideTheorem
from xbuild.all_sizes.waits import describe, families_of
from xbuild.process.limits import DeadlineError, within

LARGEST = 24
CUTOFF = 4  # no device is its own neighbour at a distance of at most 2, and no two of its neighbours are one

Condition = Callable[[Any, Any], bool]

CONDITIONS: list[Condition] = [
    lambda d, n: d % 2 == 0,
    lambda d, n: d % 3 == 1,
    lambda d, n: d == 0,
    lambda d, n: d == n - 1,
    lambda d, n: d < n // 2,
    lambda d, n: n % 2 == 0,
    lambda d, n: n % 3 == 2 and d > 2,
    lambda d, n: n > 9,
    lambda d, n: 2 * d < n,
    lambda d, n: d > 10,
]

COUNTS: list[Callable[[Any], Any]] = [
    lambda n: 1,
    lambda n: 2,
    lambda n: 6,
    lambda n: n,
    lambda n: n - 1,
    lambda n: n // 2,
    lambda n: min(n, 7),
]

KEYS: list[Callable[[Any], Any]] = [
    lambda d: 0,
    lambda d: d // 3,
    lambda d: d % 2,
    lambda d: d // 4 if d % 4 == 0 else None,
    lambda d: 0 if d % 3 == 0 else None,
]


class Round:
    """One round of communication: who sends where, and which device does what first."""

    def __init__(self, draw: random.Random, channel: int) -> None:
        self.kind = draw.choice(["ring", "line", "tree", "star", "meet", "pair"])
        self.channel = draw.choice([1, channel])
        self.distance = draw.choice([1, 1, 1, 2])
        self.down = draw.random() < 0.5
        self.first = draw.choice(["post", "send", "receive", "by condition", "by condition"])
        self.condition = draw.choice(CONDITIONS)
        self.skips = draw.choice(CONDITIONS) if draw.random() < 0.05 else None
        self.key = draw.randrange(len(KEYS))

    def ends(self, d: Any, n: Any) -> tuple[list[Any], list[Any]]:
        """The devices to which a device sends, and those from which it receives."""
        if self.kind == "ring":
            to, source = (d + self.distance) % n, (d - self.distance) % n
            return ([source], [to]) if self.down else ([to], [source])
        if self.kind == "line":
            targets = [d + self.distance] if d + self.distance < n else []
            sources = [d - self.distance] if d - self.distance >= 0 else []
            return (sources, targets) if self.down else (targets, sources)
        if self.kind == "tree":
            children = [child for child in (2 * d + 1, 2 * d + 2) if child < n]
            parent = [(d - 1) // 2] if d > 0 else []
            return (children, parent) if self.down else (parent, children)
        partner = [d - 1] if d % 2 == 1 else [d + 1] if d + 1 < n else []
        return partner, partner

    def run(self, device: Any, n: Any) -> None:
        d = device.index
        if self.skips is not None and self.skips(d, n):
            return
        if self.kind == "meet":
            if KEYS[self.key](d) is not None:
                device.all_reduce(str(self.key))
            return
        if self.kind == "star":
            self.run_star(device, n)
            return
        targets, sources = self.ends(d, n)
        sends_first = self.first == "send" or (self.first == "by condition" and self.condition(d, n))
        if self.first == "post":
            for source in sources:
                device.post(source, self.channel)
        if sends_first or self.first == "post":
            for target in targets:
                device.send(target, self.channel)
        for source in sources:
            if self.first == "post":
                device.wait(source, self.channel)
            else:
                device.recv(source, self.channel)
        if not (sends_first or self.first == "post"):
            for target in targets:
                device.send(target, self.channel)

    def run_star(self, device: Any, n: Any) -> None:
        channel = self.channel
        if device.index == 0:
            step = device.send if self.down else device.recv
            device.repeat(n - 1, lambda k: step(k + 1, channel))
        elif self.down:
            device.recv(0, channel)
        else:
            device.send(0, channel)


def random_scheme(draw: random.Random) -> Callable[[Any], xb.Scheme]:
    """A build function: a few rounds, some of them repeated, in an order that may depend on the device."""
    rounds = [Round(draw, 2 + number) for number in range(draw.randint(1, 3))]
    counts = [draw.choice(COUNTS) for _ in rounds]
    together = draw.random() < 0.3
    swapped = draw.choice(CONDITIONS) if draw.random() < 0.3 else None

    def build(n: Any) -> xb.Scheme:
        def program(device: Any) -> None:
            listed = list(zip(rounds, counts, strict=True))
            if swapped is not None and swapped(device.index, n):
                listed.reverse()
            if together:
                device.repeat(counts[0](n), lambda k: [each.run(device, n) for each, _ in listed])
                return
            for each, count in listed:
                if each.kind == "star":
                    each.run(device, n)
                else:
                    device.repeat(count(n), lambda k, each=each: each.run(device, n))

        return xb.Scheme(n, program, {str(number): key for number, key in enumerate(KEYS)})

    return build


def first_refused(build: Callable[[Any], xb.Scheme]) -> int | None:
    """The smallest size up to LARGEST that hangs event by event; the check agrees about it and a size that does not."""
    for size in range(CUTOFF, LARGEST + 1):
        scheme = build(size)
        if not all_events_happen(events_of(scheme), scheme.members()):
            assert xb.check(scheme).refused, size
            return size
        if size == 11:
            assert xb.check(scheme).kind == "ok"
    return None


def proof_alone(build: Callable[[Any], xb.Scheme]) -> str:
    """Empty if all sizes from CUTOFF on are proved without a check of single sizes, else the reason."""
    try:
        description = describe(build, CUTOFF)
        Prover(description, families_of(description)).prove()
    except OutsideTheorem as error:
        return str(error)
    return ""


def compare(seed: int) -> str:
    """The outcome for one scheme: proved, refused or undecided. Raises AssertionError if the proof is wrong."""
    build = random_scheme(random.Random(seed))
    reason, refused = proof_alone(build), first_refused(build)
    assert reason or refused is None, f"seed {seed}: proved for all sizes, but size {refused} is refused"
    if refused is not None:
        return "refused"
    return f"undecided: {''.join(each for each in reason if not each.isdigit())[:60]}" if reason else "proved"


def main() -> None:
    """Compare schemes for a time; a scheme may take 20 seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    end, outcomes = time.monotonic() + arguments.seconds, Counter[str]()
    for seed in itertools.count(arguments.seed):
        if time.monotonic() > end:
            break
        try:
            with within(20):
                outcomes[compare(seed)] += 1
        except DeadlineError:
            outcomes["not finished"] += 1
    for outcome, number in outcomes.most_common():
        print(f"{number:6d} {outcome}")


if __name__ == "__main__":
    main()
