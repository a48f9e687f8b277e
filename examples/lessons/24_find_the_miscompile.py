# %% [markdown]
# # 24. Find the miscompile
#
# A compiler rewrote a program, and someone reports wrong numbers. There are two texts, and one is wrong somewhere. You
# have four tools: run both, `xb.diff`, `xb.extract`, and a second engine.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import about_xbuild, ask, show

BEFORE = """HloModule before
ENTRY main {
  x = s32[2] parameter(0)
  two = s32[] constant(2)
  twos = s32[2] broadcast(two), dimensions={}
  three = s32[] constant(3)
  threes = s32[2] broadcast(three), dimensions={}
  scaled = s32[2] multiply(x, twos)
  shifted = s32[2] subtract(scaled, threes)
  ROOT half = s32[2] divide(shifted, twos) }"""
before = xb.parse_hlo(BEFORE)
after = xb.parse_hlo(
    BEFORE.replace("before", "after")
    .replace("multiply(x, twos)", "add(x, x)")
    .replace("two = s32[] constant(2)", "two = s32[] constant(1)")
    .replace("divide(shifted, twos)", "shift-right-arithmetic(shifted, twos)")
)
print(after)
ask("The program is (2x - 3) / 2 in s32. What does the text BEFORE give for x = [5, 4]?", ..., before, [5, 4],
    of=lambda out: out[0])  # fmt: skip
ask("What does the rewritten text give for x = [5, 4]?", ..., after, [5, 4], of=lambda out: out[0])

# %% [markdown] rule
# 3, 2 both times: 7/2 and 5/2, rounded toward zero. One input on which they agree proves little.

# %%
ask("And for x = [5, 0], BEFORE?", ..., before, [5, 0], of=lambda out: out[0])
ask("And rewritten?", ..., after, [5, 0], of=lambda out: out[0])

# %% [markdown] rule
# BEFORE gives 3, -1; rewritten 3, -2. 0 becomes -3, and -3/2 is -1, since division rounds toward zero (lesson 10).
#
# A second engine agrees on *each* of the texts. So the fault is in the rewriting, not in the machine.
#
# ## Which change is it?

# %%
found = xb.diff(before, after)
ask("Three instructions differ: two, scaled and half. In how many of them is the difference an opcode?", ...,
    lambda: str(found).count("opcode: "), claim=about_xbuild("xb.diff lists what changed"))  # fmt: skip
show(found)

# %% [markdown] rule
# Two: `multiply` became `add`, and `divide` became `shift-right-arithmetic`.
#
# `xb.extract` extracts an instruction, with its operands as parameters. Run each changed instruction by itself, before
# and after, on numbers from -9 to 9.


# %%
def alone(module, name, number):
    """The result of one instruction on this number and the constants 2 of the module."""
    part = xb.extract(module, name, 0)
    given = {"x": number, "shifted": number, "twos": 2 if module is before else 1}
    return xb.execute(part, [[np.full(2, given[each.name], np.int32) for each in part.entry.parameters]])[0]


def wrong_one():
    for name in ("scaled", "half"):
        if any(np.any(alone(before, name, n) != alone(after, name, n)) for n in range(-9, 10)):
            return name
    return "neither"


ask("Which rewriting is wrong: scaled (x * 2 became x + x), or half (x / 2 became x >> 1)?", ..., wrong_one,
    choices=["scaled", "half"], claim=about_xbuild("Found by running each change by itself"))  # fmt: skip
show(xb.extract(after, "half", 0))

# %% [markdown] rule
# `half`. A shift rounds toward minus infinity, a division toward zero: they differ for odd negative numbers.
#
# **Rule.** Compare outputs, diff the texts, extract what changed, and run it by itself. `xbuild diff` and `xbuild
# extract` work on files; `xbuild run --engine both` also runs real XLA.
