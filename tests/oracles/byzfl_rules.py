"""Aggregates and attacks of byzfl (MIT licence), unchanged, on drawn messages: writes byzfl_rules.json.

python3.11 -m venv ENV && ENV/bin/pip install byzfl==0.0.11 && ENV/bin/python tests/oracles/byzfl_rules.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from byzfl import ALittleIsEnough, GeometricMedian, Krum, Median, MultiKrum, SignFlipping, TrMean

CLIENTS, ENTRIES, FALSE = 11, 4, 3


def main() -> None:
    """Messages that add up to 0."""
    rng = np.random.default_rng(43)
    messages = rng.normal(size=(CLIENTS, ENTRIES)) * np.where(np.arange(CLIENTS) < FALSE, 10.0, 1.0)[:, None]
    messages -= messages.mean(axis=0)
    rules = {
        "median": Median(),
        "trimmed_mean": TrMean(f=FALSE),
        "krum": Krum(f=FALSE),
        "multi_krum": MultiKrum(f=FALSE),
        "geometric_median_100": GeometricMedian(nu=1e-6, T=100),
        "alie": ALittleIsEnough(tau=1.5),
        "sign_flip": SignFlipping(),
    }
    found = {name: np.asarray(rule(messages.copy())).tolist() for name, rule in rules.items()}
    told = {"byzfl": version("byzfl"), "false": FALSE, "messages": messages.tolist(), **found}
    Path(__file__).with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
