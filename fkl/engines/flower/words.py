"""Words in every message between the server and a site, and their meanings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fkl.data.scale import Scale
from fkl.engines.flower.configuration import Known

ABOUT, MEMORY = "about", "memory"
"""Names of records: of a message's words, and of a site's memory."""


def words_of(known: Known) -> dict[str, Any]:
    """The common knowledge, as in a record of Flower."""
    scale = known.scale
    return {
        "run": known.run,
        "sites": known.sites,
        "clients-per-site": known.clients_per_site,
        "rounds": known.rounds,
        "columns": list(known.columns),
        "x_low": np.ravel(scale.x_low).tolist(),
        "x_unit": np.ravel(scale.x_unit).tolist(),
        "y_low": float(scale.y_low),
        "y_unit": float(scale.y_unit),
    }


def known_of(about: Mapping[str, Any]) -> Known:
    """Inverse of `words_of`."""
    low, unit = np.array(about["x_low"]), np.array(about["x_unit"])
    scale = Scale(low, unit, float(about["y_low"]), float(about["y_unit"]))
    sites, per_site, rounds = (int(about[name]) for name in ("sites", "clients-per-site", "rounds"))
    return Known(str(about["run"]), sites, per_site, rounds, tuple(map(str, about["columns"])), scale)
