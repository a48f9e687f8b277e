# %% [markdown]
# # 7. Attention scores with one op
#
# `q` is batch, time, head, size; `k` is batch, source, head, size. Compute, for each batch and head, time by source:
# `einsum("bthd,bshd->bhts")`. No transpose.

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
