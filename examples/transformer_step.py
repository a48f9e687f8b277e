"""A training step of a transformer on eight devices, in a correct version and with three faults that commands explain.

The loss is the one of examples/sharded_block.py; the step moves the weights against the gradients of the loss.
"""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve

import xbuild as xb
from examples.sharded_block import SHAPES, SPECS, WEIGHTS, arguments, loss

MESH = xb.Mesh(batch=4, model=2)
RATE = 0.05


def _gradients() -> Any:
    """The loss and its gradients, as a program on the mesh."""
    forward = xb.shard_map(loss, MESH, tuple(SPECS.values()), xb.P()).program(*SHAPES.values())
    return xb.value_and_grad(forward, WEIGHTS)


def step() -> xb.Module:
    """The loss and the new weights, from the data of each device and the old weights."""
    module = _gradients().module
    names = list(SPECS)
    with xb.edit(module) as editor:
        for parameter, name in zip(module.entry.parameters, names, strict=True):
            editor.rename(parameter, name)
        result, gradients = module.entry.root.operands
        moved = [
            xb.subtract(editor[names[n]], editor[gradient] * RATE, name=f"new_{names[n]}")
            for n, gradient in zip(WEIGHTS, gradients.operands, strict=True)
        ]
        editor.set_root(xb.tuple_([editor[result], *moved], name="step"))
    return xb.eliminate_dead_code(editor.result)


def _first(module: xb.Module, opcode: str) -> xb.Instruction:
    return next(each for each in module.entry.instructions if each.opcode == opcode)


def unstable() -> xb.Module:
    """The step with a softmax of scores a thousand times larger that does not subtract the maximum."""
    module = step()
    weights = _first(module, "exponential")
    with xb.edit(module) as editor, editor.before(weights):
        scores = module.entry[weights.operands[0].name].operands[0]
        editor.replace_operand(weights, 0, editor[scores] * 1000.0)
    return editor.result


def left_out() -> xb.Module:
    """The step as text without mesh types, with a sum of gradients that omits one device."""
    module = _untyped(step())
    total = module.entry["pvary.14.vjp"]
    with xb.edit(module) as editor:
        editor.set_attributes(total, replica_groups=[[0, 2, 4], [6], [1, 3, 5, 7]])
    return editor.result


_TYPE = re.compile(r', frontend_attributes=\{(?:"[^"]*"|[^"}])*\}')


def _untyped(module: xb.Module) -> xb.Module:
    """The module read from a text in which only the parameters of the entry computation have mesh types."""
    lines = module.to_hlo(metadata=True).splitlines()
    kept = (line if " parameter(" in line or line.startswith("HloModule") else _TYPE.sub("", line) for line in lines)
    return xb.parse_hlo("\n".join(kept))


def crossed() -> xb.ModuleGroup:
    """The step on each device, in a schedule in which one device sums two gradients in the opposite order."""
    module = evolve(_untyped(step()), is_scheduled=True)
    with xb.edit(module) as editor:
        editor.move("pvary.12.vjp", after="pvary.11.vjp")
    other = editor.result
    return xb.ModuleGroup({device: other if device == 5 else module for device in range(module.num_devices)})


def main() -> None:
    given = _gradients().arguments(*arguments())
    for number in range(1, 4):
        results = xb.execute(step(), given)
        print(f"before step {number}, the loss is {results[0][0]:.6f}")
        given = [[*data[:2], *result[1:]] for data, result in zip(given, results, strict=True)]


if __name__ == "__main__":
    main()
