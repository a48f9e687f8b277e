"""The commands of `xbuild step`, each a method; a prompt where somebody types, none where a script does."""

from __future__ import annotations

import cmd
import difflib
import sys
from typing import IO, Any

from ..trace import Event, Trace
from ..trace.saying import said
from .conditions import ConditionError, condition
from .walk import Walk, communicates


class Shell(cmd.Cmd):
    """Goes through a trace, forward and back."""

    doc_header = "Commands (help NAME says more):"

    def __init__(self, trace: Trace, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None and sys.stdin.isatty()
        self.prompt = "(step) " if self.use_rawinput else ""
        self.walk, self.trace = Walk(trace), trace
        self.failed = False

    def preloop(self) -> None:
        self.say(repr(self.trace))
        if self.trace.stop:
            self.say(self.trace.stop["text"])
        elif self.trace.verdict and self.trace.verdict["refused"]:
            self.say(self.trace.verdict["text"])
        self.do_where("")

    def say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def fault(self, text: str) -> None:
        """What cannot be done; a script's exit code tells of it."""
        self.failed = True
        self.say(f"! {text}")

    def emptyline(self) -> bool:
        return self.onecmd("step") if self.use_rawinput else False

    def default(self, line: str) -> None:
        word = line.split()[0]
        if line == "EOF":
            return
        close = difflib.get_close_matches(word, [name[3:] for name in self.get_names() if name.startswith("do_")], 1)
        self.fault(f"{word!r} is no command{f'; did you mean {close[0]!r}?' if close else ''}; `help` lists them")

    def onecmd(self, line: str) -> bool:
        if line.strip() == "EOF":
            return True
        return bool(super().onecmd(line.partition("#")[0]))

    def do_step(self, line: str) -> None:
        """step [N], step to NAME: go N instructions on, or to the next turn of an instruction, on this device."""
        if line.startswith("to "):
            self._to(line[3:].strip(), 1)
        else:
            self._by(line, 1, "the run has ended here")

    def do_back(self, line: str) -> None:
        """back [N], back to NAME: the same the other way."""
        if line.startswith("to "):
            self._to(line[3:].strip(), -1)
        else:
            self._by(line, -1, "this is where the run begins")

    def _by(self, line: str, way: int, otherwise: str) -> None:
        count = self._number(line or "1")
        if count is not None:
            if self.walk.by(way * count) or not count:
                self.do_where("")
            else:
                self.fault(otherwise)

    def _to(self, name: str, way: int) -> None:
        if self._known(name):
            self._go(lambda event: event.instruction.name == name, way, f"this device does not come to {name} again")

    def _go(self, wanted: Any, way: int, otherwise: str) -> None:
        if self.walk.to(wanted, way):
            self.do_where("")
        else:
            self.fault(otherwise)

    def _number(self, text: str) -> int | None:
        if not text.strip().isdigit():
            self.fault(f"{text.strip()!r} is no count")
            return None
        return int(text)

    def _known(self, name: str) -> bool:
        names = {spot.instruction.name for spot in self.trace.spots}
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            self.fault(f"the run never came to {name!r}{f'; did you mean {close[0]!r}?' if close else ''}")
        return name in names

    def do_comm(self, line: str) -> None:
        """comm: go to the next instruction that meets other devices or the host."""
        self._go(communicates, 1, "nothing more is met here")

    def do_trip(self, line: str) -> None:
        """trip N: go to the first instruction of the N-th trip of the innermost loop from here on."""
        number = self._number(line)
        if number is not None:
            trips = self.trace.trips
            wanted = lambda event: (found := trips(event.number)) and found[-1][1] == number  # noqa: E731
            self._go(wanted, 1, f"no loop has a trip {number} from here on")

    def do_until(self, line: str) -> None:
        """until CONDITION: go to the next value v of which it holds, as in `until v > 3`, `until any(isnan(v))`."""
        try:
            holds = condition(line)
        except ConditionError as error:
            self.fault(str(error))
            return
        values = self.trace.values
        self._go(lambda event: holds(values.get(event.number)), 1, f"no value on this device from here on has {line}")

    def do_device(self, line: str) -> None:
        """device N: go over to a device, at the same time."""
        number = self._number(line)
        if number is not None and self._is_device(number):
            self.walk.on(number)
            self.do_where("")

    def _is_device(self, number: int) -> bool:
        if number >= self.trace.num_devices:
            self.fault(f"device {number} is none of 0..{self.trace.num_devices - 1}")
        return number < self.trace.num_devices

    def do_where(self, line: str) -> None:
        """where: the device, the step, the instruction with its loops and trips, its value, and the line of yours."""
        event = self.walk.event
        if event is None:
            self.say(f"device {self.walk.device} has not begun")
            return
        self.say(self._row(event))
        if event.instruction.source:
            self.say(f"    {event.instruction.source}")

    def _row(self, event: Event) -> str:
        place = f"device {event.device}  step {event.time}  {self.trace.standing(event.number)}"
        waited = f"  (waited {event.waited})" if event.waited else ""
        return f"{place}{waited} = {said(self.trace.values.get(event.number))}"

    def do_print(self, line: str) -> None:
        """print [NAME]: the whole value of an instruction, as it is by now on this device; else of this one."""
        event = self.walk.event
        if event is None:
            self.fault("there is no value yet")
            return
        name = line.strip() or event.instruction.name
        value = self._value(name, self.walk.device)
        if value is not _NONE:
            self.say(f"{name} = {said(value, 1 << 12)}")

    def _value(self, name: str, device: int) -> Any:
        if not self._known(name):
            return _NONE
        try:
            return self.walk.value_of(name, device)
        except KeyError:
            self.fault(f"device {device} has not come to {name} by now")
            return _NONE

    def do_diff(self, line: str) -> None:
        """diff NAME A B: the values of an instruction on two devices by now, and where they first differ."""
        words = line.split()
        if len(words) != 3 or not all(word.isdigit() for word in words[1:]):
            self.fault("diff NAME A B is wanted, as in `diff add.3 0 1`")
            return
        a, b = int(words[1]), int(words[2])
        if self._is_device(a) and self._is_device(b):
            values = [self._value(words[0], device) for device in (a, b)]
            if _NONE not in [value if value is _NONE else None for value in values]:
                self._differ(words[0], (a, b), values)

    def _differ(self, name: str, devices: tuple[int, int], values: list[Any]) -> None:
        from ..trace.compare import apart

        for device, value in zip(devices, values, strict=True):
            self.say(f"{name} on device {device} = {said(value)}")
        found = apart(values[0], values[1])
        index = f" at {list(found[0])}" if found and found[0] else ""
        self.say("the same" if found is None else f"they differ{index}")

    def do_list(self, line: str) -> None:
        """list [N]: what comes before and after, N instructions each way."""
        count = self._number(line or "4")
        for place in range(max(0, self.walk.place - (count or 0)), self.walk.place + (count or 0) + 1):
            if place < len(self.walk.lane):
                mark = "->" if place == self.walk.place else "  "
                self.say(f"{mark} {self._row(self.trace[int(self.walk.lane[place])])}")

    def do_devices(self, line: str) -> None:
        """devices: where each device is at this time."""
        here = self.walk.device
        for device in range(self.trace.num_devices):
            self.walk.on(device)
            self.say(self._row(self.walk.event) if self.walk.event else f"device {device} has not begun")
        self.walk.on(here)

    def do_quit(self, line: str) -> bool:
        """quit: leave."""
        return True

    do_exit = do_q = do_quit
    do_s, do_b, do_p, do_w, do_l = do_step, do_back, do_print, do_where, do_list


_NONE = object()
