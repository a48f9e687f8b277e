# %% [markdown]
# # 4. The lower triangle
#
# Set the elements above the diagonal to 0.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return np.tril(x)


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[4, 4]],
    allowed="iota compare select broadcast",
    best={"flops": 32},
)


# %%
def solution(x):
    return ...  # about 4 lines


if __name__ == "__main__":
    puzzle(solution)
