# %% [markdown]
# # 18. Swap without buffers
#
# Two replicas exchange their numbers with send and recv. The channels have no buffers: a send completes only after the
# other replica has posted its recv.

# %%
import xbuild as xb
from xbuild.learning import Puzzle


def spec(xs):
    return [xs[1], xs[0]]


puzzle = Puzzle(
    spec=spec,
    shapes=[xb.s32[2]],
    devices=2,
    allowed="send send_done recv recv_done after_all",
    best={"link_bytes": 8},
)


# %%
def solution(x):
    return ...  # about 7 lines


if __name__ == "__main__":
    puzzle(solution)
