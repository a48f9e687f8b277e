"""`python -m docs.site FOLDER` stages the pages of the site in an empty folder, from which Sphinx builds them."""

import argparse
from pathlib import Path

from . import MAKERS
from .staging import Stage


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pages are staged; files that are there are replaced")
    stage = Stage(parser.parse_args().folder)
    for maker in MAKERS:
        maker.make(stage)
    stage.finish()
    print(f"{stage.count} pages in {stage.folder}")


main()
