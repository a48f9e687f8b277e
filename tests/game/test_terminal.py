"""`xbuild play --terminal`: a scripted player reaches each goal of every level, and no verdict comes before a claim."""

from __future__ import annotations

import io
import random

import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild
from xbuild.game.levels import ShippedLevel, in_order
from xbuild.game.repairing import repairs_of
from xbuild.game.terminal import Game, TerminalGame
from xbuild.stepping.console import TextConsole


def lines_to(game: Game) -> list[str]:
    """The lines of a player who reaches the goal of a game, or claims that nobody can."""
    if not game.can_reach_goal():
        return ["c"]
    lines: list[str] = []
    for number, case in enumerate(game.level.cases, 1):
        can = case.can_hang if game.goal == "hang" else case.can_end
        if can[0]:
            lines += [f"d{number}"] if number > 1 else []
            game.play(case)
            while not game.is_won:
                place = next(n for n, (_, after) in enumerate(game.moves) if can[after])
                game.start(place)
                lines.append(str(place + 1))
            return lines
    raise AssertionError


def played(entry: ShippedLevel, lines: list[str]) -> tuple[bool, str]:
    out, given = io.StringIO(), iter([f"{line}\n" for line in lines])
    is_won = TerminalGame(entry.telling, entry.level(), TextConsole(out), lambda: next(given, "")).play()
    return is_won, out.getvalue()


@pytest.mark.parametrize("entry", in_order(), ids=lambda each: each.name)
def test_a_player_reaches_every_goal(entry: ShippedLevel) -> None:
    level = entry.level()
    lines = lines_to(Game(level, goal="hang"))
    if entry.is_repair:
        repairs = repairs_of(level.cases[0].board)
        chance = random.Random(entry.number)
        for number, repair in enumerate(repairs, 1):
            lines.append(f"e{number}")
            if repair.is_right:
                game = Game(level, repairs, "repair")
                game.choose(repair)
                while game.moves:
                    place = chance.randrange(len(game.moves))
                    game.start(place)
                    lines.append(str(place + 1))
                assert game.is_won
                break
    else:
        lines += lines_to(Game(level, goal="end"))
    is_won, out = played(entry, lines)
    assert is_won, out
    assert out.count("> ") == len(lines)
    assert entry.title in out


@pytest.mark.parametrize("entry", in_order(), ids=lambda each: each.name)
def test_no_verdict_before_a_claim(entry: ShippedLevel) -> None:
    """While moves are left, the board says only which instructions are ready, have finished or wait."""
    _, out = played(entry, ["1", "1"])
    told = [line for line in out.splitlines() if "hang" in line or "finish" in line]
    about = {*entry.telling.text.splitlines(), *entry.title.splitlines()}
    allowed = ("Make it ", "The program hangs: no device can proceed.", "All devices have finished.", "Your goal is ")
    said = [line for line in told if not line.startswith(allowed) and not any(line in each for each in about)]
    assert not [line for line in said if "Right" in line or "can:" in line or "no order" in line]


def test_the_command_plays() -> None:
    found = xbuild("play", 3, "--terminal", input="c\n1\nnonsense\nu\n1\n2\nq\n")
    assert found.exit_code == 0
    assert "It can: some order hangs. Try to find that order." in found.stdout
    assert "The program hangs: no device can proceed." in found.stdout
    assert "waits for device 1 to reach all-reduce (sum_a)" in found.stdout
    assert found.stdout.endswith("game ended\n")


def test_the_command_ends_with_the_input() -> None:
    assert xbuild("play", "two_sums", "--terminal", input="").stdout.endswith("> game ended\n")


def test_a_program_is_played(tmp_path: object) -> None:
    total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    file = f"{tmp_path}/m.hlo"
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(total.to_hlo())
    found = xbuild("play", file, "--terminal", input="c\n1\n1\n")
    assert "Right: no order hangs." in found.stdout
    assert found.stdout.endswith("level solved\n")


def test_what_the_terminal_does_not_need_is_refused() -> None:
    assert usage(xbuild("play", 3, "--terminal", "-o", "x.html")).startswith("-o has no effect with --terminal")
    assert usage(xbuild("play", "--terminal")).startswith("--terminal needs a level or a program")
