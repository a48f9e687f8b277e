"""`xbuild why`: prints of which instruction another is the derivative."""

from __future__ import annotations

import click

from ..core.graph import ModuleGroup
from ..differentiation.transforms.origins import why as answer
from .group import load, main, takes_target
from .support.candidates import instructions
from .support.saying import say


@main.command()
@takes_target
@click.argument("name", metavar="INSTRUCTION", shell_complete=instructions)
def why(target: str, name: str) -> None:
    """Say of which instruction another is the derivative, with its line and what uses it.

    `xbuild explain TARGET --of NAME` says more of any instruction.
    """
    program = load(target)
    parts = program.modules.values() if isinstance(program, ModuleGroup) else (program,)
    found = [answer(part, name) for part in dict.fromkeys(parts) if _has(part, name)]
    if not found:
        raise click.UsageError(f"the program has no instruction %{name.removeprefix('%')}; `xbuild show` prints them")
    say("\n\n".join(found))


def _has(part: object, name: str) -> bool:
    computations = getattr(part, "computations", None) or part.reachable()  # type: ignore[attr-defined]
    return any(each.name == name.removeprefix("%") for home in computations for each in home.instructions)
