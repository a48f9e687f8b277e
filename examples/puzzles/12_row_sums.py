# %% [markdown]
# # 12. Sums along one axis of a grid
#
# Six replicas form a grid of two rows: replicas 0, 1, 2 and replicas 3, 4, 5. Each replica needs the sum over its own
# row. Use one collective.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(xs):
    return [sum(xs[3 * (r // 3) : 3 * (r // 3) + 3]) for r in range(6)]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[3]],
    devices=6,
    allowed="all_reduce add",
    best={"link_bytes": 16, "steps": 4},
)


# %%
def solution(x):
    return ...  # 1 line


if __name__ == "__main__":
    puzzle(solution)
