# %% [markdown]
# # 14. All-reduce from two collectives
#
# Each of four replicas holds s32[8] and needs the sum of all four arrays. Do not use all_reduce, and send at most 48
# bytes over any link. The argument `shard_count` is the number of parts.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(xs):
    return [sum(xs) for _ in xs]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[8]],
    devices=4,
    allowed="reduce_scatter all_gather add reduce reshape all_to_all",
    limits={"link_bytes": 48},
    best={"link_bytes": 48, "steps": 6},
)


# %%
def solution(x):
    return ...  # about 2 lines


if __name__ == "__main__":
    puzzle(solution)
