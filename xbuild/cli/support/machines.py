"""The option --machine, whose value is looked up before a command begins."""

from __future__ import annotations

import click

from shape_inference import XbuildError


def known_machine(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of --machine: a name or machine file that is none is a usage error, like any wrong value."""
    from ...timelines import machine

    if value is not None:
        try:
            machine(value)
        except XbuildError as error:
            raise click.BadParameter(str(error), param=parameter) from None
    return value
