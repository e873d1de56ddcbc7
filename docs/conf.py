"""How Sphinx builds these pages. No network is needed, neither to build nor to read them."""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import declip

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "declip"
author = "the declip developers"
copyright = author
version = release = declip.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "_pages",
]
exclude_patterns = ["_build", "gallery", "generated/**/*.ipynb", "sg_execution_times.rst"]
templates_path = ["_templates"]

highlight_language = "text"  # commands and files; Python is named
highlight_options = {name: {"stripnl": True} for name in ("python", "cpp", "toml")}

html_theme = "pydata_sphinx_theme"
html_title = "declip"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["declip.css"]
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "start/**": ["sidebar-nav-bs"]}

# MathJax from a package, as one file without fonts: formulas show without a network, too.
_mathjax = find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
html_static_path.append(str(Path(_mathjax, "static", "mathjax", "tex-svg.js")))
mathjax_path = "tex-svg.js"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "py:obj"  # a link where there is something to link to

warnings.filterwarnings("ignore", message=".*non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "image_srcset": ["2x"],
    "reset_modules": ("_pages.gallery.in_house_style",),
    "abort_on_example_error": False,
    "plot_gallery": "True",
    "write_computation_times": False,  # a page with scripts from elsewhere
}
