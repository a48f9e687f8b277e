"""`xbuild examples` and `xbuild demo`: the programs that come with the package, listed, copied and run."""

from __future__ import annotations

from pathlib import Path

import click

from ..files import shipped
from .group import REFUSED, main
from .support.saying import say


@main.command()
@click.option(
    "--copy",
    "into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Copy them to a new folder DIR/examples.",
)
def examples(into: Path | None) -> None:
    """List the examples with a sentence each, or copy them.

    An example is run with `python -m examples.NAME` in DIR. Its functions are targets of other commands:
    `xbuild check examples/ring.py:program`.
    """
    if into is not None:
        try:
            target = shipped.copy(into)
        except FileExistsError as error:
            raise click.UsageError(f"{error.filename}: {error.strerror}") from None
        say(f"{target}: {sum(1 for each in target.rglob('*') if each.is_file())} files")
        return
    found = shipped.examples()
    width = max(len(each.name) for each in found)
    for each in found:
        wants = f"  (wants 'xbuild-hlo[{','.join(each.extras)}]')" if each.extras else ""
        say(f"{each.name:<{width}}  {each.sentence}{wants}")
    say("\nxbuild examples --copy DIR copies them; in DIR, python -m examples.NAME runs one")


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Train on handwritten digits with four replicas, checked before it runs, and draw the step.

    Options of the demo are taken: --replicas, --epochs, --picture. It wants 'xbuild-hlo[demo]'.
    """
    try:
        shipped.run("digits", [*arguments])
    except SystemExit as end:
        if isinstance(end.code, str):
            say(end.code, err=True)
        raise SystemExit(REFUSED if isinstance(end.code, str) else end.code) from None
