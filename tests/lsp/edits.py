"""Random edits of open files, with random requests between them, against a language server in a process of its own.

    python -m tests.lsp.edits [--edits N] [--seed N] FILE...

Prints for each file the processor time from opening to the first diagnostics beyond the time of reading, and the number
of edits and answers. Fails if the server ends, refuses a request other than a rename, reports a mistake of its own, or
has another text than the client after the edits.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types

from tests.fuzzing.mutations import HUGE, ODD, WORDS
from tests.lsp.client import Client, connected, read
from xbuild.lsp import features
from xbuild.lsp.document import FAILED, Document
from xbuild.lsp.document import read as read_document
from xbuild.lsp.text import Text

# ----------------------------------------------------------------------------
# Edits: a range of offsets and the text that replaces it

Edit = tuple[int, int, str]
_TYPED = (
    *"{}[]()\",'%=/@:",
    "\n",
    "\n}\n",
    "/*",
    "*/",
    "//",
    " = ",
    "ROOT ",
    "\n  x.1 = f32[2]{0} add(x, x)\n",
    "𝛼",
    "é",
)


def _insert(generator: random.Random, text: str) -> Edit:
    place = generator.randrange(len(text) + 1)
    return place, place, generator.choice((*_TYPED, *ODD, *WORDS, *HUGE[:-4]))


def _delete(generator: random.Random, text: str) -> Edit:
    begin = generator.randrange(len(text) + 1)
    return begin, min(begin + generator.choice((1, 1, 1, 5, 40, 400)), len(text)), ""


def _type_over(generator: random.Random, text: str) -> Edit:
    begin, end, _ = _delete(generator, text)
    return begin, end, _insert(generator, text)[2]


def _move_line(generator: random.Random, text: str) -> Edit:
    """Paste a line of the text elsewhere."""
    begin = text.rfind("\n", 0, generator.randrange(len(text) + 1)) + 1
    end = text.find("\n", begin)
    place = text.rfind("\n", 0, generator.randrange(len(text) + 1)) + 1
    return place, place, text[begin : end + 1 if end >= 0 else len(text)]


EDITS: tuple[Callable[[random.Random, str], Edit], ...] = (_insert, _insert, _delete, _delete, _type_over, _move_line)


def random_edit(generator: random.Random, text: str) -> Edit:
    return generator.choice(EDITS)(generator, text)


# ----------------------------------------------------------------------------
# Requests

_AT_PLACE = (
    types.TEXT_DOCUMENT_HOVER, types.TEXT_DOCUMENT_DEFINITION, types.TEXT_DOCUMENT_TYPE_DEFINITION,
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, types.TEXT_DOCUMENT_COMPLETION,
)  # fmt: skip
_OF_FILE = (types.TEXT_DOCUMENT_FOLDING_RANGE, types.TEXT_DOCUMENT_DOCUMENT_LINK, types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)


async def ask_something(generator: random.Random, client: Client, uri: str) -> None:
    """One random request, whose answer must not be a refusal, unless it is a rename."""
    place = generator.randrange(len(client.texts[uri].source) + 1)
    draw = generator.random()
    if draw < 0.1:
        await client.ask(
            types.TEXT_DOCUMENT_RENAME, uri, place, new_name=generator.choice(("x", "a b", "add.9", "ROOT"))
        )
    elif draw < 0.2:
        context = types.ReferenceContext(generator.random() < 0.5)
        answer = await client.ask(types.TEXT_DOCUMENT_REFERENCES, uri, place, context=context)
        assert not isinstance(answer, str), answer
    elif draw < 0.9:
        answer = await client.ask(generator.choice(_AT_PLACE), uri, place)
        assert not isinstance(answer, str), answer
    else:
        answer = await client.ask(generator.choice(_OF_FILE), uri)
        assert not isinstance(answer, str), answer


# ----------------------------------------------------------------------------
# A file: opened, edited, and compared


def seconds_of_reading(source: str, file: str) -> float:
    """The processor time of reading a text, in this process; the second time, since the first one imports."""
    read_document(Text(source), file)
    began = time.process_time()
    read_document(Text(source), file)
    return time.process_time() - began


async def first_diagnostics(client: Client, uri: str, source: str) -> tuple[float, list[types.Diagnostic]]:
    """Open a file; the processor time of the server until its first diagnostics, and these."""
    before = client.cpu()
    client.open(uri, source)
    found = await client.diagnostics(uri)
    return client.cpu() - before, found


async def edit_and_ask(client: Client, uri: str, edits: int, generator: random.Random, pause: float = 0.0) -> int:
    """Edit an open file at random, with requests between edits; returns the number of answers."""
    answers = 0
    original = client.texts[uri].source
    for number in range(edits):
        client.edit(uri, *random_edit(generator, client.texts[uri].source))
        if generator.random() < 0.3:
            await ask_something(generator, client, uri)
            answers += 1
        if generator.random() < 0.05:
            await asyncio.sleep(generator.choice((0.0, pause)))
        if number % 40 == 39:  # most of the text must stay a program
            client.edit(uri, 0, len(client.texts[uri].source), original)
    await client.diagnostics(uri)
    symbols = await client.ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, uri)
    text = client.texts[uri]
    expected = features.outline(Document(text, uri))
    got = [
        (each.name, client.offset(uri, each.selection_range.start), len(each.children or ())) for each in symbols or ()
    ]
    assert got == [(each.name, each.begin, len(each.members)) for each in expected]
    check_honest(client)
    return answers


def check_honest(client: Client) -> None:
    """The server lives, and has reported no mistake of its own."""
    assert client.process.returncode is None, "the server has ended"
    assert not client.shown, client.shown
    failed = [
        each.message
        for published in client.published.values()
        for params in published
        for each in params.diagnostics
        if each.code == FAILED
    ]
    assert not failed, failed[0]


async def campaign(paths: list[Path], edits: int, seed: int) -> None:
    share = -(-edits // len(paths))
    total = answers = 0
    async with connected() as client:
        print(f"{'file':58} {'characters':>11} {'reading':>8} {'beyond':>7} {'edits':>6} {'answers':>8}")
        for path in paths:
            source = read(path)
            name = path.name.removesuffix(".gz")
            uri = f"file:///programs/{name}"
            reading = seconds_of_reading(source, name)
            spent, _ = await first_diagnostics(client, uri, source)
            given = await edit_and_ask(client, uri, share, random.Random(f"{seed} {name}"), pause=0.5)
            total, answers = total + share, answers + given
            print(
                f"{name:58} {len(source):>11,} {reading:>7.2f}s {max(spent - reading, 0):>6.2f}s {share:>6} {given:>8}"
            )
            client.close(uri)
        check_honest(client)
    print(f"{total:,} edits, {answers:,} answers, no crash")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--edits", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(campaign(arguments.files, arguments.edits, arguments.seed))


if __name__ == "__main__":
    main()
