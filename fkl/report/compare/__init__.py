"""Comparison of finished runs: a table of all runs, means with intervals, tests, ranks and figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fkl.basics.errors import FklError, count_of
from fkl.basics.files import whole_file, write_text
from fkl.report.compare import pairs
from fkl.report.compare.cells import CellPosition, ComparedCells, arrange_cells
from fkl.report.compare.choosing import choose_runs
from fkl.report.compare.courses import metric_course
from fkl.report.compare.pivot import Pivot
from fkl.report.compare.row_order import about_row_order
from fkl.report.compare.steps import about_steps
from fkl.runs.finished_runs import Collected, EndedRun, FinishedRun
from fkl.runs.metrics import LARGER_IS_BETTER, MAIN, defining_keys, main_metric, require_metric
from fkl.screen.messages import print_lines, show_messages
from fkl.screen.pictures import FigureFiles, Pictures
from fkl.screen.sheet import Sheet
from fkl.statistics.verdicts import ADJUSTED, PairVerdict, about_best, as_table

Run = TypeVar("Run", bound=EndedRun)
Function = tuple[tuple[str, Any], ...]
MOST_ROWS = 30
"""Maximum number of rows of a table in a terminal."""


@dataclass(repr=False)
class Comparison:
    """A comparison of runs by one metric. A notebook shows the table and the conclusions.

    Parameters
    ----------
    cells : Cells
        The runs by method and data set.
    metric : str
        A column of the runs' summaries.
    notes : list of str
        Notes for the reader, in sentences.
    """

    cells: ComparedCells
    metric: str
    notes: list[str] = field(default_factory=list)
    _courses: dict[CellPosition, pd.DataFrame] = field(default_factory=dict, repr=False)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All summaries, one row for each run, replicate and metric, see `fkl.report.compare.cells.Cells.frame`."""
        return self.cells.frame({name: unit.shared for name, unit in self.pivot.units.items()})

    @cached_property
    def pivot(self) -> Pivot:
        """Means of the metric by method and data set."""
        larger = self.metric in LARGER_IS_BETTER
        values = self.cells.values(self.metric, -np.inf if larger else np.inf)
        whole = self.metric, values, self.cells.methods, self.cells.datasets, larger, self._baselines[0]
        return Pivot(*whole, self.cells.set_in_all)

    @cached_property
    def _baselines(self) -> tuple[dict[CellPosition, "pd.Series[float]"], list[str]]:
        return self.cells.baseline_errors(self.metric)

    @cached_property
    def _compared(self) -> tuple[dict[str, list[PairVerdict]], list[str]]:
        return pairs.pair_verdicts(self.pivot)

    @cached_property
    def _ranked(self) -> tuple[pd.DataFrame, list[str]]:
        if len(by_function(self.cells.every, self.metric)) > 1:
            return pd.DataFrame(), [f"No ranks over columns, in which {self.metric} is not one function."]
        return pairs.average_ranks(self.pivot, self.cells.sources)

    @property
    def tests(self) -> pd.DataFrame:
        """Verdicts on every two methods on each data set, see `fkl.statistics.verdicts.as_table`."""
        return as_table(self._compared[0])

    @property
    def ranks(self) -> pd.DataFrame:
        """Ranks by data set and method, the best on average first; empty if nothing can be ranked."""
        return self._ranked[0]

    @cached_property
    def conclusions(self) -> list[str]:
        """Notes on the table: methods that diverged, beat no baseline, or have no searched step size."""
        every = self.cells.every
        failed = sum(bool(run.diverged.any()) for run in every)
        said = [f"{failed} of {len(every)} runs diverged."] if failed else []
        said += [*self.pivot.conclusions, *self._baselines[1], *about_steps(self.cells, self.pivot)]
        said += about_row_order(self.cells)
        return [*said, *self.notes, *self.cells.notes]

    @cached_property
    def remarks(self) -> list[str]:
        """All notes: the conclusions, and missing tests or ranks."""
        lines = [*self.conclusions, *self._compared[1], *self._ranked[1]]
        if len(self.pivot.datasets) > 1 and (missing := pairs.why_no_diagram(self.ranks)):
            lines.append(missing)
        return lines

    @property
    def verdicts(self) -> list[str]:
        """For each data set, a sentence about its best method, the methods that this beats, and the undecided ones."""
        lines = []
        for name, some in self._compared[0].items():
            zero = pairs.without_ratio(self.pivot, name)
            rest = [one for one in some if one.a not in zero and one.b not in zero]
            left = f" without {' and '.join(zero)}, whose error is 0," if zero and rest else ""
            lines.append(f"On {name}{left or ','} {about_best(rest or some)}.")
        return lines

    @property
    def about_verdicts(self) -> str:
        """A sentence on how the verdicts were reached: the test, its replicates, and how these differ."""
        of = f"Student's t of log ratios over {self.pivot.over}"
        units_of_one_split = [name for name, unit in self.pivot.units.items() if unit.one_split]
        where = f" ({', '.join(units_of_one_split)})" * (len(units_of_one_split) < len(self.pivot.units))
        of += f" of one split, so over the random features only{where}" * bool(units_of_one_split)
        ranks = any(verdict.difference.failed for some in self._compared[0].values() for verdict in some)
        return f"{of}{', by signed ranks if a run diverged' * ranks}; {ADJUSTED}"

    def course_of_cell(self, cell: CellPosition) -> pd.DataFrame:
        """Metric over rounds and costs for the units of a cell: the rows of one curve per seed or replicate.

        Diverged runs are omitted. Columns are those of `fkl.report.compare.courses.metric_course`.
        """
        if cell not in self._courses:
            curves = [metric_course(run, self.metric) for run in self.cells.finished_runs(cell)]
            whole = pd.concat(curves) if curves else pd.DataFrame()
            self._courses[cell] = self.pivot.units[cell.dataset].curves_by_unit(whole) if len(whole) else whole
        return self._courses[cell]

    def _repr_html_(self) -> str:
        return "\n".join([self.pivot._repr_html_(), *(f"<p>{escape(line)}</p>" for line in self.conclusions)])

    def __repr__(self) -> str:
        return "\n".join([repr(self.pivot), *self.conclusions])

    def figures(self, dark: bool = False, style: str = "screen") -> Pictures:
        """Draw all figures, by name, each with its PNG and PDF by suffix; a notebook shows them.

        Parameters
        ----------
        dark : bool
            Whether the background is dark, for example for slides.
        style : {"screen", "paper", "column"}
            The last two are for a paper: its width, 8-point letters, and each caption in a .txt file.
        """
        from fkl.report.compare.figures import draw_comparison

        drawn = draw_comparison(self.pivot, self.cells, self.ranks, self.course_of_cell, dark, style)
        return Pictures({name: FigureFiles(files) for name, files in drawn.items()})

    def show(self, format: str = "table") -> None:
        """Print the table, the conclusions, ranks, and notes."""
        self.pivot.print_table(MOST_ROWS, format)
        if format != "table":
            return
        if self.verdicts:
            print_lines("", *self.verdicts, f"({self.about_verdicts}.)")
        if len(self.ranks):
            best = [f"{method} {rank:.2f}" for method, rank in self.ranks.mean().head(MOST_ROWS).items()]
            print_lines("", f"Average ranks over {count_of(len(self.ranks), 'data set')}: {', '.join(best)}")
        print_lines("", *self.remarks)

    def write(self, folder: str | Path, dark: bool = False, style: str = "screen") -> list[Path]:
        """Write all tables and figures, and return the file names.

        Parameters
        ----------
        folder : str or Path
            runs.csv (and .parquet if pyarrow is installed), pivot, tests and ranks as .csv, .md and .tex, figures as
            .png and .pdf.
        dark : bool
            Figures on a dark background.
        style : {"screen", "paper", "column"}
            Style of figures.
        """
        # All runs for programs, then the tables that a reader looks at
        folder = Path(folder)
        files = [folder / "runs.csv"]
        write_text(files[0], self.frame.to_csv(index=False, float_format="%.10g"))
        if find_spec("pyarrow"):
            files.append(folder / "runs.parquet")
            with whole_file(files[-1]) as stream:
                self.frame.to_parquet(stream, index=False)
        files += self.pivot.table_sheet(conclusions=self.conclusions).write(folder / "pivot")
        about = "\n\n".join(self.remarks)
        # Tests and ranks exist only for some comparisons
        if len(self.tests):
            caption = f"Percentage by which the error of a is above that of b. {self.about_verdicts}."
            files += Sheet.from_frame(self.tests, caption, about).write(folder / "tests")
        if len(self.ranks):
            ranked = self.ranks.T.assign(average=self.ranks.mean()).rename_axis("method").reset_index()
            files += Sheet.from_frame(ranked, f"Ranks. {self.pivot.caption}", about).write(folder / "ranks")
        # Each figure in all of its formats
        for name, made in self.figures(dark, style).items():
            for suffix, content in made.items():
                files.append(folder / f"{name}{suffix}")
                with whole_file(files[-1]) as stream:
                    stream.write(content)
        return files


