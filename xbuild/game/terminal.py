"""The game in a terminal: the devices as text, and a line for each move, claim or edge of the player."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field

from ..core.report_text import StyledText
from ..stepping.console import TextConsole
from .level import Case, GameWait, Level, wait_text
from .page import Telling
from .repairing import ShownRepair, repairs_of

GOALS = {"hang": "Make it hang", "end": "Make it finish", "repair": "ShownRepair it"}
_HELP = "1, 2, ...: start an instruction   u: undo   r: restart   c: claim that it cannot happen   q: quit"
_REPAIR_HELP = (
    "e1, e2, ...: add an edge   e: remove it   1, 2, ...: start an instruction   u: undo   r: restart   q: quit"
)


@define(eq=False)
class Game:
    """A level being played: the goal, the case or the repaired program on the board, and the states reached so far."""

    level: Level
    repairs: Sequence[ShownRepair] = ()
    goal: str = "hang"
    case: Case = field(init=False)
    repair: ShownRepair | None = field(default=None, init=False)
    way: list[int] = field(factory=lambda: [0], init=False)

    def __attrs_post_init__(self) -> None:
        self.case = self.level.cases[0]

    @property
    def state(self) -> int:
        return self.way[-1]

    @property
    def moves(self) -> list[tuple[tuple[int, int], int]]:
        """The possible moves, each a device with an item, and the state after it."""
        return [*self.case.states.moves[self.state].items()]

    @property
    def has_ended(self) -> bool:
        return self.case.states.is_end(self.state)

    @property
    def hangs(self) -> bool:
        return not self.moves and not self.has_ended

    @property
    def is_won(self) -> bool:
        """Whether the player has reached the goal on the board."""
        if self.goal == "repair":
            return self.has_ended and self.repair is not None and self.repair.is_right
        return self.hangs if self.goal == "hang" else self.has_ended

    def play(self, case: Case) -> None:
        """Put a case on the board, at its first state."""
        self.case, self.way = case, [0]

    def start(self, number: int) -> None:
        """Make a move, by its place in the list of possible ones."""
        self.way.append(self.moves[number][1])

    def undo(self) -> None:
        self.way = self.way[:-1] or [0]

    def choose(self, repair: ShownRepair | None) -> None:
        """Put the program with an edge on the board, or the program without one."""
        self.repair = repair
        self.play(self.level.cases[0] if repair is None else repair.case)

    def can_reach_goal(self) -> bool:
        """Whether an order reaches the goal: from here, or before the first move, with any data."""
        if len(self.way) == 1:
            return self.level.can_hang if self.goal == "hang" else self.level.can_end
        return (self.case.can_hang if self.goal == "hang" else self.case.can_end)[self.state]

    def waits(self) -> list[GameWait]:
        return [*self.case.states.waits(self.state)]


@define(eq=False)
class TerminalGame:
    """The game at a prompt; `read` returns a line of the player's input, "" at its end."""

    telling: Telling
    level: Level
    console: TextConsole
    read: Callable[[], str]

    def play(self) -> bool:
        """Play all goals of the level; returns whether the player reached each of them."""
        self.console.prose(StyledText(self.telling.title, "title"))
        for paragraph in filter(None, map(str.strip, self.telling.text.split("\n\n"))):
            self.console.prose(" ".join(paragraph.split()))
        repairs = repairs_of(self.level.cases[0].board) if self.telling.is_repair else []
        return all(self._reach(Game(self.level, repairs, goal)) for goal in ("hang", "repair" if repairs else "end"))

    def _reach(self, game: Game) -> bool:
        """Play until the player reaches a goal, or leaves; returns whether the goal was reached."""
        self.console.prose(StyledText(f"\n{GOALS[game.goal]}", "title"))
        self.console.prose(StyledText(_REPAIR_HELP if game.goal == "repair" else _HELP, "dim"))
        if game.goal == "repair":
            for number, repair in enumerate(game.repairs, 1):
                self.console.prose(f"  e{number}  {repair.words}")
        if len(self.level.cases) > 1:
            self.console.prose("The data decide which case happens:")
            for number, case in enumerate(self.level.cases, 1):
                self.console.prose(f"  d{number}  {case.words}")
        self._show(game)
        while (line := self._read_line()) not in ("q", "quit", None):
            if self._obey(game, line or ""):
                return True
        return False

    def _read_line(self) -> str | None:
        """The next line of the player; None at the end of the input."""
        self.console.out.write("> ")
        self.console.out.flush()
        line = self.read()
        return line.strip() if line else None

    def _obey(self, game: Game, line: str) -> bool:
        """Do what a line says, and show the board; returns whether the player has reached the goal."""
        kind, number = line[:1].lower(), line[1:].strip()
        if line.isdecimal() and 1 <= int(line) <= len(game.moves):
            game.start(int(line) - 1)
        elif line == "u":
            game.undo()
        elif line == "r":
            game.way = [0]
        elif line == "c" and game.goal != "repair" and (game.moves or len(game.way) == 1):
            return self._judge_claim(game)
        elif kind == "e" and game.goal == "repair" and (not number or _is_place(number, game.repairs)):
            self._add_edge(game, game.repairs[int(number) - 1] if number else None)
        elif kind == "d" and _is_place(number, self.level.cases) and len(self.level.cases) > 1:
            game.play(self.level.cases[int(number) - 1])
        else:
            self.console.prose(StyledText(_REPAIR_HELP if game.goal == "repair" else _HELP, "waits"))
            return False
        self._show(game)
        return game.is_won

    def _add_edge(self, game: Game, repair: ShownRepair | None) -> None:
        """Put an edge into the program on the board, or take it out; a wrong edge shows a hang."""
        game.choose(repair)
        if repair is None:
            return
        if repair.is_right:
            self.console.prose(StyledText(f"  Right: with the edge {repair.words}, no order hangs.", "good"))
            self.console.prose("  Start instructions in any order, and all devices finish.")
            return
        self.console.prose(StyledText(f"  With the edge {repair.words}, the program still hangs.", "bad"))
        while not game.hangs:
            game.start(next(n for n, (_, after) in enumerate(game.moves) if game.case.can_hang[after]))

    def _judge_claim(self, game: Game) -> bool:
        """Say whether the claim that no order reaches the goal is right; at the first state, a right one wins."""
        verb, begins = "hangs" if game.goal == "hang" else "finishes", len(game.way) == 1
        where = "" if begins else " from here"
        if game.can_reach_goal():
            self.console.prose(StyledText(f"  It can: some order{where} {verb}. Try to find that order.", "bad"))
            return False
        self.console.prose(StyledText(f"  Right: no order{where} {verb}.", "good"))
        if not begins:
            self.console.prose("  Undo (u), and try a different order.")
        return begins

    def _show(self, game: Game) -> None:
        """The items of each device, the possible moves with their numbers, and whether the devices have stopped."""
        numbers = {move: number for number, (move, _) in enumerate(game.moves, 1)}
        waits = {wait.device: wait_text(wait) for wait in game.waits()}
        for (device, items), (begun, at, _) in zip(
            game.case.board.items.items(), game.case.states.states[game.state], strict=True
        ):
            self.console.prose(StyledText(f"device {device}", "name"))
            for number, item in enumerate(items):
                mark = f"{numbers[device, number]:>2}" if (device, number) in numbers else "  "
                is_done = begun >> number & 1 and at != number
                fate = "done" if is_done else waits[device] if at == number else ""
                piece = StyledText(f"  {fate}", "good" if is_done else "waits")
                self.console.prose(f"  {mark}  {item.instruction.name}", *([piece] if fate else []))
        if game.has_ended:
            self.console.prose(StyledText("All devices have finished.", "good" if game.goal == "end" else "title"))
        elif game.hangs:
            self.console.prose(StyledText("The program hangs: no device can proceed.", "bad"))
        if (game.has_ended or game.hangs) and not game.is_won and game.goal != "repair":
            self.console.prose(
                f"Your goal is {'a hang' if game.goal == 'hang' else 'an end'}: undo (u) or restart (r)."
            )


def _is_place(number: str, choices: Sequence[object]) -> bool:
    return number.isdecimal() and 1 <= int(number) <= len(choices)
