"""`python -m xbuild`: the command line, where its script is not on the PATH."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="python -m xbuild")
