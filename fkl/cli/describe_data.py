"""Description of a data set and its distribution over clients: numbers and a picture, before any method runs."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, count_of, in_one_line, key_prefix
from fkl.basics.files import report_write_errors, whole_file
from fkl.basics.memory import limited_to_free_memory
from fkl.basics.random_streams import Role, shared_generator
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_run
from fkl.data.problem import Problem, Table
from fkl.data.store import Store
from fkl.data.table_check import SiteColumn, check_files, columns_sheet
from fkl.data.table_file import TableFile
from fkl.data.vertical import Vertical
from fkl.screen.messages import print_lines, print_note, print_refusal
from fkl.screen.sheet import Sheet
from fkl.tasks.task import read_table, split_table

QUANTILES = 5
"""Number of ranges with equally many samples in which a numeric target is shown."""
FEW = 10
"""Maximum number of target values that are shown as classes."""
ROWS_SHOWN = 30
SITE_ROWS_SHOWN = 120
SITE_HEADINGS = ("column", "site", "holds", "median", "range", "missing", "only there")
WIDTH = 0.9
"""Width of a bar."""
NAMES_SHOWN = 12
"""Maximum number of sites with a name in the picture."""
LONGEST_NAME = 18
"""Letters of a site's name in the picture."""


def describe_data(words: tuple[str, ...], folders: Sequence[Path] = ()) -> None:
    """Describe the data that ``fkl run`` would use with these words, draw the partition, and print both.

    Parameters
    ----------
    words : tuple of str
        Words as for ``fkl run``; a first word without an equals sign is the name of a data set.
    folders : sequence of Path
        Folders with the user's own choices.
    """
    of_a_set = [f"dataset={words[0]}", *words[1:]] if words and "=" not in words[0] else words
    run = load_run(compose_config(*of_a_set, folders=folders))
    if isinstance(run.dataset, TableFile):
        _show_check(run, run.dataset)
    generator = shared_generator(run.settings.seed, Role.DATA)
    with limited_to_free_memory():
        table = read_table(run, generator)
        given = split_table(run, table, generator)
    of_features = getattr(run.partition, "of_features", False)
    held = _party_features(table, given) if of_features else _of_partition(run, given)
    print_lines(*_of_table(run, table), "")
    features, more = _of_features(table)
    if features is not None:
        features.print_sheet()
    print_lines(*more, "", *held)


def _show_check(run: Run, data: TableFile) -> None:
    """Print what is decided about each column of a user's table, and how its sites differ.

    Raises
    ------
    FklError
        If the files have faults; all of them are printed before.
    """
    with key_prefix("dataset"), limited_to_free_memory():
        checked = check_files(data, Store(Path(), cache=Path(run.paths.cache).expanduser()).tables)
    lines = checked.fault_lines()
    for line in lines if len(lines) > 1 else ():
        print_refusal(FklError(line))
    columns_sheet(checked.decisions).print_sheet()
    if len(checked.site_names) > 1:
        rows = checked.by_site()
        headings = SITE_HEADINGS if any(one.only_there for one in rows) else SITE_HEADINGS[:-1]
        shown = [one[: len(headings)] for one in rows[:SITE_ROWS_SHOWN]]
        Sheet.from_rows([*headings], shown, [3]).print_sheet()
        if len(rows) > SITE_ROWS_SHOWN:
            print_lines(f"... and {len(rows) - SITE_ROWS_SHOWN} more rows: {_site_columns_saved(run, rows)}")
        for line in checked.columns_apart() if lines else ():  # without faults, reading the table says so, too
            print_note(line)
    if len(lines) == 1:
        raise FklError(lines[0])
    if lines:
        count = f"{count_of(len(lines), 'kind')} of faults in {count_of(len(data.paths + data.test_paths), 'file')}"
        raise FklError(f"{count}, see above: mend them before you run")


def _site_columns_saved(run: Run, rows: Sequence[SiteColumn]) -> Path:
    """The file with each column at each site."""
    path = Path(run.paths.outputs) / "data" / f"{run.dataset.name}-columns-by-site.csv"
    with report_write_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.write(Sheet.from_rows([*SITE_HEADINGS], rows, []).text("csv").encode())
    return path


def _raw_y(table: Table | Problem) -> NDArray[np.float64]:
    return table.scale.y_back(table.y)


def _of_table(run: Run, table: Table) -> list[str]:
    """Rows, sites and the target."""
    y = _raw_y(table)
    spread = {"mean": y.mean(), "sd": y.std(), "min": y.min(), "median": np.median(y), "max": y.max()}
    lines = [
        f"{run.dataset.name}: {count_of(len(y), 'row')}, {count_of(table.x.shape[1], 'feature')}, "
        f"{count_of(len(table.site_names), 'site')}",
        "target: " + ", ".join(f"{name} {value:.5g}" for name, value in spread.items()),
    ]
    if table.tested is not None:
        lines.append(f"{count_of(int(table.tested.sum()), 'row')} held out as test rows")
    if table.incomplete.rows:
        lines.append(str(table.incomplete))
    names, of = _target_classes(table, y)
    counts = np.bincount(of, minlength=len(names))
    counted = ", ".join(f"{name}: {count}" for name, count in zip(names, counts, strict=True))
    lines.append(f"rows by target: {counted}")
    return lines


