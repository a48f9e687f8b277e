"""A client of the language server in a process of its own: opens texts, edits them, asks, and waits for diagnostics."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.client import BaseLanguageClient

from xbuild.lsp.text import Position, Text

ROOT = Path(__file__).parents[2]


def read(path: Path) -> str:
    """A program as text, also from a compressed file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode()


class Client:
    """A client with the texts that it has open, as the server should have them."""

    def __init__(self) -> None:
        self.rpc = BaseLanguageClient("tests", "1")
        self.texts: dict[str, Text] = {}
        self.versions: dict[str, int] = {}
        self.published: dict[str, list[types.PublishDiagnosticsParams]] = {}
        self.shown: list[str] = []
        self._news = asyncio.Event()
        self.rpc.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._publish(params))
        self.rpc.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.shown.append(params.message))

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        self.published.setdefault(params.uri, []).append(params)
        self._news.set()

    @property
    def process(self) -> Any:
        return self.rpc._server

    def cpu(self) -> float:
        """The seconds of processor time of the server, without those of its children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open(self, uri: str, source: str) -> None:
        self.texts[uri], self.versions[uri] = Text(source), 1
        item = types.TextDocumentItem(uri, "mlir" if uri.endswith(".mlir") else "hlo", 1, source)
        self.rpc.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self, uri: str) -> None:
        del self.texts[uri]
        self.rpc.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def edit(self, uri: str, begin: int, end: int, new: str) -> None:
        """Replace a range of offsets, by an incremental change."""
        text = self.texts[uri]
        first, last = text.position(begin), text.position(end)
        self.texts[uri], self.versions[uri] = text.edited(first, last, new), self.versions[uri] + 1
        change = types.TextDocumentContentChangePartial(
            types.Range(types.Position(first.line, first.character), types.Position(last.line, last.character)), new
        )
        name = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.rpc.text_document_did_change(types.DidChangeTextDocumentParams(name, [change]))

    async def diagnostics(self, uri: str, wanted: str | None = None, seconds: float = 60) -> list[types.Diagnostic]:
        """The next diagnostics of the current version; with `wanted`, the first that have a problem of this code."""
        async with asyncio.timeout(seconds):
            while True:
                for params in self.published.get(uri, ()):
                    codes = [each.code for each in params.diagnostics]
                    if params.version == self.versions[uri] and (wanted is None or wanted in codes):
                        return list(params.diagnostics)
                self._news.clear()
                await self._news.wait()

    async def ask(self, method: str, uri: str, offset: int | None = None, **more: Any) -> Any:
        """The answer to a request; the message of a refusal as a string."""
        document = types.TextDocumentIdentifier(uri)
        parameters: dict[str, Any] = {"text_document": document, **more}
        if offset is not None:
            position = self.texts[uri].position(offset)
            parameters["position"] = types.Position(position.line, position.character)
        made = types.METHOD_TO_TYPES[method][2](**parameters)
        try:
            return await asyncio.wait_for(self.rpc.protocol.send_request_async(method, made), 60)
        except JsonRpcInvalidParams as error:
            return str(error.message)

    def offset(self, uri: str, position: types.Position) -> int:
        return self.texts[uri].offset(Position(position.line, position.character))

    def word(self, uri: str, found: types.Range) -> str:
        """The text in a range."""
        return self.texts[uri].source[self.offset(uri, found.start) : self.offset(uri, found.end)]


@asynccontextmanager
async def connected(*arguments: str, folder: Path | None = None) -> AsyncIterator[Client]:
    """A client of a server that runs `python -m xbuild lsp`."""
    client = Client()
    await client.rpc.start_io(sys.executable, "-m", "xbuild", "lsp", *arguments, cwd=str(ROOT))
    root = folder.as_uri() if folder is not None else None
    try:
        capabilities = types.ClientCapabilities()
        await client.rpc.initialize_async(
            types.InitializeParams(capabilities=capabilities, process_id=os.getpid(), root_uri=root)
        )
        client.rpc.initialized(types.InitializedParams())
        yield client
        await asyncio.wait_for(client.rpc.shutdown_async(None), 30)
        client.rpc.exit(None)
        await asyncio.wait_for(client.process.wait(), 30)
    finally:
        with _ignored():
            client.process.kill()
        await client.rpc.stop()


@contextmanager
def _ignored() -> Iterator[None]:
    try:
        yield
    except ProcessLookupError:
        return
