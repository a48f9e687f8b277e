# %% [markdown]
# # 17. From rows to columns with 12 bytes
#
# Each of four replicas holds one row of a 4 by 4 matrix, s32[1,4], and needs one column instead, s32[4,1]. Send at most
# 12 bytes over any link. An all-gather of the entire matrix would send more.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(xs):
    whole = np.concatenate(xs)
    return [whole[:, r : r + 1] for r in range(4)]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[1, 4]],
    devices=4,
    limits={"link_bytes": 12},
    best={"link_bytes": 12, "steps": 3},
)


# %%
def solution(x):
    return ...  # 1 line


if __name__ == "__main__":
    puzzle(solution)
