"""Runs as a process of its own: graphviz text in, the drawing out, by the engine that pygraphviz's wheels bring."""

from __future__ import annotations

import sys


def main() -> None:
    import pygraphviz

    engine, form = sys.argv[1:]
    graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())
    sys.stdout.buffer.write(graph.draw(format=form, prog=engine))


if __name__ == "__main__":
    main()
