"""A solution of puzzle 13."""

import numpy as np

import xbuild as xb


def solution(x):
    ring = [(replica, (replica + 1) % 4) for replica in range(4)]
    me = xb.convert(xb.replica_id(x.builder), xb.s32)
    result = xb.broadcast(xb.constant(x.builder, np.int32(0)), [8])
    for step in range(4):
        result = xb.dynamic_update_slice(result, x, [xb.remainder(me + (4 - step), 4) * 2])
        x = xb.collective_permute(x, ring) if step < 3 else x
    return result
