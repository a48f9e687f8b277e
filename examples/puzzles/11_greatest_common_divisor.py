# %% [markdown]
# # 11. The greatest common divisor
#
# Compute the greatest common divisor of two nonnegative numbers with a loop: (a, b) becomes (b, a rem b) until b is 0.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(a, b):
    return np.gcd(a, b)


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[()], xb.s32[()]],
    allowed="while remainder compare",
    draw=lambda generator: [[*generator.integers(0, 40, 2).astype(np.int32)]],
)


# %%
def solution(a, b):
    return ...  # about 3 lines


if __name__ == "__main__":
    puzzle(solution)
