"""How Sphinx builds the staged pages: MyST for Markdown, furo for light and dark; no page needs a network."""

import importlib.metadata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

project = "xbuild"
author = "the xbuild authors"
copyright = "the xbuild authors, Apache-2.0"
release = importlib.metadata.version("xbuild-hlo")

extensions = ["myst_parser", "sphinx_copybutton"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
source_suffix = {".md": "markdown"}
root_doc = "index"
smartquotes = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# Documents begin parts at level 2, and tables of commands are wide.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"xbuild {release}"
html_static_path = ["static"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_css_files = ["xbuild.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app: Sphinx) -> None:
    """Offline pages are copied as they are."""
    app.connect("config-inited", _copied)


def _copied(app: Sphinx, config: Config) -> None:
    config.html_extra_path = [str(Path(app.srcdir) / "_extra")]
