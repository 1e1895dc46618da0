"""The site: ``python -m sphinx -nW --keep-going docs docs/_build/html``. No network is needed."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import gtvcvx  # noqa: E402

project = "gtvcvx"
author = "The gtvcvx developers"
copyright = f"2026, {author}"
version = release = gtvcvx.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "docstrings",
    "gallery",
    "mathml",
    "repository",
    "reference",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates"]
default_role = "name"

# Docstrings give types with shapes; annotations would say the same with less.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
# An object is described under the one name that users import it by.
autosummary_ignore_module_all = False
autosummary_imported_members = True
numpydoc_show_class_members = False
numpydoc_validation_checks = set()

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_in_temp = True  # notebooks write files
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_show_sourcelink = False
html_copy_source = False
html_css_files = ["custom.css"]
html_title = "gtvcvx"
html_theme_options = {
    "logo": {"text": f"gtvcvx {release}"},
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages with nothing below them.
html_sidebars = {"index": [], "tutorial": []}
