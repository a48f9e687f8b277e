# %% [markdown]
# # 6. Argmax by one reduce
#
# Return the index of the largest element as s32. If several elements share the largest value, return the index of the
# first one.
#
# With several operands, `reduce` takes a function of twice as many scalars: `lambda a, i, b, j: (..., ...)`. The op
# `reduce` may combine elements in any order, so the function must return the same result when the two elements that it
# combines are swapped, even if their values are equal.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return np.int32(np.argmax(x))


def draw(generator):
    """Draw few distinct numbers, so that many are equal: around 0, all negative, or starting at the smallest s32."""
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
