"""The commands show and check, in process: what they print, where, and with which exit code."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from tests.commands.command_line import xbuild

# show


@pytest.mark.usefixtures("folder")
def test_show_prints_hlo_text() -> None:
    result = xbuild("show", "programs.py:total")
    assert result.exit_code == 0
    assert result.stdout == dedent(
        """\
        ENTRY total {
          parameter.1 = f32[3] parameter(0)
          parameter.2 = f32[3] parameter(1)
          ROOT add.3 = f32[3] add(parameter.1, parameter.2)
        }
        """
    )
    assert "%add.3" in xbuild("show", "programs.py:total", "--style", "full").stdout
    assert xbuild("show", "programs.py:summed").stdout.startswith("HloModule summed, replica_count=2\n")
    assert "// device 1\nHloModule device" in xbuild("show", "programs.py:crossed").stdout


@pytest.mark.usefixtures("folder")
def test_show_the_skeleton() -> None:
    assert xbuild("show", "programs.py:summed", "--only", "collectives").stdout == dedent(
        """\
        ENTRY summed {
          ... 1 op
          all-reduce.4 = f32[2] all-reduce(x), replica_groups={}, to_apply=add
        }
        """
    )


@pytest.mark.usefixtures("folder")
def test_show_the_plan() -> None:
    source = xbuild("show", "programs.py:total", "--plan").stdout
    compile(source, "plan", "exec")
    assert "def " in source


# check


@pytest.mark.usefixtures("folder")
def test_check_says_ok() -> None:
    result = xbuild("check", "programs.py:summed")
    assert result.exit_code == 0
    assert result.stdout.startswith("ok")
    assert result.stderr == ""


@pytest.mark.usefixtures("folder")
def test_check_refuses_on_stderr() -> None:
    result = xbuild("check", "programs.py:crossed")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("deadlock")
    assert xbuild("check", "programs.py:crossed", "--send-buffers", 1).exit_code == 0


@pytest.mark.usefixtures("folder")
def test_check_depends_is_a_notice() -> None:
    result = xbuild("check", "programs.py:fed")
    assert result.exit_code == 0
    assert result.stdout.startswith("depends")
    assert result.stderr.startswith("notice: ")


@pytest.mark.usefixtures("folder")
def test_check_as_json() -> None:
    result = xbuild("check", "programs.py:crossed", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["kind"] == "deadlock"


@pytest.mark.usefixtures("folder")
def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in xbuild("check", "programs.py:summed").stdout
    assert "\x1b[" in xbuild("check", "programs.py:summed", color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in xbuild("check", "programs.py:summed", color=True).stdout
