"""The pictures that move, on the site: a list, and the offline page of each."""

from __future__ import annotations

from xbuild.learning.moving import PICTURES, moving_page

from .markdown import escaped
from .staging import Stage


def make(stage: Stage) -> None:
    """Stage the list and the pages."""
    parts = [
        "# Pictures that move",
        "Change a setting, and see what follows. Each picture is one file that needs no network.",
    ]
    for name, picture in PICTURES.items():
        stage.text(f"_extra/moving/{name}.html", moving_page(name))
        parts.append(f'<a href="moving/{name}.html">{escaped(picture.title)}</a>. {escaped(picture.question)}')
    stage.page("moving", "\n\n".join(parts))
