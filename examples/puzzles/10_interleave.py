# %% [markdown]
# # 10. Two vectors interleaved
#
# The result is `x[0], y[0], x[1], y[1], ...`. Use two pads and one add.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x, y):
    return np.stack([x, y], axis=1).ravel()


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[4], xb.s32[4]],
    allowed="pad add",
    best={"flops": 8},
)


# %%
def solution(x, y):
    return ...  # about 3 lines


if __name__ == "__main__":
    puzzle(solution)
