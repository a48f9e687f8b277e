# %% [markdown]
# # 9. A histogram by scatter
#
# Count how often 0, 1, 2 and 3 occur in `x`. Ignore all other numbers: remember what scatter does with indices out of
# bounds.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return np.int32([np.sum(x == value) for value in range(4)])


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[10]],
    allowed="scatter add broadcast",
    best={"flops": 10},
)


# %%
def solution(x):
    return ...  # about 5 lines


if __name__ == "__main__":
    puzzle(solution)
