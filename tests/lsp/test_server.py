"""The language server in a process of its own, driven by a client over stdin and stdout."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server wants pygls")

from lsprotocol import types

from tests.lsp.client import ROOT, Client, connected
from tests.lsp.edits import check_honest, edit_and_ask, seconds_of_reading
from tests.lsp.programs import HLO, MLIR, STUCK
from tests.lsp.test_index import HOSTILE, find
from xbuild.lsp.document import FAILED

URI = "file:///work/space/program.hlo"


def with_server(
    *arguments: str, folder: Path | None = None
) -> Callable[[Callable[[Client], Coroutine[Any, Any, None]]], None]:
    """Run a coroutine with a client of a new server."""

    def run(body: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        async def connect() -> None:
            async with connected(*arguments, folder=folder) as client:
                await body(client)
                check_honest(client)

        with ThreadPoolExecutor(1) as other:  # Playwright leaves an event loop running in the thread of the tests
            other.submit(asyncio.run, asyncio.wait_for(connect(), 120)).result()

    return run


def test_diagnostics_follow_the_text_as_it_is_typed() -> None:
    async def body(client: Client) -> None:
        client.open(URI, HLO)
        assert await client.diagnostics(URI) == []
        place = find(HLO, "compare|(%i, %five)")
        client.edit(URI, place - 1, place, "")
        (fault,) = await client.diagnostics(URI, "unknown_opcode")
        assert client.word(URI, fault.range) == "compar"
        assert "did you mean 'compare'?" in fault.message
        assert fault.severity == types.DiagnosticSeverity.Error
        client.edit(URI, place - 1, place - 1, "e")
        assert await client.diagnostics(URI) == []
        client.close(URI)

    with_server("--check-seconds", "0")(body)


@pytest.mark.slow
def test_a_deadlock_is_reported_and_disappears_with_its_cause() -> None:
    async def body(client: Client) -> None:
        client.open(URI, STUCK)
        found = await client.diagnostics(URI, "deadlock")
        deadlock = next(each for each in found if each.code == "deadlock")
        assert client.word(URI, deadlock.range) == "sent"
        assert "fix: move posted before sent" in deadlock.message
        lines = STUCK.split("\n")
        begin = STUCK.index("  sent")
        client.edit(URI, begin, begin + len(lines[5]) + len(lines[6]) + 2, f"{lines[6]}\n{lines[5]}\n")
        while any(each.code == "deadlock" for each in await client.diagnostics(URI)):
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        assert not any(each.code == "deadlock" for each in await client.diagnostics(URI))

    with_server()(body)


def test_requests(tmp_path: Path) -> None:
    async def body(client: Client) -> None:
        client.open(URI, HLO)
        init = find(HLO, "while(%in|it)")
        hover = await client.ask(types.TEXT_DOCUMENT_HOVER, URI, init)
        assert "36 bytes" in hover.contents.value
        assert client.word(URI, hover.range) == "init"
        definition = await client.ask(types.TEXT_DOCUMENT_DEFINITION, URI, init)
        assert (definition.uri, client.offset(URI, definition.range.start)) == (URI, find(HLO, "%|init = "))
        line = await client.ask(types.TEXT_DOCUMENT_TYPE_DEFINITION, URI, find(HLO, "%la|st = f32[8]{0}"))
        assert (line.uri, line.range.start.line) == ((tmp_path / "model" / "layer.py").as_uri(), 11)
        (link,) = await client.ask(types.TEXT_DOCUMENT_DOCUMENT_LINK, URI)
        assert link.target == "file:///home/me/model.py#L7"
        context = types.ReferenceContext(include_declaration=False)
        references = await client.ask(types.TEXT_DOCUMENT_REFERENCES, URI, init, context=context)
        assert [client.offset(URI, each.range.start) for each in references] == [find(HLO, "while(%|init)")]
        highlights = await client.ask(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, URI, init)
        assert [each.kind for each in highlights] == [
            types.DocumentHighlightKind.Write,
            types.DocumentHighlightKind.Read,
        ]
        edit = await client.ask(types.TEXT_DOCUMENT_RENAME, URI, init, new_name="%state")
        assert [(client.word(URI, each.range), each.new_text) for each in edit.changes[URI]] == [("init", "state")] * 2
        refused = await client.ask(types.TEXT_DOCUMENT_RENAME, URI, init, new_name="loop")
        assert "already the name of the instruction on line 42" in refused
        name = await client.ask(types.TEXT_DOCUMENT_PREPARE_RENAME, URI, init)
        assert name.placeholder == "init"
        symbols = await client.ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, URI)
        assert [each.name for each in symbols] == ["add", "below", "step", "main"]
        folds = await client.ask(types.TEXT_DOCUMENT_FOLDING_RANGE, URI)
        assert len(folds) == 4
        completion = await client.ask(types.TEXT_DOCUMENT_COMPLETION, URI, find(HLO, "re|duce(%last"))
        assert "reduce" in {each.label for each in completion.items}
        assert (
            await client.ask(types.TEXT_DOCUMENT_HOVER, "file:///not/open.hlo", None, position=types.Position(0, 0))
            is None
        )

    with_server("--check-seconds", "0", folder=tmp_path)(body)


def test_positions_count_in_the_units_of_the_editor() -> None:
    async def body(client: Client) -> None:
        source = "ENTRY e { /* 𝛼𝛼 */ x = f32[2] parameter(0) /* é */ ROOT y = f32[2] negat(x) }"
        client.open(URI, source)
        (fault,) = await client.diagnostics(URI, "unknown_opcode")
        assert client.word(URI, fault.range) == "negat"
        assert fault.range.start.character == source.index("negat") + 2
        client.edit(URI, source.index("negat"), source.index("negat") + 5, "abs")
        assert await client.diagnostics(URI) == []

    with_server("--check-seconds", "0")(body)


def test_the_check_ends_at_its_limit_and_says_so() -> None:
    async def body(client: Client) -> None:
        client.open(URI, STUCK)
        (note,) = await client.diagnostics(URI, "limit_seconds")
        assert "`xbuild check` of this file takes longer than 0.05 seconds" in note.message
        assert note.severity == types.DiagnosticSeverity.Information

    with_server("--check-seconds", "0.05")(body)


@pytest.mark.slow
def test_hostile_texts_are_answered() -> None:
    async def body(client: Client) -> None:
        for number, source in enumerate(HOSTILE.values()):
            uri = f"file:///{number}.hlo"
            client.open(uri, source)
            assert all(each.code != FAILED for each in await client.diagnostics(uri))
            await client.ask(types.TEXT_DOCUMENT_HOVER, uri, len(source) // 2)
            client.close(uri)

    with_server("--check-seconds", "2")(body)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "source"), [("program.hlo", HLO), ("program.mlir", MLIR)])
def test_random_edits(name: str, source: str) -> None:
    async def body(client: Client) -> None:
        uri = f"file:///{name}"
        client.open(uri, source)
        assert await edit_and_ask(client, uri, 120, random.Random(5), pause=0.3) > 20

    with_server()(body)


@pytest.mark.slow
def test_first_diagnostics_take_little_more_than_reading() -> None:
    notes = 'metadata={{op_name="jit(f)/add" source_file="/m.py" source_line={0}}}'
    line = f"  x.{{0}} = f32[8,128]{{{{1,0}}}} add(x.{{1}}, x.{{1}}), {notes}\n"
    lines = "".join(line.format(n, n - 1) for n in range(1, 20_000))
    source = f"HloModule long\n\nENTRY e {{\n  x.0 = f32[8,128]{{1,0}} parameter(0)\n{lines}}}\n"

    async def body(client: Client) -> None:
        before = client.cpu()
        client.open(URI, source)
        assert await client.diagnostics(URI) == []
        assert client.cpu() - before < seconds_of_reading(source, "program.hlo") + 1

    with_server("--check-seconds", "0")(body)


def test_without_pygls_the_command_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pygls'] = None; sys.modules['pygls.lsp.server'] = None\n"
        "sys.argv = ['xbuild', 'lsp']; from xbuild.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert "pip install 'xbuild-hlo[lsp]' [missing_extra]" in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_are_no_programs_are_left_alone() -> None:
    async def body(client: Client) -> None:
        client.open("file:///readme.txt", "A text.\n")
        client.open("file:///dump.txt", "// by hand\n" + HLO.replace("compare(", "compar("))
        assert [each.code for each in await client.diagnostics("file:///dump.txt")] == ["unknown_opcode"]
        assert await client.ask(types.TEXT_DOCUMENT_HOVER, "file:///readme.txt", 0) is None
        assert "file:///readme.txt" not in client.published

    with_server("--check-seconds", "0")(body)
