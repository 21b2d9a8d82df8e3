"""The documentation as a site: `make docs` writes its pages to build/docs, and builds them into build/site.

Sphinx reads Markdown with MyST and notebooks with MyST-NB, and makes API pages from docstrings. The theme is that of
numpy, scipy and pandas.
"""

import fkl

project, author, copyright = "fkl", "the authors of fkl", "the authors of fkl"
release = version = fkl.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx_design"]
exclude_patterns = ["figures"]
root_doc = "index"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks keep their outputs
suppress_warnings = ["myst.header"]

autodoc_typehints = "none"  # docstrings have types and shapes
autodoc_member_order = "bysource"
autosummary_generate = True
napoleon_google_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = "fkl"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_nav_level": 1,
    "navigation_depth": 3,
    "collapse_navigation": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
