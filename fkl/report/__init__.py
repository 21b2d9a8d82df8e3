"""Tables and figures for people."""

import logging

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it works without a folder for its cache, and would say so
