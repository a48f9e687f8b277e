# %% [markdown]
# # 15. From one to eight in three steps
#
# Each of eight replicas needs the number that replica 0 holds. In one step, a permute sends from each replica to at
# most one other replica.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(xs):
    return [xs[0] for _ in xs]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[()]],
    devices=8,
    allowed="collective_permute add select compare replica_id convert",
    limits={"steps": 3},
    best={"link_bytes": 12, "steps": 3},
)


# %%
def solution(x):
    return ...  # about 5 lines


if __name__ == "__main__":
    puzzle(solution)
