# %% [markdown]
# # 8. A moving sum by convolution
#
# Element `i` of the result is `x[i] + x[i+1] + x[i+2]`, so 8 numbers become 6.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(x):
    return x[:-2] + x[1:-1] + x[2:]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.f32[8]],
    allowed="reshape convolution",
    best={"flops": 36},
)


# %%
def solution(x):
    return ...  # about 3 lines


if __name__ == "__main__":
    puzzle(solution)
