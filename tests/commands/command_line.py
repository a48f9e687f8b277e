"""The command line called in process by tests, and the sentence with which it refuses wrong use."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from xbuild.cli import main


def xbuild(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], **options)


def usage(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("Error: ")
