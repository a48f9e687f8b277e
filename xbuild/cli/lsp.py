"""`xbuild lsp`: the language server for HLO and MLIR text."""

from __future__ import annotations

import click

from .group import Amount, main, stop

_MISSING = "the language server needs pygls, which is not installed: pip install 'xbuild-hlo[lsp]' [missing_extra]"


@main.command(cls=click.Command)
@click.option(
    "--check-seconds",
    "seconds",
    type=Amount(),
    metavar="S",
    default=10.0,
    show_default=True,
    help="Stop checking a file after this many seconds; with 0, read files without checking them.",
)
def lsp(seconds: float) -> None:
    """Run a language server for .hlo and .mlir files that communicates over stdin and stdout.

    An editor starts this command; docs/editors.md shows how to set up Neovim, VS Code, Emacs and Helix. While you type,
    the server shows errors in the text, findings from `xbuild check` and issues from `xbuild lint`. It also supports
    hover, go to definition (including your Python line), references, rename, completion, outline and folding.
    """
    try:
        from ..lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs"):
            raise
        raise stop(_MISSING) from None
    serve(seconds)
