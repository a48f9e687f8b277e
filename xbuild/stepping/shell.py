"""The prompt of `xbuild step`: commands and their short names, help, completion of what is typed."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import IO, Any

from ..sharding.partition import Partitioned
from ..traces import Trace
from .face import Face, Piece, face_of
from .looking import Looking
from .moving import Moving
from .tiles import Tiles

ALIASES = {
    "n": "next", "j": "next", "s": "next", "step": "next", "b": "back", "k": "back", "t": "to", "c": "comm",
    "u": "until", "d": "device", "w": "where", "l": "list", "pr": "program", "ds": "devices", "p": "print",
    "g": "whole", "q": "quit", "exit": "quit", "EOF": "quit", "h": "help", "?": "help",
}  # fmt: skip
GROUPS = {
    "Go": ("next", "back", "to", "comm", "until", "device", "trip", "part"),
    "Look": ("where", "program", "list", "devices", "print", "whole", "diff", "watch", "unwatch"),
    "Else": ("view", "help", "quit"),
}
_WELCOME = "n goes on, b goes back, w shows where you are, help lists the commands; Tab completes, Enter repeats a move"
_MORE = "`help COMMAND` says more of one. NAME is an instruction, such as add.3; devices count from 0."
_COMPLETED = {
    "to": ("trip", "step", "device", "start", "end"), "back": ("to", "until", "comm"), "view": Looking.views,
    "help": tuple(each for group in GROUPS.values() for each in group),
}  # fmt: skip


class Shell(Moving, Tiles):
    """The prompt that steps through a trace, forward and back."""

    def __init__(self, trace: Trace, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
                 face: Face | None = None, partitioned: Partitioned | None = None) -> None:  # fmt: skip
        self.partitioned = partitioned
        super().__init__(trace, face or face_of(stdout or sys.stdout), stdin)
        self.use_rawinput = stdin is None and sys.stdin.isatty()
        self.view = "full" if self.use_rawinput else "line"
        self._again = "next"
        self._prompt()

    def _prompt(self) -> None:
        self.prompt = f"(device {self.walk.device}, step {self.walk.time}) " if self.use_rawinput else ""

    def preloop(self) -> None:
        self.face.say(Piece(repr(self.trace), "title"))
        if self.trace.stop:
            self.face.prose(self.trace.stop["text"])
        elif self.trace.verdict and self.trace.verdict["refused"]:
            self.face.prose(self.trace.verdict["text"])
        if self.use_rawinput:
            _words_are_names()
            self.face.prose(Piece(_WELCOME, "dim"))
        self.arrived()
        self._prompt()

    def onecmd(self, line: str) -> bool:
        word, _, rest = line.partition("#")[0].strip().partition(" ")
        try:
            return bool(super().onecmd(f"{ALIASES.get(word, word)} {rest}".strip()))
        except KeyboardInterrupt:  # an interrupt ends a long search, and the place stays
            self.fault("interrupted")
            return False

    def postcmd(self, stop: bool, line: str) -> bool:
        word = line.strip().partition(" ")[0]
        if ALIASES.get(word, word) in GROUPS["Go"]:
            self._again = line
        self._prompt()
        return stop

    def emptyline(self) -> bool:
        return self.onecmd(self._again) if self.use_rawinput else False

    def default(self, line: str) -> None:
        word = line.split()[0]
        close = difflib.get_close_matches(word, [*_COMPLETED["help"], *ALIASES], 1)
        meant = f"did you mean {close[0]!r}? " if close else ""
        self.fault(f"{word!r} is no command; {meant}`help` lists them")

    def do_quit(self, line: str) -> bool:
        """quit (q, Ctrl-D): end the session."""
        return True

    def do_help(self, arg: str) -> None:
        """help [COMMAND] (h, ?): list the commands, or explain one."""
        name = ALIASES.get(arg.strip(), arg.strip())
        if name:
            method = getattr(self, f"do_{name}", None)
            self.fault(f"{name!r} is no command; `help` lists them") if method is None else self._explain(method)
            return
        for group, names in GROUPS.items():
            self.face.say(Piece(group, "title"))
            self.face.rows((self._summary(name) for name in names), "  ")
        self.face.prose(Piece(_MORE, "dim"))

    def _summary(self, name: str) -> Sequence[str | Piece]:
        head, _, tail = _documented(getattr(self, f"do_{name}"))[0].partition(": ")
        return [Piece(head, "name"), tail.rstrip(".")]

    def _explain(self, method: Any) -> None:
        for line in _documented(method):
            self.face.prose(line)

    def complete_names(self, text: str, line: str) -> list[str]:
        """The completions of a word: words of the command and names of instructions, or devices."""
        word = line.split()[0]
        command = ALIASES.get(word, word)
        if command in ("device", "part"):
            found: Sequence[str] = [*map(str, range(self.trace.num_devices))]
        elif command in ("help", "view"):
            found = _COMPLETED[command]
        else:
            found = [*_COMPLETED.get(command, ()), *self.names]
        return [each for each in found if each.startswith(text)]

    def completedefault(self, *ignored: Any) -> list[str]:
        text, line, *_ = ignored
        return self.complete_names(text, line)

    def complete_help(self, *args: Any) -> list[str]:
        return self.complete_names(args[0], args[1])

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        return [each for each in _COMPLETED["help"] if each.startswith(text)]


def _documented(method: Any) -> list[str]:
    import inspect

    return (inspect.getdoc(method) or "").splitlines()


def _words_are_names() -> None:
    """Make readline complete a name such as all-reduce.5 as one word."""
    try:
        import readline
    except ImportError:  # without readline there is no completion
        return
    readline.set_completer_delims(" \t\n")
