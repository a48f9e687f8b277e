"""A solution of puzzle 20."""


def solution(number):
    # Stage 1 posts the next activation before it sends a gradient, so that stage 0 is free to receive it.
    return ["F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"]