def compare(
    runs: str | PathLike[str] | Iterable[str | PathLike[str]] = (), metric: str | None = None, by: Sequence[str] = ()
) -> Comparison:
    """Compare finished runs.

    Checksums of the files that are read (configuration, summary and rounds) are verified. Runs of a cell must have the
    code of its newest run; others are omitted with a warning.

    Parameters
    ----------
    runs : str, Path, Result or iterable of these
        Results of `fkl.run`, folders of runs or of a sweep, globs, and ``KEY=VALUE,VALUE``, which runs must match;
        without any, ``outputs``.
    metric : str, optional
        A column of summary.csv; by default the main error of most of the runs.
    by : sequence of str
        Keys whose values form columns, as data sets do, instead of rows.

    Returns
    -------
    Comparison

    Raises
    ------
    fkl.basics.errors.FklError
        If a word finds no run, or no run has the metric.
    """
    return compare_runs(_read_chosen(runs), metric, by)


def rounds(runs: str | PathLike[str] | Iterable[str | PathLike[str]] = ()) -> pd.DataFrame:
    """The rounds of finished runs in one table, with the columns that distinguish the runs.

    Parameters
    ----------
    runs : as for `compare`

    Returns
    -------
    DataFrame
        One row per run, replicate and round: run, method, dataset, algorithm, the keys that distinguish runs, seed; and
        the columns of rounds.csv, empty if a run does not have them. Diverged runs have no rows.

    Raises
    ------
    fkl.basics.errors.FklError
        If a word finds no run.

    Examples
    --------
    >>> import fkl
    >>> words = ("algo=raker", "dataset=diabetes", "partition=stream", "kernels.smallest=1", "replicates=2")
    >>> runs = [fkl.run(*words, f"algo.eta={eta}", quiet=True) for eta in (0.25, 0.5)]
    >>> frame = fkl.rounds(runs)
    >>> frame[frame["round"] == 442].groupby(["method", "algo.eta"]).mse.mean().round(3)
    method            algo.eta
    Raker (eta=0.25)  0.25        0.052
    Raker (eta=0.5)   0.50        0.048
    Name: mse, dtype: float64
    """
    return arrange_cells(_read_chosen(runs).runs).rounds()


