"""Mutated HLO texts, each from a seed: edits by hand, truncation, flipped bytes, spliced texts."""

from __future__ import annotations

import importlib
import json
import pkgutil
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import tests.cases
import xbuild as xb
from tests.fuzzing.edits import Slip
from tests.fuzzing.seeds import SEEDS

FOLDER = Path(__file__).parents[1] / "data" / "hlo"
GOLDEN = Path(__file__).parents[1] / "golden"

_TOKEN = re.compile(r"[A-Za-z_][\w.-]*|-?\d+(?:\.\d+)?|\s+|[^\s\w]")
_NUMBER = re.compile(r"\d+")

HUGE = (
    "0", "-1", "1", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "999999999999", "9" * 400, "9" * 5000, "1e999", "1e-999",
)  # fmt: skip
ODD = (
    "\x00", "\ufeff", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u00a0", "\u200b", "\u0663", "\u00b2", "\u0130",
    "\ud7ff", "\U0001f600", "e\u0301", "\x1b[31m", "\x7f", "\\", "'", '"', "/*", "*/", "//", "{...}", "...", "%", "%%",
)  # fmt: skip
WORDS = (
    "ROOT", "ENTRY", "HloModule", "token[]", "f32[<=4]", "f32[?]", "opaque[]", "nan(0x1)", "-nan", "inf", "-0", "()",
    "(,)", "->", "<=", "= ", " =", "{}", "{{}}", "{0}", "{0,0}", "[1000000,1000000]<=[1000000,1000000]T(1,0)",
    "[1048576,1]<=[1048576]", "[2,2]<=[4]T(1,0)", "[1,99999999999]<=[99999999999]", "mesh['a'=2,'b'=2] {'b'}",
    "mesh['a'=1048576] {'a'}", "mesh['a'=4] {'a':(2)2}", "f32[999999999999]", "f32[999999999999]{0}", "f32[" + "1," * 63
    + "1]", "s4[7]", "f32[0,9999999999]", "c128[]", "pred[]", "((f32[]))", ", window={size=9999999999999x1}",
    ", window={size=3x3 pad=9223372036854775807_9223372036854775807x0_0}",
    "padding=9223372036854775807_0_9223372036854775807",
    ", dimensions={0}", ", to_apply=add", ", channel_id=1", ", sharding={replicated}", ", metadata={op_name=\"a\"}",
    ", control-predecessors={x}", ", is_scheduled=true", ", replica_count=1000000", ", num_partitions=65536",
    "nan(0x0)", "-nan(0x7fffff)", "nan(0x800000)", "(nan(0x1), 0)", "constant((nan(0x1), -inf))", "1e400", "-.5",
    ", replica_groups={{0,1},{2,3}}", ", replica_groups={{0},{0}}", ", source_target_pairs={{0,7}}",
    ", replica_count=2", ", use_global_device_ids=true", ", input_output_alias={ {0}: (0, {}, may-alias) }",
    ", buffer_donor={ (0, {}) }",
    ", sharding={devices=[1,1]<=[1]}", ", sharding={{replicated}, {maximal device=0}}", ", num_partitions=2",
    "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", "{devices=[1]0}", "((1))", "/* ) */",
    "constant({1,2})", "constant(1)", "constant({...})", "parameter(0)", "parameter(2147483647)", "-start", "-done",
)  # fmt: skip
BRACKETS = (
    "()", "{}", "[]", ("/*", "*/"), ("f32[] negate(", ")"), ("(f32[], ", ")"),
    ("{ a = f32[] constant(1) b = f32[] call(), to_apply=", " }"),
)  # fmt: skip

Mutation: TypeAlias = "Callable[[Mutator, str], str]"


class Mutator:
    """Makes texts from others; the same seed makes the same."""

    def __init__(self, seed: int, texts: list[str]) -> None:
        self.random, self.texts = random.Random(seed), texts

    def text(self) -> str | bytes:
        """One text with one to five faults; some are cut off, and some are bytes that are no UTF-8."""
        text = self.random.choice(self.texts)
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 5))):
            text = self.change(text)
        if self.random.random() < 0.1:
            text = text[: self.random.randrange(len(text) + 1)]
        return self._flipped(text) if self.random.random() < 0.15 else text

    def change(self, text: str) -> str:
        return self.random.choice(MUTATIONS)(self, text)

    def _flipped(self, text: str) -> bytes:
        found = bytearray(text.encode("utf-8", errors="surrogatepass"))
        for _ in range(self.random.choice((1, 1, 2, 8))):
            if found:
                found[self.random.randrange(len(found))] ^= 1 << self.random.randrange(8)
        return bytes(found)

    def place(self, text: str) -> int:
        return self.random.randrange(len(text) + 1)

    def span(self, text: str) -> tuple[int, int]:
        begin = self.place(text)
        return begin, min(len(text), begin + self.random.choice((0, 1, 2, 5, 20, 100)))

    def number(self) -> str:
        return self.random.choice((*HUGE, str(self.random.randrange(10)), str(self.random.randrange(10**6))))


def inserted(mutator: Mutator, text: str) -> str:
    place = mutator.place(text)
    return f"{text[:place]}{mutator.random.choice((*ODD, *WORDS))}{text[place:]}"


