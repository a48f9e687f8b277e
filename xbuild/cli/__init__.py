"""The command line: one module for each group of commands, imported when one of them first runs."""

import atexit
import gc
from os import environ

from .group import main as main

_COMMANDS = {
    "check": ("check", "Report whether a program can deadlock, and how to fix it, without running it."),
    "completion": ("completion", "Print a shell script that completes xbuild's commands."),
    "cost": (
        "cost",
        "Count the FLOPs, bytes, memory and communication of each device, and model the time on a machine.",
    ),
    "demo": ("examples", "Train on handwritten digits with four replicas: check the program, run it and draw a step."),
    "diff": ("edit", "List the instructions that were changed, moved, added or removed between two programs."),
    "equivalent": ("equivalent", "Report whether two programs compute the same function, up to rounding."),
    "examples": ("examples", "List the examples, each with a description, or copy them."),
    "explain": ("reference", "Explain a word, or an instruction in a program."),
    "extract": ("edit", "Extract a computation, or the neighbourhood of an instruction, as a program."),
    "grade": ("grade", "Grade a class's solutions of the puzzles, and print a CSV row for each student and puzzle."),
    "guard": ("guard.command", "Run a script, and check each program that JAX compiles before the program runs."),
    "hang": ("hang", "Find the ranks that caused a hang, from the dumps of the stuck job."),
    "learn": ("learn", "List the lessons, or take one."),
    "lint": ("lint", "Report valid code that is costly or surprising, with a fix."),
    "lsp": ("lsp", "Run a language server for .hlo and .mlir files that communicates over stdin and stdout."),
    "ops": ("reference", "List the ops by family, each with a description."),
    "play": ("play", "Play the scheduler: move the devices of a small program, and try to make it hang."),
    "prove": (
        "prove",
        "Prove that a compiler preserved what a program computes, or show an input on which the results differ.",
    ),
    "puzzle": ("learn", "List the puzzles, or grade a solution."),
    "reduce": (
        "reduce",
        "Find the smallest program for which a condition still holds, such as a deadlock or a crash of XLA.",
    ),
    "run": ("run", "Check a program, run it on all its devices, and print a summary of the results."),
    "shard": (
        "shard",
        "Propagate a program's shardings, and show how each value is sharded and which collectives are inserted.",
    ),
    "show": (
        "show",
        "Print a program as HLO text, StableHLO text or Python, or show which devices hold equal values.",
    ),
    "step": ("step", "Step through a run, forward and back, in the terminal."),
    "trace": ("trace", "Query a run that `xbuild run --trace DIR` recorded."),
    "viz": ("viz", "Draw a program, or a part of it, as a picture, a page or text."),
    "why": (
        "reference",
        "Show why an instruction is in a derivative: what it differentiates, its source line and its users.",
    ),
}
"""The module of each command, and its sentence in `xbuild --help`, which is also the first sentence of its own help."""

main.add_late_commands({
    name: (f"xbuild.{module}" if "." in module else f"{__name__}.{module}", sentence)
    for name, (module, sentence) in _COMMANDS.items()
})  # fmt: skip

atexit.register(gc.freeze)  # a last search for cycles, when the process ends, takes long and frees nothing of use

if "_XBUILD_COMPLETE" in environ:  # a shell requests completions; for bash it needs the class in this module
    from . import completion as completion