def _read_chosen(runs: str | PathLike[str] | Iterable[str | PathLike[str]]) -> Collected:
    """Read the chosen runs, and warn about those that are omitted."""
    with show_messages(warning_lines=False):
        collected = choose_runs([runs] if isinstance(runs, str | PathLike) else runs)
        collected.warn_about_runs()
    return collected


def compare_runs(found: Collected, metric: str | None = None, by: Sequence[str] = ()) -> Comparison:
    """Compare runs that are already read; parameters and errors as for `compare`."""
    # Without a finished run there is nothing to compare
    runs = found.runs
    if not runs:
        raise FklError(f"compare: none of these runs is finished; {len(found.lost)} diverged; lower the step size")
    notes = [f"{found.older} older runs are omitted: newer runs have their configuration."] if found.older else []
    # The metric that most runs are judged by, unless the caller names another
    if metric is None:
        named = [main_metric(run.summary) for run in runs]
        metric = max(dict.fromkeys(named), key=named.count)
    require_metric(metric, sorted({str(name) for run in runs for name in run.summary}))
    # Only runs with a value in every replicate
    having = [run for run in runs if metric in run.summary and run.summary[metric].notna().all()]
    if not having:
        raise FklError(f"metric={metric}: no run has a value of this metric in every replicate")
    notes += _left_out([run for run in runs if not any(run is one for one in having)], metric)
    # Runs with the same function of the metric: a quantile loss at another level is another function
    elsewhere = {run.dataset for run in runs} - {run.dataset for run in having}  # these have another main metric
    functions = by_function(having, metric, by)
    function = max(functions, key=lambda one: len(functions[one]))
    notes += _other_functions(functions, function, metric)
    # Diverged runs stay, as runs without a value
    lost = by_function([run for run in found.lost if run.dataset not in elsewhere], metric, by).get(function, [])
    return Comparison(arrange_cells([*lost, *functions[function]], by), metric, notes)


