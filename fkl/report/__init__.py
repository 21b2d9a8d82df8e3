"""Tables and figures for readers.

`figures` draws a run, `compare` compares finished runs, `page` writes report.html, and `site` a page with all published
cells. `colours` gives each method the same look in all figures. Begin with `figures.draw_run`.
"""

import logging

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # otherwise it warns if it has no folder for its cache
