"""Faults hidden in real programs: a small program in the middle of a large one, as a module or as text."""

from __future__ import annotations

import re

from attrs import evolve

from xbuild.core.graph import Computation, Instruction, Module
from xbuild.properties.order import ordered
from xbuild.properties.rewriting import Rewriter, rewired


def hidden(fault: Module, host: Module) -> Module:
    """The host with the instructions of the fault's entry in the middle of its own.

    Parameters of the fault become further parameters of the host, and its channels get numbers that the host does not
    have. The result of the fault becomes a control predecessor of the host's next instruction, so both are parts of one
    program. The module has the devices of the one that has more, and is scheduled if the fault is: the host's order is
    a valid schedule.
    """
    more = max(0, *(_channel(each) for c in host.computations for each in c.instructions))
    taken = {each.name for c in host.computations for each in c.instructions}
    places = {each.name for each in host.computations}

    def fresh(name: str, names: set[str]) -> str:
        while name in names:
            name += ".fault"
        names.add(name)
        return name

    class Renamed(Rewriter):
        def instruction(self, instruction: Instruction) -> Instruction:
            called = [self.done.get(each, each) for each in instruction.called]
            name = fresh(instruction.name, taken)
            made = rewired(instruction, self.now, called or None, name=name)
            if made.opcode == "parameter" and self.is_entry:
                number = made.attributes.number + len(host.entry.parameters)
                made = evolve(made, attributes=evolve(made.attributes, number=number))
            if _channel(made):
                made = evolve(made, attributes=evolve(made.attributes, channel_id=_channel(made) + more))
            return self.add(made)

        def computation(self, computation: Computation) -> Computation:
            self.is_entry = computation is fault.entry
            made = super().computation(computation)
            return Computation(fresh(made.name, places), made.instructions, made.root)

    part = Renamed().program(fault.entry)
    before = [*ordered(host.entry)]
    middle = len(before) // 2
    later = before[middle]
    tied = evolve(later, control=(*later.control, part.root)) if later.opcode != "parameter" else later
    now = {later: tied}
    rest = [tied]
    for each in before[middle + 1 :]:
        now[each] = rewired(each, now)
        rest.append(now[each])
    order = [*before[:middle], *ordered(part), *rest]
    entry = Computation(host.entry.name, order, now.get(host.entry.root, host.entry.root))
    counts = max((fault, host), key=lambda each: each.num_devices)
    return Module(
        host.name,
        entry,
        num_replicas=counts.num_replicas,
        num_partitions=counts.num_partitions,
        is_scheduled=fault.is_scheduled,
    )


def _channel(instruction: Instruction) -> int:
    return getattr(instruction.attributes, "channel_id", None) or 0


_DEFINED = re.compile(r"^\s*(?:ROOT\s+)?%?([\w.-]+)\s*=", re.MULTILINE)


def hidden_text(fault: str, host: str) -> str:
    """The text of the host with the lines of the fault's entry in the middle of its own entry.

    The computations that the fault calls precede those of the host. No rule reads the fault, which may be no program.
    """
    body = re.sub(r"\A\s*HloModule[^\n]*\n", "", fault.strip() + "\n")
    match = re.search(r"^\s*ENTRY[^\n]*\{\s*$", body, re.MULTILINE)
    assert match is not None, fault
    called, inner = body[: match.start()], body[match.end() :].strip().rstrip("}").rstrip()
    lines = re.sub(r"^(\s*)ROOT\s+", r"\1", inner, flags=re.MULTILINE)
    for name in _DEFINED.findall(inner):
        lines = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.(-])", f"{name}.fault", lines)
    header, _, rest = host.partition("\n")
    entry = re.search(r"^ENTRY[^\n]*\{\n", rest, re.MULTILINE)
    assert entry is not None
    end = rest.index("\n}", entry.end())
    own = rest[entry.end() : end].split("\n")
    more = sum(" parameter(" in line for line in own)
    lines = re.sub(r"(?<= parameter\()\d+", lambda number: str(int(number[0]) + more), lines)
    middle = max(1, len(own) // 2)
    own = [*own[:middle], lines, *own[middle:]]
    return "\n".join([header, "", called.strip("\n"), "", rest[: entry.end()] + "\n".join(own) + rest[end:]])