def by_function(runs: Iterable[Run], metric: str, by: Sequence[str] = ()) -> dict[Function, list[Run]]:
    """Runs by the function that the metric is in them, given as its defining keys with their values.

    Parameters
    ----------
    by : sequence of str
        Keys that do not distinguish functions, because their values form columns.
    """
    runs_of: dict[Function, list[Run]] = {}
    for run in runs:
        keys = defining_keys(metric, run.config)
        runs_of.setdefault(tuple((key, value) for key, value in keys.items() if key not in by), []).append(run)
    return runs_of


def _other_functions(functions: dict[Function, list[FinishedRun]], kept: Function, metric: str) -> list[str]:
    """A note for each other function that the metric is in some runs, with what to compare instead."""
    every = [run for some in functions.values() for run in some]
    # Which metric would be the same function in all of them
    shared = [name for name in MAIN if name != metric and all(name in run.summary for run in every)]
    alike = [name for name in shared if len(by_function(every, name)) == 1]
    labels = {of: " ".join(f"{key}={value}" for key, value in of) or "another loss" for of in functions}
    notes = []
    # A note for each function that is left out
    for function, some in functions.items():
        if function != kept:
            which = (
                f"{count_of(len(some), 'run')} of {' and '.join(dict.fromkeys(run.algorithm for run in some))} omitted"
            )
            why = f"{metric} is another function with {labels[function]} than with {labels[kept]}"
            instead = f"compare these with {labels[function]}" if function else "compare these alone"
            notes.append(f"{which}: {why}; {instead}{f', or all with --metric={alike[0]}' if alike else ''}.")
    return notes


def _left_out(runs: Sequence[FinishedRun], metric: str) -> list[str]:
    """A note for each main error of runs that have no values of the metric."""
    # By main error, since that tells why the metric is missing
    methods: dict[str, list[str]] = {}
    for run in runs:
        methods.setdefault(main_metric(run.summary), []).append(run.algorithm)
    notes = []
    for error, names in methods.items():
        which = f"{count_of(len(names), 'run')} of {' and '.join(dict.fromkeys(names))} omitted"
        other = error != metric and metric in MAIN
        why = f"another kind of error ({error}, not {metric}); compare these with --metric={error}"
        notes.append(f"{which}: {why if other else f'{metric} is not known in every replicate'}.")
    return notes


def compare_command(
    where: Sequence[str] = (),
    metric: str | None = None,
    by: Sequence[str] = (),
    out: str | Path = "outputs/comparison",
    dark: bool = False,
    format: str = "table",
    style: str = "screen",
    rounds: str | Path | None = None,
) -> None:
    """`fkl compare`: compare, write everything, and print the result.

    Parameters
    ----------
    where, metric, by
        As for `compare`.
    out : str or Path
        Folder for tables and figures.
    dark : bool
        Figures on a dark background.
    format : str
        Format of the printed table, see `fkl.screen.sheet.FORMATS`.
    style : {"screen", "paper", "column"}
        Style of figures.
    rounds : str or Path, optional
        File for the rounds of all runs, see the function `rounds`.
    """
    # Read, compare, write, print
    collected = choose_runs(where)
    collected.warn_about_runs()
    made = compare_runs(collected, metric, by)
    files = made.write(out, dark, style)
    if rounds is not None:
        write_text(Path(rounds), arrange_cells(collected.runs).rounds().to_csv(index=False, float_format="%.15g"))
    made.show(format)
    if format == "table":
        print_lines(
            "",
            f"{count_of(len(made.cells.every), 'run')} compared, all with unchanged checksums",
            f"  files  {out} ({len(files)})",
        )
