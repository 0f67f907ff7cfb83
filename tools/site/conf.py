r"""Sphinx's configuration; scripts/site runs it.

Sphinx with MyST reads the pages by the rules of CommonMark, as hosts of code do. MkDocs does not: it takes a list without a blank line above for text,
and shows the backslash of `\|` in a table. Opened as a file, Sphinx's search works by itself; that of MkDocs's theme Material loads a script from the
network.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # for pages.slug

project = "Tessera"
extensions = ["myst_parser"]
root_doc = "index"
language = "en"
smartquotes = False
highlight_language = "none"  # of indented blocks, which are mostly commands
# Anchors as on GitHub and its like, since the pages are read there, too.
myst_heading_anchors = 4
myst_heading_slug_func = "pages.slug"
html_theme = "furo"
html_title = "Tessera"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_show_copyright = False
pygments_style = "tango"
pygments_dark_style = "github-dark"
nitpicky = True