def _of_features(table: Table) -> tuple[Sheet | None, list[str]]:
    """A table with one row per feature, in the file's units, and lines about features without a row."""
    if not isinstance(table.x, np.ndarray):
        return None, [f"features are stored sparse: {table.x.nnz} of {table.x.shape[0] * table.x.shape[1]} cells"]
    unit, low = (np.broadcast_to(part, table.x.shape[1:]) for part in (table.scale.x_unit, table.scale.x_low))
    rows = []
    for j, name in enumerate(table.feature_names[:ROWS_SHOWN]):
        x = table.x[:, j] * unit[j] + low[j]
        rows.append([name, *(f"{value:.5g}" for value in (x.mean(), x.std(), x.min(), x.max()))])
    more = len(table.feature_names) - ROWS_SHOWN
    lines = [f"... and {more} more features"] if more > 0 else []
    return Sheet.from_rows(["feature", "mean", "sd", "min", "max"], rows, range(1, 5)), lines


def _of_partition(run: Run, given: Problem) -> list[str]:
    """Clients, their numbers of samples, and the picture."""
    held = given.present.sum(axis=0)
    spread = f"{held.min()} to {held.max()} samples each, median {np.median(held):g}"
    shape = f"{count_of(given.clients, 'client')}, {count_of(given.rounds, 'round')}, {spread}"
    return [f"{shape}, {count_of(given.rows_left_out, 'row')} dropped", "", f"pictures: {_draw_partition(run, given)}"]


def _party_features(table: Table, given: Vertical) -> list[str]:
    """The features of each party."""
    lines = []
    for number, group in enumerate(given.groups):
        names = [table.feature_names[feature] for feature in group[:NAMES_SHOWN]]
        more = ", ..." if len(group) > NAMES_SHOWN else ""
        holds = " and the target" if number in given.active else ""
        lines.append(f"party {number}: {count_of(len(group), 'feature')}{holds}: {', '.join(names)}{more}")
    return lines


def _target_classes(of: Table | Problem, y: NDArray[np.float64]) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the target's classes, or of ranges with equally many samples, and the class of each value."""
    values, number = np.unique(y, return_inverse=True)
    labels = of.encoder.labels if of.encoder is not None else ()
    if len(values) <= FEW or labels:
        names = [labels[round(value)] if labels else f"{value:g}" for value in values]
        return names, number
    ends = np.quantile(y, np.linspace(0, 1, QUANTILES + 1))
    names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(ends)]
    return names, np.searchsorted(ends[1:-1], y, side="left")


def _draw_partition(run: Run, given: Problem) -> str:
    """The picture's files: numbers of samples of clients, by site, and their targets."""
    from fkl.report.figures import panel_row, render_figure, shade_of_curve  # isort: skip  its package configures matplotlib's messages

    import matplotlib
    from matplotlib.ticker import MaxNLocator

    names, of = _target_classes(given, _raw_y(given)[given.present])
    counts = np.zeros((given.clients, len(names)))
    np.add.at(counts, (np.nonzero(given.present)[1], of), 1)
    order = np.argsort(given.site, kind="stable")
    counts, site, place = counts[order], given.site[order], np.arange(given.clients)
    figure, (sizes, shares) = panel_row(2)
    middles = {number: float(place[site == number].mean()) for number in np.unique(site).tolist()}
    for number in middles:
        here = site == number
        sizes.bar(place[here], counts[here].sum(axis=1), WIDTH, color=shade_of_curve(number)[0])
    share, colours = counts / counts.sum(axis=1, keepdims=True), matplotlib.colormaps["viridis"]
    for number, name in enumerate(names):
        label = f"target {in_one_line(name)}" if number < NAMES_SHOWN else None
        colour = colours(number / max(len(names) - 1, 1))
        shares.bar(place, share[:, number], WIDTH, share[:, :number].sum(axis=1), color=colour, label=label)
    for axes, what in ((sizes, "samples"), (shares, "share of the client's samples")):
        axes.set_axisbelow(True)
        axes.set_ylabel(what)
        axes.set_xlabel("client, in the order of sites")
        axes.set_xlim(-0.6, given.clients - 0.4)
        if 1 < len(middles) <= NAMES_SHOWN:  # names on the axis, because colours repeat
            sites = [
                shorten(in_one_line(given.site_names[number]), LONGEST_NAME, placeholder="...") for number in middles
            ]
            axes.set_xticks([*middles.values()], sites, rotation=45, ha="right", rotation_mode="anchor")
            axes.set_xlabel("clients by site")
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    partition = type(run.partition).__name__
    figure.suptitle(f"{run.dataset.name}, {partition}: {count_of(given.clients, 'client')}")
    folder = Path(run.paths.outputs) / "data"
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, content in render_figure(
        figure, "samples of each client by site, left, and their targets, right"
    ).items():
        paths.append(folder / f"{run.dataset.name}-{partition.lower()}{suffix}")
        with whole_file(paths[-1]) as stream:
            stream.write(content)
    return ", ".join(map(str, paths))
