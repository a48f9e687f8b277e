"""`python -m xbuild.guard SCRIPT ARGS` is `xbuild guard SCRIPT ARGS`."""

import sys

from ..cli import main

if __name__ == "__main__":
    main(["guard", *sys.argv[1:]], prog_name="xbuild")
