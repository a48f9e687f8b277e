"""A ring whose schedule has the sends first, so every device waits for its neighbour to post a recv."""

from __future__ import annotations

import xbuild as xb


def program(replicas: int = 4) -> xb.Module:
    pairs = [(replica, (replica + 1) % replicas) for replica in range(replicas)]

    @xb.computation(xb.f32[4])
    def ring(x: xb.Value) -> xb.Value:
        token = xb.after_all(builder=x.builder)
        sent = xb.send(x, token, channel_id=1, source_target_pairs=pairs)
        posted = xb.recv(token, shape=xb.f32[4], channel_id=1, source_target_pairs=pairs)
        taken, _ = xb.recv_done(posted, channel_id=1)
        xb.send_done(sent, channel_id=1)
        return x + taken

    return xb.Module("ring", ring, num_replicas=replicas, is_scheduled=True)


if __name__ == "__main__":
    print(xb.check(program()))
