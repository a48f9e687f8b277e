"""A solution of puzzle 11."""

import xbuild as xb


def solution(a, b):
    return xb.while_((a, b), lambda s: xb.ne(s[1], 0), lambda s: (s[1], xb.remainder(s[0], s[1])))[0]
