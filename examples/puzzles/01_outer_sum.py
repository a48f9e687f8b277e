# %% [markdown]
# # 1. Outer sum
#
# Element `[i, j]` of the result is `x[i] + y[j]`. Use broadcasts and one add.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(x, y):
    return x[:, None] + y[None, :]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[3], xb.s32[4]],
    allowed="broadcast add",
    best={"flops": 12},
)


# %%
def solution(x, y):
    return ...  # about 3 lines


if __name__ == "__main__":
    puzzle(solution)
