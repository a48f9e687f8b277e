"""Every reading of a program with a new op, for tests/ops/test_new_op.py: prints what each gives, or which error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

OPERAND = [0.0, 1.0, -1.5]


def readings() -> dict[str, Callable[[], Any]]:
    import numpy as np

    import xbuild as xb
    from interpreter import evaluate, execute, trace
    from interpreter.kernels.flushing import flushing
    from interpreter.provenance import origins_of
    from interpreter.rules import compute
    from interpreter.runtime.estimates import least_seconds
    from xbuild.cli import main
    from xbuild.running import Evaluator

    softplus = vars(xb.ops)["softplus"]

    function = xb.computation(xb.f32[3])(lambda x: softplus(x))
    module = xb.Module("m", function)
    mapped = xb.computation(xb.f32[3])(lambda x: xb.map([x], to_apply=lambda e: softplus(e), dimensions=[0]))
    values = [np.array(OPERAND, np.float32)]

    def loop(x: Any) -> Any:
        return xb.while_(
            x, condition=lambda s: xb.lt(xb.cross_replica_sum(softplus(s)), 9.0), body=lambda s: xb.add(s, 1.0)
        )

    def command(*words: str) -> None:
        main(list(words), standalone_mode=False)

    return {
        "shape": lambda: function.root.shape,
        "value": lambda: evaluate(function, OPERAND),
        "value in a region": lambda: evaluate(mapped, OPERAND),
        "value by the rule alone": lambda: Evaluator().is_pure(function.root),
        "strict": lambda: evaluate(function, OPERAND, strict=True),
        "denormals by arrays": lambda: flushing(function.root, compute["softplus"]),
        "run on two devices": lambda: execute(xb.Module("m", function, num_replicas=2), [[OPERAND]] * 2),
        "least seconds": lambda: least_seconds(function),
        "trace": lambda: trace(module, [[OPERAND]], origins=True),
        "provenance": lambda: origins_of(function.root, values),
        "check": lambda: xb.check(xb.Module("m", xb.computation(xb.f32[()])(loop), num_replicas=2)),
        "text": lambda: xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo(),
        "picture": lambda: xb.viz(module, "txt"),
        "svg": lambda: xb.viz(module, "svg"),
        "fingerprint": lambda: xb.fingerprint(module),
        "edit": lambda: xb.eliminate_dead_code(module),
        "difference": lambda: xb.diff(module, module),
        "list of ops": lambda: command("ops"),
        "explanation": lambda: command("explain", "softplus"),
    }


def outcome(reading: Callable[[], Any]) -> str:
    try:
        reading()
    except Exception as error:
        return f"{'/'.join(each.__name__ for each in type(error).__mro__)}: {error}".splitlines()[0]
    return "ok"


def told() -> dict[str, str]:
    try:
        found = readings()
    except Exception as error:
        return {"import": f"{'/'.join(each.__name__ for each in type(error).__mro__)}: {error}".splitlines()[0]}
    return {name: outcome(reading) for name, reading in found.items()}


if __name__ == "__main__":
    for name, result in told().items():
        print(f"{name}\t{result}", file=sys.stderr)
