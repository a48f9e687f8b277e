"""Programs whose verdicts the gallery shows; most of them hang."""

from __future__ import annotations

import xbuild as xb

WIRE = xb.f32[4]


def _exchange(device: int, devices: int, order: str) -> xb.Module:
    """Send a value to the next device of a ring and receive one from the previous device, in some order."""
    builder = xb.Builder(f"device{device}")
    mine = xb.parameter(builder, number=0, shape=WIRE, name="mine")
    token = xb.after_all(builder=builder)
    to, of = 1 + device, 1 + (device - 1) % devices
    posted, taken = None, None
    for step in order.split():
        if step == "send":
            sent = xb.send(mine, token, channel_id=to, name="send")
            xb.send_done(sent, channel_id=to, name="sent")
        elif step == "recv":
            posted = xb.recv(token, shape=WIRE, channel_id=of, name="recv")
        else:
            assert posted is not None
            taken, token = xb.recv_done(posted, channel_id=of, name="taken")
    assert taken is not None
    return xb.Module(f"device{device}", builder.build(mine + taken), is_scheduled=True)


def exchange(devices: int, order: str) -> xb.ModuleGroup:
    return xb.ModuleGroup({device: _exchange(device, devices, order) for device in range(devices)})


def both_send_first() -> xb.Verdict:
    """Two devices, each of which sends before it posts its recv."""
    return xb.check(exchange(2, "send recv done"))


def both_wait_first() -> xb.Verdict:
    """Two devices, each of which waits for a value before it sends its own."""
    return xb.check(exchange(2, "recv done send"))


def ring_of_many() -> xb.Verdict:
    """A ring of 1,024 devices, each of which waits for a value before it sends its own."""
    return xb.check(exchange(1024, "send recv done"))


def swapped_collectives() -> xb.Verdict:
    """Four replicas run two sums; the last runs them in the opposite order."""
    builder = xb.Builder("step")
    weights = xb.parameter(builder, number=0, shape=xb.f32[64, 10], name="weights")
    bias = xb.parameter(builder, number=1, shape=xb.f32[10], name="bias")
    sums = xb.cross_replica_sum(weights, name="of_weights"), xb.cross_replica_sum(bias, name="of_bias")
    module = xb.Module("step", builder.build(xb.tuple_(sums)), num_replicas=4)
    names = [instruction.name for instruction in module.entry.instructions]
    first, second = names.index("of_weights"), names.index("of_bias")
    swapped = [*names]
    swapped[first], swapped[second] = names[second], names[first]
    return xb.check(module, schedule={0: names, 1: names, 2: names, 3: swapped})


def crossed_tokens() -> xb.Verdict:
    """Tokens fix incompatible orders, so no schedule works."""
    modules = {}
    for device in range(2):
        builder = xb.Builder(f"device{device}")
        mine = xb.parameter(builder, number=0, shape=WIRE, name="mine")
        token = xb.after_all(builder=builder)
        posted = xb.recv(token, shape=WIRE, channel_id=2 - device, name="recv")
        taken, after = xb.recv_done(posted, channel_id=2 - device, name="taken")
        sent = xb.send(mine, after, channel_id=1 + device, name="send")
        xb.send_done(sent, channel_id=1 + device, name="sent")
        modules[device] = xb.Module(f"device{device}", builder.build(taken))
    return xb.check(xb.ModuleGroup(modules))


def unlike_shapes() -> xb.Verdict:
    """A send and a recv with different shapes: a structural error."""
    builder = xb.Builder("sender")
    token = xb.after_all(builder=builder)
    sent = xb.send(xb.parameter(builder, number=0, shape=xb.f32[8], name="x"), token, channel_id=1, name="send")
    sender = xb.Module("sender", builder.build(xb.send_done(sent, channel_id=1, name="sent")))
    builder = xb.Builder("receiver")
    posted = xb.recv(xb.after_all(builder=builder), shape=WIRE, channel_id=1, name="recv")
    taken, _ = xb.recv_done(posted, channel_id=1, name="taken")
    return xb.check(xb.ModuleGroup({0: sender, 1: xb.Module("receiver", builder.build(taken))}))


def loop_of_unknown_length() -> xb.Verdict:
    """Replicas that sum in a loop whose trip count depends on their own data."""
    builder = xb.Builder("loop")
    x = xb.parameter(builder, number=0, shape=WIRE, name="x")
    last = xb.while_(
        x,
        condition=lambda state: xb.reduce(state, 0.0, xb.add) < 100.0,
        body=lambda state: xb.cross_replica_sum(state, name="total"),
        name="until_large",
    )
    return xb.check(xb.Module("loop", builder.build(last), num_replicas=4))
