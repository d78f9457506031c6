"""The documentation site: `make docs` builds it from the documents, in place, into build/docs.

The source folder is the repository's root, so that a link between two documents is the same on a page of the repository
and on the site.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
# The notebooks run in processes of their own, in this tree and on what is recorded.
os.environ["PYTHONPATH"] = str(ROOT)
os.environ["VECADD_RECORDED"] = "1"

project = "vecadd"
copyright = "vecadd developers"
extensions = ["sphinx.ext.autodoc", "docstrings", "myst_nb", "pages", "sources"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/api/*.md", "benchmarks/README.md", "notebooks/*.ipynb"]
exclude_patterns = ["docs/pictures", "docs/site", ".*", "build", "csrc", "cuda", "tests", "vecadd*"]

myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 4
smartquotes = False
highlight_language = "none"  # of fences without a language, which have commands
nb_execution_mode = "force"  # the notebooks have no output
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
add_module_names = False
python_use_unqualified_type_names = True
python_display_short_literal_types = True
maximum_signature_line_length = 90
default_role = "py:obj"

nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # annotations name types that have no page here

html_theme = "furo"
html_title = "vecadd"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
html_show_sphinx = False
pygments_style = "tango"
pygments_dark_style = "monokai"
linkcheck_anchors = False
linkcheck_ignore = [r"(\.\./)*source/"]  # pages of source files, which check.py looks for
