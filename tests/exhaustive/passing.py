"""Transfers between devices: a send, a recv and their dones, in some order."""

from __future__ import annotations

from .program import Instruction, Transfer
from .scene import PAYLOAD, Groups, Part, Scene
from .spelling import braces


def transfer(scene: Scene) -> None:
    drawing = scene.drawing
    pairs = _pairs(scene)
    if not pairs:
        return
    channel = Transfer(drawing.next_channel(), pairs)
    is_late = drawing.chance(max(drawing.wild, 0.05) if drawing.is_given else 0.5)
    for part in scene.present():
        sends = any(source in part.devices for source, _ in pairs)
        takes = any(target in part.devices for _, target in pairs)
        if drawing.is_one:
            sends = takes = True
        halves = _Halves(scene, part, channel)
        steps = [halves.recv] * takes + [halves.send] * sends
        ends = [halves.send_done] * sends + [halves.recv_done] * takes
        if is_late:
            steps.reverse()
        if drawing.chance(0.2) and sends and takes:
            steps, ends = [halves.send, halves.send_done], [halves.recv, halves.recv_done]
        if steps:
            scene.begin(part, [*steps, *ends])


class _Halves:
    """The four instructions of a transfer on one part."""

    def __init__(self, scene: Scene, part: Part, transfer: Transfer) -> None:
        self.scene, self.part, self.transfer = scene, part, transfer
        self.made: dict[str, Instruction] = {}

    def _token(self) -> Instruction:
        return self.part.builder.emit("after-all", "token[]")

    @property
    def _attributes(self) -> str:
        pairs = braces(self.transfer.pairs) if self.scene.drawing.is_one else ""
        told = f', frontend_attributes={{_xla_send_recv_source_target_pairs="{pairs}"}}' if pairs else ""
        return f", channel_id={self.transfer.channel}{told}"

    def _emit(self, opcode: str, shape: str, operands: list[Instruction]) -> Instruction:
        name = f"{opcode.replace('-', '_')}{self.transfer.channel}"
        self.made[opcode] = self.part.builder.emit(
            opcode, shape, operands, self._attributes, given=self.transfer, name=name
        )
        return self.made[opcode]

    def recv(self) -> None:
        self._emit("recv", f"({PAYLOAD}, u32[], token[])", [self._token()])

    def send(self) -> None:
        x = self.part.payload(self.scene.drawing)
        self._emit("send", f"({PAYLOAD}, u32[], token[])", [x, self._token()])

    def send_done(self) -> None:
        self._emit("send-done", "token[]", [self.made["send"]])

    def recv_done(self) -> None:
        taken = self._emit("recv-done", f"({PAYLOAD}, token[])", [self.made["recv"]])
        self.part.parts.append(self.part.builder.element(taken, 0, PAYLOAD))


def _pairs(scene: Scene) -> Groups:
    """Who sends to whom: of those that come alike; of several modules one pair."""
    drawing, pairs = scene.drawing, list[tuple[int, int]]()
    cohorts = [scene.active] if drawing.chance(drawing.wild) else [*scene.cohorts]
    for cohort in cohorts:
        sources, targets = [*cohort], [*cohort]
        if drawing.chance(0.5):
            targets = targets[1:] + targets[:1]
        else:
            drawing.rng.shuffle(targets)
        pairs += [pair for pair in zip(sources, targets, strict=True) if pair[0] != pair[1] and drawing.chance(0.7)]
    drawing.rng.shuffle(pairs)
    return tuple(pairs if drawing.is_one else pairs[:1])
