"""Water levels of two rivers that do not exist: writes the files that a publisher would have put on the web."""

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
RIVERS = {"upper": (0.6, 1.2), "lower": (0.3, 2.0)}
"""Answer to rain, and level without any, in metres."""
DAYS = 150
NOT_MEASURED = "none"


def days(answer: float, base: float, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of one river, a day each; now and then the rain was not measured."""
    rain = rng.gamma(0.6, 6, DAYS).round(1)
    warmth = 12 + 8 * np.sin(np.arange(DAYS) / 25) + rng.normal(0, 2, DAYS)
    ground = np.where(warmth < 8, "frozen", "wet")
    level = base + answer * np.sqrt(rain) + 0.02 * warmth + rng.normal(0, 0.05, DAYS)
    words = [NOT_MEASURED if rng.random() < 0.05 else f"{value}" for value in rain]
    return pd.DataFrame(
        {"day": range(1, DAYS + 1), "rain": words, "warmth": warmth.round(1), "ground": ground, "level": level.round(3)}
    )


def main() -> None:
    """Write a file for each river."""
    rng = np.random.default_rng(0)
    for name, (answer, base) in RIVERS.items():
        days(answer, base, rng).to_csv(HERE / "data" / "rivers" / f"{name}.csv", index=False, sep=";")


if __name__ == "__main__":
    main()
