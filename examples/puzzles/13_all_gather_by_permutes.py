# %% [markdown]
# # 13. All-gather by permutes, in 3 steps
#
# Each of four replicas holds s32[2] and needs all eight numbers, in the order of the replicas. In each step, pass on
# the part that arrived last.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(xs):
    return [np.concatenate(xs) for _ in xs]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[2]],
    devices=4,
    allowed="collective_permute concatenate broadcast dynamic_update_slice dynamic_slice replica_id convert "
    "add subtract multiply remainder",
    limits={"steps": 3},
    best={"link_bytes": 24, "steps": 3},
)


# %%
def solution(x):
    return ...  # about 8 lines


if __name__ == "__main__":
    puzzle(solution)
