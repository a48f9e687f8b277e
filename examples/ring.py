"""All-reduce as a ring of send and recv: each replica adds chunks and passes them on, then passes the sums around."""

from __future__ import annotations

import numpy as np

import xbuild as xb


def ring_all_reduce(replicas: int, chunk: int = 4) -> xb.Module:
    """The sum over all replicas of f32[replicas * chunk], in 2 * (replicas - 1) steps of one chunk each."""
    pairs = [(replica, (replica + 1) % replicas) for replica in range(replicas)]

    @xb.computation(xb.f32[replicas * chunk])
    def ring(x: xb.Value) -> xb.Value:
        builder = x.builder
        me = xb.convert(xb.replica_id(builder), xb.s32)
        token = xb.after_all(builder=builder)

        def place(step: int) -> xb.Value:
            """The start of the chunk of a step: chunk (me - step) mod replicas."""
            return xb.remainder(me + (2 * replicas - step), replicas) * chunk

        for step in range(2 * (replicas - 1)):
            with xb.scope("reduce_scatter" if step < replicas - 1 else "all_gather"):
                posted = xb.recv(token, shape=xb.f32[chunk], channel_id=1 + step, source_target_pairs=pairs)
                mine = xb.dynamic_slice(x, [place(step)], [chunk])
                sent = xb.send(mine, token, channel_id=1 + step, source_target_pairs=pairs)
                taken, token = xb.recv_done(posted, channel_id=1 + step)
                token = xb.after_all(token, xb.send_done(sent, channel_id=1 + step))
                if step < replicas - 1:
                    taken = taken + xb.dynamic_slice(x, [place(step + 1)], [chunk])
                x = xb.dynamic_update_slice(x, taken, [place(step + 1)])
        return x

    return xb.Module("ring_all_reduce", ring, num_replicas=replicas)


def program() -> xb.Module:
    return ring_all_reduce(4)


if __name__ == "__main__":
    module = program()
    print(xb.check(module))
    inputs = np.arange(4 * 16, dtype=np.float32).reshape(4, 16)
    results = xb.execute(module, [[row] for row in inputs])
    print(results[0], "on every replica:", all(np.array_equal(result, inputs.sum(axis=0)) for result in results))
