"""A solution of puzzle 18."""

import xbuild as xb


def solution(x):
    both_ways = [(0, 1), (1, 0)]
    token = xb.after_all(builder=x.builder)
    posted = xb.recv(token, x.shape, channel_id=1, source_target_pairs=both_ways)
    sent = xb.send(x, token, channel_id=1, source_target_pairs=both_ways)
    xb.send_done(sent, channel_id=1)
    return xb.recv_done(posted, channel_id=1)[0]
