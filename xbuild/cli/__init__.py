"""The command line: a module for each group of commands, imported when one of them is asked for."""

import atexit
import gc
from os import environ

from .group import main as main

_COMMANDS = {
    "check": ("check", "Say whether a program can deadlock, and what mends it, without running it."),
    "completion": ("completion", "Print the script that completes xbuild's commands in a shell."),
    "cost": (
        "cost",
        "Say what a program costs each device: FLOPs, bytes, memory, collectives; on a machine when each does what.",
    ),
    "demo": ("examples", "Train on handwritten digits with four replicas, checked before it runs, and draw the step."),
    "diff": ("edit", "Compare two programs: instructions that were changed, added or removed."),
    "equivalent": ("equivalent", "Say whether two programs compute the same function, whatever the rounding."),
    "examples": ("examples", "List the examples with a sentence each, or copy them."),
    "explain": ("reference", "Say what a word means, or what an instruction of a program is."),
    "extract": ("edit", "Make a program of a computation, or of the neighbourhood of an instruction."),
    "learn": ("learn", "List the lessons, or take one."),
    "ops": ("reference", "List the ops by family, each with a sentence."),
    "play": ("play", "You are the scheduler: move the devices of a small program, and try to make it hang."),
    "puzzle": ("learn", "List the puzzles, or judge a solution."),
    "run": ("run", "Check a program, run it on all its devices, and print a summary of the results."),
    "shard": (
        "shard",
        "Propagate the shardings that a program states, and say how every value is cut and what is communicated.",
    ),
    "show": (
        "show",
        "Print a program: as HLO or StableHLO text, as the Python that runs, or with devices of equal values.",
    ),
    "step": ("step", "Step through a run, forward and back, in the terminal."),
    "trace": ("trace", "Answer questions to a run that `xbuild run --trace DIR` has kept."),
    "viz": ("viz", "Draw a program, or a part of it, as a picture, a page or text."),
    "why": ("why", "Say of which instruction another is the derivative, with its line and what uses it."),
}
"""The module of each command, and the sentence that `xbuild --help` says of it, which is the first of its own help."""

main.enter_late({name: (f"{__name__}.{module}", told) for name, (module, told) in _COMMANDS.items()})

atexit.register(gc.freeze)  # a last search for cycles in what ends with the process takes long and gives nothing

if "_XBUILD_COMPLETE" in environ:  # a shell asks for completions, in bash by the class of this module
    from . import completion as completion
