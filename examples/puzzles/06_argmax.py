# %% [markdown]
# # 6. Argmax by one reduce
#
# The place of the largest element, as s32; of several the first. `reduce` takes several operands, and then a function
# of twice as many scalars: `lambda a, i, b, j: (..., ...)`. It reduces in any order, so the function has to give the
# same when its two elements are exchanged, equal numbers included.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return np.int32(np.argmax(x))


def draw(generator):
    """Few different numbers, so that many are equal: around 0, all negative, or from the smallest of s32 on."""
    start = generator.choice([-2, -9, -(2**31)])
    return [[(start + generator.integers(0, 5, 8)).astype(np.int32)]]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[8]],
    allowed="iota reduce compare select and or minimum maximum",
    draw=draw,
    any_order=True,
    best={"flops": 49},
)


# %%
def solution(x):
    return ...  # about 7 lines


if __name__ == "__main__":
    puzzle(solution)
