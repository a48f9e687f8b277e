"""StableHLO text as jaxlib takes it: parsed, verified, and converted to HLO text, in a child process."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from types import TracebackType

_CHILD = """
import json, sys
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from jaxlib import _jax

def converted(text):
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        module.operation.verify()
        program = mlir.module_to_bytecode(module)
        convert = _jax.mlir.mlir_module_to_xla_computation
        return convert(program, use_tuple_args=False, return_tuple=False).as_hlo_text(True)

for line in sys.stdin:
    try:
        answer = {"hlo": converted(json.loads(line))}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""


SECONDS = 20
"""For one text; jaxlib folds constants without end where they are large."""


class Refused(Exception):
    """What jaxlib said of a text that it does not take."""


class Converter:
    """A child process with jaxlib; it is begun anew where a text ends it."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        if self.child is not None:
            self.child.communicate()
            self.child = None

    def hlo(self, text: str) -> str:
        """The HLO text that jaxlib makes of StableHLO text; raises Refused."""
        if self.child is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.child = subprocess.Popen([sys.executable, "-c", _CHILD], text=True, **pipes)  # type: ignore[call-overload]
        child = self.child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{json.dumps(text)}\n")
        child.stdin.flush()
        if not select.select([child.stdout], [], [], SECONDS)[0]:
            child.kill()
            self.end()
            raise Refused(f"no answer within {SECONDS} s")
        line = child.stdout.readline()
        if not line:
            self.end()
            raise Refused("the process ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return str(answer["hlo"])
