# %% [markdown]
# # 2. A transpose by gather alone
#
# Element `[j, i]` is `x[i, j]`. The indices may be a constant: an array of NumPy, made at build time.

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
