# %% [markdown]
# # 24. Find the miscompile
#
# A compiler rewrote a program, and a user reports wrong numbers. You have the HLO text before and after the rewrite,
# and one instruction in the new text is wrong. You have four tools: a run of both programs, `xb.diff`, `xb.extract`,
# and a second engine.

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
ask("The program computes (2x - 3) / 2 in s32. What does the program BEFORE return for x = [5, 4]?",
    ..., before, [5, 4], of=lambda out: out[0])  # fmt: skip
ask("For x = [5, 4], what does the rewritten program return?", ..., after, [5, 4], of=lambda out: out[0])

# %% [markdown] rule
# Both programs return 3 and 2, which are 7/2 and 5/2 rounded toward zero. That they agree on one input proves little.

# %%
ask("For x = [5, 0], what does BEFORE return?", ..., before, [5, 0], of=lambda out: out[0])
ask("For x = [5, 0], what does the rewritten program return?", ..., after, [5, 0], of=lambda out: out[0])

# %% [markdown] rule
# BEFORE returns 3 and -1, and the rewritten program returns 3 and -2. For x = 0, the program computes -3/2, which is
# -1, because division rounds toward zero (lesson 10).
#
# For *each* of the two programs, a second engine returns the same result as the first, so the rewrite is at fault, not
# the machine.
#
# ## Which change is wrong?

# %%
found = xb.diff(before, after)
ask("Three instructions differ: two, scaled and half. How many of them have a different opcode?", ...,
    lambda: str(found).count("opcode: "), claim=about_xbuild("xb.diff lists what changed"))  # fmt: skip
show(found)

# %% [markdown] rule
# Two instructions have a different opcode: `multiply` became `add`, and `divide` became `shift-right-arithmetic`.
#
# `xb.extract` makes a program from one instruction, whose operands become parameters. Run each changed instruction by
# itself, before and after the rewrite, on numbers from -9 to 9.


# %%
def alone(module, name, number):
    """The result of one instruction on this number and the value of the module's constant `two`."""
    part = xb.extract(module, name, 0)
    given = {"x": number, "shifted": number, "twos": 2 if module is before else 1}
    return xb.execute(part, [[np.full(2, given[each.name], np.int32) for each in part.entry.parameters]])[0]


def wrong_one():
    for name in ("scaled", "half"):
        if any(np.any(alone(before, name, n) != alone(after, name, n)) for n in range(-9, 10)):
            return name
    return "neither"


ask("Which rewrite is wrong: scaled (x * 2 became x + x), or half (x / 2 became x >> 1)?", ..., wrong_one,
    choices=["scaled", "half"], claim=about_xbuild("Found by running each change by itself"))  # fmt: skip
show(xb.extract(after, "half", 0))

# %% [markdown] rule
# The rewrite of `half` is wrong. A shift rounds toward minus infinity and a division toward zero, so the results
# differ for odd negative numbers.
#
# **Rule.** Compare outputs, diff the texts, extract the changed instructions, and run each by itself. `xbuild diff` and
# `xbuild extract` work on files; `xbuild run --engine both` also runs real XLA.
