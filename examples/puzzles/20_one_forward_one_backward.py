# %% [markdown]
# # 20. One forward, one backward, without buffers
#
# A pipeline of two stages trains on four micro-batches. In `F2`, stage 0 sends the activation of micro-batch 2 and
# stage 1 receives it. In `B2`, stage 1 sends the gradient of micro-batch 2 and stage 0 receives it. Each stage runs its
# items in the order that you return. The channels have no buffers, so a send waits until its recv is posted.
#
# - Each stage runs each of F0 to F3 and B0 to B3 once.
# - No stage may ever hold more than 2 micro-batches whose F is done and whose B is not. This limit is the purpose of
#   1F1B.
# - Stage 0 must hold 2 micro-batches at some point; otherwise nothing overlaps.
#
# The textbook orders deadlock here. Return two orders that do not deadlock.

# %%
import xbuild as xb
from xbuild.learning import Puzzle
from xbuild.learning.puzzle import Unsolved

BATCHES = 4
ITEMS = sorted(f"{kind}{number}" for kind in "FB" for number in range(BATCHES))


def most_held(order):
    """The largest number of micro-batches held at once."""
    held = [sum(1 if each[0] == "F" else -1 for each in order[: count + 1]) for count in range(len(order))]
    return max(held)


def stage(number, order):
    """The program of a stage: stage 0 returns the gradients, stage 1 the activations."""
    builder = xb.Builder(f"stage_{number}")
    x = xb.parameter(builder, number=0, shape=xb.s32[()])
    token, kept = xb.after_all(builder=builder), {}
    for item in order:
        batch, channel = int(item[1]), int(item[1]) + (1 if item[0] == "F" else 11)
        if (item[0] == "F") == (number == 0):
            value = x + batch if number == 0 else kept[batch] * 3
            token = xb.send_done(xb.send(value, token, channel_id=channel), channel_id=channel)
        else:
            kept[batch], token = xb.recv_done(xb.recv(token, xb.s32[()], channel_id=channel), channel_id=channel)
    return xb.Module(f"stage_{number}", builder.build(xb.tuple_([kept[batch] for batch in range(BATCHES)])))


def program(*orders):
    for number, order in enumerate(orders):
        if not isinstance(order, list) or sorted(map(str, order)) != ITEMS:
            raise Unsolved(f"stage {number}: expected each of {ITEMS} once, got {order}")
        if any(order.index(f"F{batch}") > order.index(f"B{batch}") for batch in range(BATCHES)):
            raise Unsolved(f"stage {number} runs a B before its F")
        if most_held(order) > 2:
            raise Unsolved(f"stage {number} holds {most_held(order)} micro-batches at once; at most 2 are allowed")
    if most_held(orders[0]) < 2:
        raise Unsolved("stage 0 never holds 2 micro-batches, so nothing overlaps")
    return xb.ModuleGroup({number: stage(number, order) for number, order in enumerate(orders)})


def spec(xs):
    sent = [xs[0] + batch for batch in range(BATCHES)]
    return [[3 * each for each in sent], sent]


puzzle = Puzzle(spec=spec, shapes=[xb.s32[()]], program=program, calls=[[0], [1]], best={"link_bytes": 16})


# %%
def solution(number):
    return ["F0", "...", "B0"]  # all 8 items, in the order of stage `number`


if __name__ == "__main__":
    puzzle(solution)
