"""The picture of a program before it is laid out: boxes, frames, lines, words and data over them."""
