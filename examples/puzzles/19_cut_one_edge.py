# %% [markdown]
# # 19. Fix this deadlock by removing one edge
#
# Device 0 exchanges one number with device 1 and another with device 2. On each device, tokens order the transfers in a
# chain, which `CHAINS` lists. The channels have no buffers: a send completes only after its recv is posted, and a recv
# is posted only after its predecessor in the chain has completed. In this order, the program deadlocks.
#
# Name one edge, as (device, earlier, later), whose removal lets the program finish. Two transfers without an edge
# between them may run at the same time.

# %%
import xbuild as xb
from xbuild.learning import Puzzle
from xbuild.learning.puzzle import Unsolved

CHAINS = {
    0: ["send to 1", "send to 2", "recv from 1", "recv from 2"],
    1: ["send to 0", "recv from 0"],
    2: ["send to 0", "recv from 0"],
}


def device(number, cut):
    """The program of a device without the removed edge: it returns the sum of the numbers that it receives."""
    builder = xb.Builder(f"device_{number}")
    x = xb.parameter(builder, number=0, shape=xb.s32[()])
    start = token = xb.after_all(builder=builder)
    total = x * 0
    for earlier, item in zip(["", *CHAINS[number]], CHAINS[number], strict=False):
        token = start if (earlier, item) == cut else token
        peer, is_send = int(item[-1]), item.startswith("send")
        channel = 1 + 3 * number + peer if is_send else 1 + 3 * peer + number
        if is_send:
            token = xb.send_done(xb.send(x, token, channel_id=channel), channel_id=channel)
        else:
            taken, token = xb.recv_done(xb.recv(token, xb.s32[()], channel_id=channel), channel_id=channel)
            total = total + taken
    return xb.Module(f"device_{number}", builder.build(total))


def program(edge):
    if not isinstance(edge, list) or len(edge) != 3:
        raise Unsolved(f"{edge!r} is not an edge: return (device, earlier, later), with two neighbours of its chain")
    at, earlier, later = edge
    if at not in [*CHAINS]:
        raise Unsolved(f"device {at!r} does not exist: expected 0, 1 or 2")
    if (earlier, later) not in [*zip(CHAINS[at], CHAINS[at][1:], strict=False)]:
        raise Unsolved(f"{earlier!r} to {later!r} is not an edge of device {at}: its chain is {', '.join(CHAINS[at])}")
    return xb.ModuleGroup({each: device(each, (earlier, later) if each == at else None) for each in CHAINS})


def spec(xs):
    return [xs[1] + xs[2], xs[0], xs[0]]


puzzle = Puzzle(spec=spec, shapes=[xb.s32[()]], program=program, best={"link_bytes": 8})


# %%
def solution():
    return 0, "...", "..."  # the device and two neighbours of its chain


if __name__ == "__main__":
    puzzle(solution)
