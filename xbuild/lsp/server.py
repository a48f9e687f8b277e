"""The language server: the protocol around `features.py`, with an `OpenFile` for each text.

A text is read in a thread after a pause in typing, and its faults are shown; then a process checks and lints it. An
answer to a request is computed from the current text; facts that need a program come from the last text that could be
read.

Sections:

    OpenFile: its text, what was read from it, and what is under way for it
    Conversions from offsets to the protocol
    The server and its handlers
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from attrs import define, field
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.uris import from_fs_path, to_fs_path

from ..core.graph import MetadataSource
from . import features
from .analysis import analysed
from .document import Document, Problem, Reading, is_program, read
from .index import Definition
from .text import Encoding, Position, Text

Result = TypeVar("Result")

SECONDS = 10.0
"""How long check and lint of a text may take, unless `--check-seconds` says otherwise."""

DELAY = 0.2
"""The pause in typing, in seconds, after which a text is read; for a large text, the time that its reading took."""

_MOST_DELAY = 3.0
_LARGEST = 64 << 20
"""The greatest number of characters of a text that is read while it is edited."""

# ----------------------------------------------------------------------------
# OpenFile: its text, what was read from it, and what is under way for it


@define(eq=False)
class OpenFile:
    """An open file: its text, what was read from it, the issues of its analysis, and the task that updates them."""

    uri: str
    text: Text
    version: int | None
    reading: Reading | None = None
    read_text: Text | None = None
    whole: Reading = field(factory=Reading)
    issues: dict[str, list[dict[str, Any]]] = field(factory=dict)
    note: Problem | None = None
    shown: tuple[int | None, list[types.Diagnostic]] | None = None
    task: asyncio.Task[None] | None = None
    was_read: asyncio.Event = field(factory=asyncio.Event)
    _document: Document | None = None

    @property
    def file(self) -> str:
        return os.path.basename(unquote(self.uri.rpartition("/")[2])) or "<text>"

    @property
    def document(self) -> Document:
        """The current text, with the last program that could be read."""
        is_current = self.read_text is self.text and self.reading is not None and self.reading.is_whole
        found = self._document
        if found is None or found.text is not self.text or found.reading is not self.whole:
            found = self._document = _with_index(Document(self.text, self.file, self.whole, is_current), found)
        return found

    def keep(self, text: Text, reading: Reading) -> None:
        """Store a reading of a text; one with faults leaves the last whole one."""
        self.reading, self.read_text = reading, text
        self.was_read.set()
        if reading.is_whole or not self.whole.parts:
            self.whole = reading


def _with_index(document: Document, before: Document | None) -> Document:
    """The document, with the index of an earlier one of the same text."""
    if before is not None and before.text is document.text and "index" in vars(before):
        vars(document)["index"] = before.index
    return document


# ----------------------------------------------------------------------------
# Conversions from offsets to the protocol

_ENCODINGS: dict[str, Encoding] = {
    spelled: name for name in ("utf-8", "utf-16", "utf-32") for spelled in (name, str(types.PositionEncodingKind(name)))
}
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_SYMBOLS = {
    "entry": types.SymbolKind.Module,
    "computation": types.SymbolKind.Function,
    "instruction": types.SymbolKind.Variable,
}
_ITEMS = {
    "opcode": types.CompletionItemKind.Function,
    "attribute": types.CompletionItemKind.Property,
    "instruction": types.CompletionItemKind.Variable,
    "computation": types.CompletionItemKind.Module,
}


def range_of(text: Text, begin: int, end: int) -> types.Range:
    first, last = text.position(begin), text.position(max(begin, end))
    return types.Range(
        types.Position(first.line, first.character),
        types.Position(last.line, last.character),
    )


def diagnostic_of(uri: str, text: Text, problem: Problem) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(types.Location(uri, range_of(text, begin, end)), message or "here")
        for begin, end, message in problem.also
    ]
    return types.Diagnostic(
        range_of(text, problem.begin, problem.end),
        problem.message,
        severity=_SEVERITIES[problem.level],
        code=problem.rule,
        source="xbuild",
        related_information=related or None,
    )


def symbol_of(text: Text, symbol: features.OutlineEntry) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        symbol.name,
        _SYMBOLS[symbol.kind],
        range_of(text, symbol.start, max(symbol.stop, symbol.end)),
        range_of(text, symbol.begin, symbol.end),
        detail=symbol.detail or None,
        children=[symbol_of(text, each) for each in symbol.members] or None,
    )


# ----------------------------------------------------------------------------
# The server and its handlers


class Protocol(LanguageServerProtocol):
    """The protocol of pygls, whose own copies of the texts are replaced by those of `OpenFile`.

    pygls ends lines at more characters than the protocol allows, and copies a text for each edit.
    """

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


class Server(LanguageServer):
    """The language server; `files` has the open files by their addresses."""

    def __init__(self, seconds: float = SECONDS) -> None:
        super().__init__(
            "xbuild",
            version("xbuild-hlo"),
            types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
        )
        self.seconds = seconds
        self.files: dict[str, OpenFile] = {}
        self.reader = ThreadPoolExecutor(1, "reader")
        self.helper = ThreadPoolExecutor(1, "helper")

    async def in_thread(self, function: Callable[[], Result], pool: ThreadPoolExecutor | None = None) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool or self.helper, function)

    # Texts

    def text(self, source: str) -> Text:
        return Text(source, _ENCODINGS.get(str(self.workspace.position_encoding), "utf-16"))

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        self.closed(item.uri)
        self.files[item.uri] = opened = OpenFile(item.uri, self.text(item.text), item.version)
        self._update(opened, 0.0)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        opened = self.files.get(params.text_document.uri)
        if opened is None:
            return
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                begin, end = change.range.start, change.range.end
                opened.text = opened.text.edited(
                    Position(begin.line, begin.character), Position(end.line, end.character), change.text
                )
            else:
                opened.text = self.text(change.text)
        opened.version = params.text_document.version
        seconds = opened.reading.seconds if opened.reading is not None else 0.0
        self._update(opened, min(max(DELAY, seconds), _MOST_DELAY))

    def closed(self, uri: str) -> None:
        opened = self.files.pop(uri, None)
        if opened is not None and opened.task is not None:
            opened.task.cancel()

    def _update(self, opened: OpenFile, delay: float) -> None:
        """Read and analyse the text of an open file after a delay, in place of what is under way."""
        if opened.task is not None:
            opened.task.cancel()
        opened.task = asyncio.get_running_loop().create_task(self._follow(opened, delay))
        opened.task.add_done_callback(self._report_mistake)

    def _report_mistake(self, task: asyncio.Task[None]) -> None:
        """Show a mistake of the server to its user, who cannot see that diagnostics are missing."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.report_server_error(error, PyglsError)

    async def _follow(self, opened: OpenFile, delay: float) -> None:
        await asyncio.sleep(delay)
        text, file = opened.text, opened.file
        if not is_program(file, text.source):
            opened.was_read.set()
            return
        if len(text.source) > _LARGEST:
            opened.was_read.set()
            opened.note = _note(text, f"the text is longer than {_LARGEST:,} characters, and is not read while edited")
            await self._show(opened)
            return
        reading = await self.in_thread(functools.partial(read, text, file), self.reader)
        opened.keep(text, reading)
        opened.issues, opened.note = {}, None
        await self._show(opened)
        if not any(part.module is not None for part in reading.parts) or not self.seconds:
            return
        try:
            async with contextlib.aclosing(analysed(text, file, self.seconds)) as stages:
                async for stage, issues in stages:
                    opened.issues[stage] = issues
                    await self._show(opened)
        except TimeoutError:
            stage = "lint" if opened.issues else "check"
            opened.note = _note(
                text, f"`xbuild {stage}` of this file takes longer than {self.seconds:g} seconds, and was stopped here"
            )
            await self._show(opened)
        except ChildProcessError:
            opened.note = _note(text, "the check ended without an answer; `xbuild check` of this file may say why")
            await self._show(opened)

    async def _show(self, opened: OpenFile) -> None:
        """Send the problems of the text, if it is still the one that was read."""
        if opened.read_text is not None and opened.read_text is not opened.text:
            return
        problems = [*(opened.reading.faults if opened.reading is not None else ())]
        if opened.issues:
            document = Document(opened.text, opened.file, opened.reading or Reading())
            document = _with_index(document, opened._document)
            issues = [issue for stage in opened.issues.values() for issue in stage]
            problems += await self.in_thread(lambda: features.problems_of(document, issues))
        problems += [opened.note] if opened.note is not None else []
        found = [diagnostic_of(opened.uri, opened.text, each) for each in problems]
        if opened.shown != (opened.version, found):
            opened.shown = opened.version, found
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(opened.uri, found, version=opened.version)
            )

    # Requests

    async def document(self, uri: str) -> Document | None:
        """The document of an open file, with its index, which a thread makes; it waits for the first reading."""
        opened = self.files.get(uri)
        if opened is None:
            return None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(opened.was_read.wait(), _MOST_DELAY)
        document = opened.document
        await self.in_thread(lambda: document.index)
        return document

    @property
    def folders(self) -> list[str]:
        """The folders of the workspace, below which relative paths of source files lie."""
        found = [to_fs_path(folder.uri) for folder in self.workspace.folders.values()]
        return [each for each in (*found, self.workspace.root_path) if each]

    def location_of(self, uri: str, document: Document, place: Definition | MetadataSource) -> types.Location | None:
        if isinstance(place, Definition):
            return types.Location(uri, range_of(document.text, place.begin, place.end))
        target = self.uri_of(uri, place)
        line = max(place.line - 1, 0)
        return (
            None
            if target is None
            else types.Location(target, types.Range(types.Position(line, 0), types.Position(line, 0)))
        )

    def uri_of(self, uri: str, source: MetadataSource) -> str | None:
        """The address of a source file: below a folder of the workspace, or beside the text."""
        here = to_fs_path(uri)
        path = features.path_of(source, [*self.folders, *([str(Path(here).parent)] if here else [])])
        return from_fs_path(path) if path is not None else None


