"""`xbuild examples` and `xbuild demo`: list, copy and run the programs that come with the package."""

from __future__ import annotations

from pathlib import Path

import click

from ..files import shipped
from .group import REFUSED, main
from .outputs import say, say_written


@main.command()
@click.option(
    "--copy",
    "into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Copy the examples to a new folder, DIR/examples.",
)
def examples(into: Path | None) -> None:
    """List the examples, each with a description, or copy them.

    To run a copied example, use `python -m examples.NAME` in DIR. The functions in an example can be targets for
    other commands, as in `xbuild check examples/ring.py:program`.
    """
    if into is not None:
        try:
            target = shipped.copy(into)
        except FileExistsError as error:
            raise click.UsageError(f"{error.filename}: {error.strerror}") from None
        except OSError as error:
            raise click.ClickException(f"cannot write {into}: {error.strerror}") from None
        say_written(target, f"{sum(1 for path in target.rglob('*') if path.is_file())} files")
        return
    listed = shipped.examples()
    width = max(len(example.name) for example in listed)
    for example in listed:
        needs = f"  (needs 'xbuild-hlo[{','.join(example.extras)}]')" if example.extras else ""
        say(f"{example.name:<{width}}  {example.sentence}{needs}")
    say("\nxbuild examples --copy DIR copies the examples; run one in DIR with python -m examples.NAME")
    say("xbuild learn lists the lessons, and xbuild puzzle lists the puzzles")


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Train on handwritten digits with four replicas: check the program, run it and draw a step.

    The demo accepts the options --replicas, --epochs and --picture. The demo needs the package 'xbuild-hlo[demo]'.
    """
    try:
        shipped.run("digits", [*arguments])
    except SystemExit as end:
        if isinstance(end.code, str):
            say(end.code, err=True)
        raise SystemExit(REFUSED if isinstance(end.code, str) else end.code) from None
