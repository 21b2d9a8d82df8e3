"""Whether the numbers of a site lie apart from those of all others, as numbers in another unit do."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fkl.data.columns import cut_cell

FEWEST_ROWS = 5
"""A site with fewer rows of a column is not compared with the others."""
FAR = 2.0
"""So many times the width of the others' middle half is far from their median."""
ROWS_COMPARED = 1000
"""Number of first rows of each site that are compared."""


def sites_apart(
    columns: Mapping[str, NDArray[np.float64]], site: NDArray[np.int64], site_names: Sequence[str]
) -> list[str]:
    """A line for each column in which a site's numbers do not touch the others', as those in another unit.

    They do not if the ranges have no number in common, or if the site's median is further from that of all others than
    twice the width of the others' middle half. The first 1000 rows of each site are compared. A column that is constant
    at each site describes the site, and is left out.
    """
    # The first rows of each site are enough to see another unit
    first = np.concatenate([np.flatnonzero(site == number)[:ROWS_COMPARED] for number in range(len(site_names))])
    rows, lines = np.sort(first), []
    for name, numbers in columns.items():
        known_rows = rows[np.isfinite(numbers[rows])]
        values, of = numbers[known_rows], site[known_rows]
        # A column that is constant at each site is a fact about the site
        if all(np.ptp(values[of == number]) == 0 for number in np.unique(of)):
            continue  # such as the altitude of each site
        # A site lies apart if its numbers do not overlap the others', or its median is far from their quartiles
        sites_found = []
        for number in range(len(site_names)):
            own_values, other_values = values[of == number], values[of != number]
            if min(len(own_values), len(other_values)) < FEWEST_ROWS:
                continue
            low, quarter, middle, three_quarters, high = np.quantile(other_values, [0, 0.25, 0.5, 0.75, 1])
            median = float(np.median(own_values))
            far = abs(median - middle) > FAR * (three_quarters - quarter) > 0
            if far or own_values.min() > high or own_values.max() < low:
                sites_found.append((site_names[number], median, f"{low:.5g} to {high:.5g}", middle))
        # One line per column, with the first such site
        if sites_found:
            where, median, span, middle = sites_found[0]
            more = f", and so do {len(sites_found) - 1} more" if len(sites_found) > 1 else ""
            lines.append(
                f"{cut_cell(name)} of {cut_cell(where)} lies apart{more}: its median is {median:.5g}, "
                f"that of all other sites {middle:.5g} (range {span}); is it in another unit?"
            )
    return lines
