"""Program of the drawing process: reads dot text from stdin and writes what graphviz inside pygraphviz draws."""

from __future__ import annotations

import sys


def main() -> None:
    import pygraphviz

    engine, form = sys.argv[1:]
    graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())
    sys.stdout.buffer.write(graph.draw(format=form, prog=engine))


if __name__ == "__main__":
    main()
