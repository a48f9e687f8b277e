# %% [markdown]
# # 6. Argmax by one reduce
#
# The place of the largest element, as s32; of several the first. `reduce` takes several operands, and then a function
# of twice as many scalars: `lambda a, i, b, j: (..., ...)`.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return np.int32(np.argmax(x))


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[8]],
    allowed="iota reduce compare select and or minimum maximum",
    best={"flops": 49},
)


# %%
def solution(x):
    return ...  # about 7 lines


if __name__ == "__main__":
    puzzle(solution)