def _note(text: Text, message: str) -> Problem:
    end = text.line_range(0)[1]
    return Problem("limit_seconds", "note", message, 0, end)


def make_server(seconds: float = SECONDS) -> Server:
    """A server with all its handlers."""
    server = Server(seconds)
    feature = server.feature

    @feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.opened(params)

    @feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params)

    @feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.closed(uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    async def asked(params: Any, answer: Callable[[Document, int], Result]) -> Result | None:
        """Answer a request about a position in a thread; None if the file is not open."""
        document = await server.document(params.text_document.uri)
        if document is None:
            return None
        position = getattr(params, "position", None)
        place = document.text.offset(Position(position.line, position.character)) if position is not None else 0
        return await server.in_thread(lambda: answer(document, place))

    @feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        def answer(document: Document, place: int) -> types.Hover | None:
            found = features.hover(document, place)
            if found is None:
                return None
            content = types.MarkupContent(types.MarkupKind.Markdown, found.markdown)
            return types.Hover(content, range_of(document.text, found.begin, found.end))

        return await asked(params, answer)

    def located(ask: Callable[[Document, int], Definition | MetadataSource | None]) -> Callable[[Any], Awaitable[Any]]:
        async def handler(params: Any) -> types.Location | None:
            uri = params.text_document.uri

            def answer(document: Document, place: int) -> types.Location | None:
                found = ask(document, place)
                return None if found is None else server.location_of(uri, document, found)

            return await asked(params, answer)

        return handler

    feature(types.TEXT_DOCUMENT_DEFINITION)(located(features.definition))
    feature(types.TEXT_DOCUMENT_TYPE_DEFINITION)(located(features.user_line))

    @feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location] | None:
        uri, with_definition = params.text_document.uri, params.context.include_declaration

        def answer(document: Document, place: int) -> list[types.Location]:
            found = features.mentions(document, place, with_definition=with_definition)
            return [types.Location(uri, range_of(document.text, each.begin, each.end)) for each in found]

        return await asked(params, answer)

    @feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        def answer(document: Document, place: int) -> list[types.DocumentHighlight]:
            return [
                types.DocumentHighlight(
                    range_of(document.text, each.begin, each.end),
                    types.DocumentHighlightKind.Write
                    if each.definition is not None and each.begin == each.definition.begin
                    else types.DocumentHighlightKind.Read,
                )
                for each in features.mentions(document, place)
            ]

        return await asked(params, answer)

    @feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare_rename(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        def answer(document: Document, place: int) -> types.PrepareRenamePlaceholder:
            found = features.renamed(document, place)
            return types.PrepareRenamePlaceholder(range_of(document.text, found.begin, found.end), found.name)

        return await _explained(asked(params, answer))

    @feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        uri, opened = params.text_document.uri, server.files.get(params.text_document.uri)

        def answer(document: Document, place: int) -> types.WorkspaceEdit:
            name = params.new_name.strip().lstrip("%@")
            edits = [
                types.TextEdit(range_of(document.text, begin, end), name)
                for begin, end in features.rename(document, place, name)
            ]
            if opened is None or opened.text is not document.text:
                raise features.RenameError("the text has changed since the request")
            return types.WorkspaceEdit(changes={uri: edits})

        return await _explained(asked(params, answer))

    @feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        return await asked(params, lambda d, _: [symbol_of(d.text, each) for each in features.outline(d)])

    @feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        return await asked(params, lambda d, _: [types.FoldingRange(first, last) for first, last in features.folds(d)])

    @feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def links(params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
        uri = params.text_document.uri

        def answer(document: Document, _: int) -> list[types.DocumentLink]:
            found = []
            for begin, end, source in document.python_links():
                if (target := server.uri_of(uri, source)) is not None:
                    found.append(types.DocumentLink(range_of(document.text, begin, end), f"{target}#L{source.line}"))
                if len(found) == features.MOST_SYMBOLS:
                    break
            return found

        return await asked(params, answer)

    @feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["%", "@", ".", "=", "("]))
    async def completion(params: types.CompletionParams) -> types.CompletionList | None:
        def answer(document: Document, place: int) -> types.CompletionList:
            found = features.completions(document, place)
            items = [
                types.CompletionItem(
                    each.word,
                    kind=_ITEMS[each.kind],
                    detail=each.detail or None,
                    text_edit=types.TextEdit(range_of(document.text, each.begin, place), each.word),
                )
                for each in found
            ]
            return types.CompletionList(len(items) == features.MOST_COMPLETIONS, items)

        return await asked(params, answer)

    return server


async def _explained(answer: Awaitable[Result]) -> Result:
    """An answer, with a refusal as the message that the editor shows."""
    try:
        return await answer
    except features.RenameError as error:
        raise JsonRpcInvalidParams(str(error)) from None


def serve(seconds: float = SECONDS) -> None:
    """Serve one client over stdin and stdout until it ends the connection."""
    logging.getLogger("pygls").setLevel(logging.ERROR)  # a client that ends without a goodbye is not an error
    make_server(seconds).start_io()
