"""A job as a training script, with the fault as a slip in one of its lines."""

from __future__ import annotations

import dataclasses

from .jobs import Call, Fault, Job, Phase

_HEAD = '''"""{title}"""

from tests.hang_trials.recording import RANK, connect, die, end, finish, load, meet, stall, start

{names} = connect(
    {{
{roles}
    }},
    freeze=RANK in {frozen},
)
'''


def write_script(job: Job) -> str:
    names = ", ".join(job.roles) + ("," if len(job.roles) == 1 else "")
    roles = "\n".join(f"        {name!r}: ({role.description!r}, {role.groups!r})," for name, role in job.roles.items())
    fault = job.fault or Fault("none", ())
    frozen = list(fault.ranks) if fault.kind == "frozen" else []
    text = _HEAD.format(title=f"A job of {job.world} ranks: {job.layout}.", names=names, roles=roles, frozen=frozen)
    phases = [(-1, job.setup)] if job.setup else []
    for index, phase in [*phases, *enumerate(job.phases)]:
        text += "\n\n" + _function(phase, fault if fault.at[1] == index else Fault("none", ()))
    if job.setup:
        text += "\n\nsetup(0)"
    calls = "".join(f"    {phase.name}(epoch)\n" for phase in job.phases)
    return f"{text}\n\nfor epoch in range({job.epochs}):\n{calls}end()\n"


def _function(phase: Phase, fault: Fault) -> str:
    epoch, _, step, _ = fault.at
    lines = [f"def {phase.name}(epoch):"]
    if fault.kind == "uneven":
        lines += [f"    batches = {step} if RANK in {list(fault.ranks)} and epoch == {epoch} else {phase.steps}"]
        lines += ["    for step in range(batches):"]
    else:
        lines += [f"    for step in range({phase.steps}):"]
    for number, call in enumerate(phase.calls):
        text = [_line(call)]
        instead = _instead(fault, number, phase)
        if instead is not None:
            condition = f"RANK in {list(fault.ranks)} and (epoch, step) == ({epoch}, {step})"
            text = [f"if {condition}:", f"    {instead}", "else:", f"    {text[0]}"]
        if call.every > 1:
            text = [f"if step % {call.every} == {call.every - 1}:", *(f"    {line}" for line in text)]
        lines += [f"        {line}" for line in text]
    if fault.kind == "uneven" and fault.get("then") in ("return", "leave"):
        lines += [
            f"    if batches < {phase.steps}:",
            "        stall()" if fault.get("then") == "return" else "        end()",
        ]
    return "\n".join(lines) + "\n"


def _instead(fault: Fault, place: int, phase: Phase) -> str | None:
    first, other = fault.at[3], fault.get("other")
    if fault.kind == "swap" and place in (first, other):
        return _line(phase.calls[other if place == first else first])
    if place != first:
        return None
    if fault.kind in ("size", "type", "op"):
        return _line(dataclasses.replace(phase.calls[place], **dict(fault.change)))
    return {"skip": "pass", "sleep": "stall()", "die": f"die({fault.get('by')!r})"}.get(fault.kind)


def _line(call: Call) -> str:
    if not call.role:
        return {"load": "load()", "wait": "finish()"}[call.op]
    details = [repr(call.op), call.role]
    details += [str(call.numel)] if call.op != "barrier" else []
    details += [repr(call.dtype)] if call.dtype != "float32" else []
    return f"{'start' if call.later else 'meet'}({', '.join(details)})"