def replaced(mutator: Mutator, text: str) -> str:
    begin, end = mutator.span(text)
    return f"{text[:begin]}{mutator.random.choice((*ODD, *WORDS, ''))}{text[end:]}"


def repeated(mutator: Mutator, text: str) -> str:
    begin, end = mutator.span(text)
    times = mutator.random.choice((2, 2, 3, 50)) if end - begin < 20 else 2
    return f"{text[:begin]}{text[begin:end] * times}{text[end:]}"


def tokens_swapped(mutator: Mutator, text: str) -> str:
    """Two words change places, or one takes the place of the other."""
    words = _TOKEN.findall(text)
    places = [n for n, word in enumerate(words) if not word.isspace()]
    if len(places) > 1:
        a, b = mutator.random.sample(places, 2)
        words[a], words[b] = words[b], words[a] if mutator.random.random() < 0.5 else words[b]
    return "".join(words)


def token_changed(mutator: Mutator, text: str) -> str:
    """A word becomes one of another text."""
    words, others = _TOKEN.findall(text), _TOKEN.findall(mutator.random.choice(mutator.texts))
    if words and others:
        words[mutator.random.randrange(len(words))] = mutator.random.choice(others)
    return "".join(words)


def number_changed(mutator: Mutator, text: str) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    match = mutator.random.choice(found)
    near = str(int(match[0]) + mutator.random.choice((-1, 1))) if len(match[0]) < 18 else "7"
    put = near if mutator.random.random() < 0.5 else mutator.number()
    return f"{text[: match.start()]}{put}{text[match.end() :]}"


def lines_swapped(mutator: Mutator, text: str) -> str:
    lines = text.split("\n")
    a, b = mutator.random.randrange(len(lines)), mutator.random.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def line_moved(mutator: Mutator, text: str) -> str:
    """A line is lost, or doubled, or comes from another text."""
    lines, others = text.split("\n"), mutator.random.choice(mutator.texts).split("\n")
    n = mutator.random.randrange(len(lines))
    lines[n : n + 1] = mutator.random.choice(([], [lines[n]] * 2, [lines[n], mutator.random.choice(others)]))
    return "\n".join(lines)


def spliced(mutator: Mutator, text: str) -> str:
    """The beginning of one text and the end of another; at their lines, mostly."""
    other = mutator.random.choice(mutator.texts)
    if mutator.random.random() < 0.2:
        return text[: mutator.place(text)] + other[mutator.place(other) :]
    lines, others = text.split("\n"), other.split("\n")
    return "\n".join(
        lines[: mutator.random.randrange(len(lines) + 1)] + others[mutator.random.randrange(len(others) + 1) :]
    )


def nested(mutator: Mutator, text: str) -> str:
    """Something within many brackets, which need not all be closed."""
    begin, end = mutator.span(text)
    opening, closing = mutator.random.choice(BRACKETS)
    depth = mutator.random.choice((1, 2, 10, 39, 41, 63, 65, 300, 3000))
    closed = depth if mutator.random.random() < 0.6 else mutator.random.randrange(depth)
    return f"{text[:begin]}{opening * depth}{text[begin:end]}{closing * closed}{text[end:]}"


def renamed(mutator: Mutator, text: str) -> str:
    """A word is another everywhere: as many faults as it stands there."""
    words = re.findall(r"[A-Za-z_][\w.-]*", text)
    if not words:
        return text
    old, new = mutator.random.choice(words), mutator.random.choice((*words, "q", "nan", "f32", "é"))
    return re.sub(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])", lambda _: new, text)


def broken_lines(mutator: Mutator, text: str) -> str:
    """Other ends of lines, or none."""
    return text.replace("\n", mutator.random.choice(("\r\n", "\r", " ", "\n\n", "\u2028", "")))


def slipped(mutator: Mutator, text: str) -> str:
    """An edit that leaves the grammar alone, so that what comes after it is reached."""
    return Slip(mutator.random.randrange(1 << 32), text).text


MUTATIONS: tuple[Mutation, ...] = (
    inserted, replaced, repeated, tokens_swapped, token_changed, token_changed, number_changed, number_changed,
    lines_swapped, line_moved, spliced, nested, renamed, broken_lines,
    *[slipped] * 8,
)  # fmt: skip


def corpus(largest: int = 6000) -> list[str]:
    """Texts of odd forms, and the programs that are kept up to a size, in their order."""
    paths = sorted([*FOLDER.glob("*.hlo"), *GOLDEN.glob("*.hlo")])
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [*SEEDS, *(text for text in texts if len(text) <= largest)]


def rejects() -> list[str]:
    """The odd and invalid texts of the conformance cases."""
    return [case["text"] for case in json.loads((FOLDER / "rejects.json").read_text())]


def one_of_each() -> list[str]:
    """For each op the first program of the cases that holds it, so that every attribute is spelled somewhere."""
    families = [info.name for info in pkgutil.iter_modules(tests.cases.__path__) if info.name != "case"]
    cases = [case for name in families for case in importlib.import_module(f"tests.cases.{name}").CASES]
    found: dict[tuple[str, ...], str] = {}
    for case in cases:
        entry = case.computation()
        ops = tuple(sorted({i.opcode for computation in entry.reachable() for i in computation.instructions}))
        if ops not in found:
            found[ops] = xb.Module("case", entry).to_hlo()
    return [text for text in found.values() if len(text) < 2000]
