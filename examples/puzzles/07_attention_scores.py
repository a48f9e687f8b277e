# %% [markdown]
# # 7. Attention scores with one op
#
# The dimensions of `q` are batch, time, head and size; those of `k` are batch, source, head and size. For each batch
# and head, compute a time-by-source matrix: `einsum("bthd,bshd->bhts")`. Do not use a transpose.

# %%
import numpy as np

import xbuild as xb
from xbuild.learning import Puzzle


def spec(q, k):
    return np.einsum("bthd,bshd->bhts", q, k)


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.f32[2, 3, 2, 4], xb.f32[2, 5, 2, 4]],
    allowed="dot",
    best={"flops": 480},
)


# %%
def solution(q, k):
    return ...  # 1 line


if __name__ == "__main__":
    puzzle(solution)
