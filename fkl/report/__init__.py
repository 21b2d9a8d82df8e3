"""Tables and figures for people.

`figures` draws a run, `compare` puts finished runs side by side, `page` writes report.html, and `site` all published
cells. `colours` gives each method one look everywhere. Begin with `figures.draw_run`.
"""

import logging

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it works without a folder for its cache, and would say so
