# %% [markdown]
# # 3. One-hot by iota and compare
#
# Row `i` of the result has a 1 at column `x[i]` and zeros elsewhere. If column `x[i]` does not exist, the row is all
# zeros.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return (x[:, None] == np.arange(4)[None, :]).astype(np.int32)


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[5]],
    allowed="iota compare broadcast convert",
    best={"flops": 40},
)


# %%
def solution(x):
    return ...  # about 4 lines


if __name__ == "__main__":
    puzzle(solution)
