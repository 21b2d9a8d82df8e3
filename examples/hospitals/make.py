"""Patients of three invented hospitals: hospitals.csv, a file for each in sites/, and new_patients.csv without days."""

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
SITES = {"north": (400, 71, 0.30), "harbour": (250, 58, 0.45), "hill": (150, 49, 0.15)}
"""Patients, mean age in years and share of smokers of each hospital."""


def patients(site: str, count: int, age: float, smokers: float, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of one hospital; `days` is how long a patient stays."""
    table = pd.DataFrame(
        {
            "hospital": site,
            "age": rng.normal(age, 12, count).clip(18, 99).round(),
            "pressure": rng.normal(128, 16, count).round(),
            "glucose": rng.gamma(9, 11, count).round(),
            "smoker": np.where(rng.random(count) < smokers, "yes", "no"),
        }
    )
    frail = 1 / (1 + np.exp(-(table["age"] - 68) / 6))
    sugar = np.square((table["glucose"] - 95) / 45)
    days = 2 + 9 * frail + 2.5 * sugar + 3 * (table["smoker"] == "yes") * frail + rng.gamma(2, 0.5, count)
    return table.assign(days=days.clip(1, 40).round(1))


def main() -> None:
    """Write all files."""
    rng = np.random.default_rng(0)
    table = pd.concat([patients(site, *what, rng) for site, what in SITES.items()])
    table.sample(frac=1, random_state=0).to_csv(HERE / "hospitals.csv", index=False)
    (HERE / "sites").mkdir(exist_ok=True)
    for site, rows in table.sample(frac=1, random_state=0).groupby("hospital"):
        rows.drop(columns="hospital").to_csv(HERE / "sites" / f"{site}.csv", index=False)
    new = pd.concat([patients(site, 2, *what[1:], rng) for site, what in SITES.items()])
    new.drop(columns="days").to_csv(HERE / "new_patients.csv", index=False)


if __name__ == "__main__":
    main()
