# %% [markdown]
# # 2. A transpose using only gather
#
# Element `[j, i]` of the result is `x[i, j]`. The indices may be a constant: a NumPy array that you compute while you
# build the program.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return x.T


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[3, 4]],
    allowed="gather",
    best={"flops": 0},
)


# %%
def solution(x):
    return ...  # about 4 lines


if __name__ == "__main__":
    puzzle(solution)
