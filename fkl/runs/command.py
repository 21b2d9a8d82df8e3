"""One run of `fkl run`, and its output: a verdict, six lines of numbers, and the folder of its files.

Code that executes, draws and writes is imported only after the configuration has been checked.
"""

import shlex
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, count_of, library_error, own_lines
from fkl.basics.files import CannotWriteError
from fkl.config.loading import OWN_TABLE, Run, load_run
from fkl.data.baselines import CONSTANTS, not_beaten, summary_means
from fkl.engines.base import DivergedError
from fkl.runs.metrics import ACCURACIES, MAIN, main_metric, require_metric
from fkl.screen.units import bytes_of, number_text, percent_apart, seconds_text, with_spread

if TYPE_CHECKING:
    from fkl.runs.play import Drawing

HINDSIGHT = "best constant"
SHORT = {
    "mse_running_mean": "mean target",
    "mse_last_value": "last target",
    "error_majority": "majority so far",
    "error_last_class": "last class",
    **dict.fromkeys(("mse_best_constant", "error_best_constant", "pinball_best_constant"), HINDSIGHT),
    "pinball_running_quantile": "quantile so far",
    "pinball_last_value": "last target",
    "test_mse_training_mean": "mean target",
    "test_error_majority": "most frequent class",
}
"""Short names of baselines."""
WHOSE = {
    "mse": "each client's",
    "error": "each client's",
    "pinball": "each client's",
    "test_mse": "the",
    "test_error": "the",
}
"""Word before the baselines of an error: whose they are."""
UNITS = "rmse_in_units"
BELOW, NOT_BELOW = "✓", "▲"
LABEL, FIRST = 9, 34
"""Widths of a line's label, and of the first of its two entries."""


def run_single(
    config: dict[str, Any],
    words: tuple[str, ...],
    draw: "Drawing",
    verbose: bool = False,
    quiet: bool = False,
    folders: Sequence[Path] = (),
) -> None:
    """Do a run that is not a job of a sweep, and show the result.

    Parameters
    ----------
    config : dict
    words : tuple of str
        Words of the command line.
    draw : callable
        Draws the figures, see `fkl.runs.play.execute_run`.
    verbose : bool
        Whether to show all columns of the summary.
    quiet : bool
        Whether to show only warnings.
    folders : sequence of Path
        Folders with choices, in addition to fkl's own.

    Raises
    ------
    fkl.basics.errors.FklError
    SystemExit
        With code 1 for an error in the user's own code, after its lines are shown; with `verbose`, those that caused an
        FklError are shown, too.
    """
    # Errors that the user can correct pass through; others are shown with the user's own lines, if any
    run, start = None, time.monotonic()
    try:
        run = load_run(config, words)
        from fkl.runs.play import execute_run

        played = execute_run(run, draw, progress=not quiet)
    except FklError as error:
        if verbose and error.__cause__ is not None:
            _show_own_lines(error.__cause__)
        raise
    # An error of a library, such as a full disk, or of fkl or the user's class
    except Exception as error:
        if (of_library := library_error(error)) is not None:
            raise of_library from None
        shown = _show_own_lines(error)
        # The whole traceback goes into a file; the screen shows only the user's own lines
        if run is not None:
            folder = write_traceback(error, run.failed_folder, config, run.digest)
            if shown:
                print(f"the whole traceback: {folder / 'error.txt'}", file=sys.stderr)
        if shown:
            sys.exit(1)
        raise
    search_objective(run)
    _print_result(run, time.monotonic() - start if played else None, verbose, quiet, folders)


def _show_own_lines(error: BaseException) -> bool:
    """Print the lines of the user's own code that caused an error, if there are any."""
    lines = own_lines(error)
    if lines:
        print(*traceback.format_list(lines), *traceback.format_exception_only(error), sep="", end="", file=sys.stderr)
    return bool(lines)


def _print_result(run: Run, waited: float | None, verbose: bool, quiet: bool, folders: Sequence[Path]) -> None:
    """Print the result of a finished run; `waited` seconds, None if it was already finished."""
    from fkl.runs.folder import read_provenance, read_summary
    from fkl.runs.tables import TIMING_COLUMNS
    from fkl.screen.messages import print_lines, show_warning

    # Warnings first, then how columns were read, then the result
    facts, summary = read_provenance(run.folder), read_summary(run.folder)
    for text in other_warnings(facts, summary):
        show_warning(text)
    if verbose:
        from fkl.data.table_check import check_files, columns_sheet
        from fkl.data.table_file import TableFile

        if isinstance(run.dataset, TableFile):
            tables = Path(run.paths.cache).expanduser() / "tables"
            columns_sheet(check_files(run.dataset, tables).decisions).print_sheet()
    if not quiet:
        lines = result_blocks(run.folder, facts, run.resolved, summary, waited)
        print_lines(
            *lines,
            *unchecked_method_lines(run.resolved, run.words, folders),
            *(["", all_columns(summary, TIMING_COLUMNS)] if verbose else []),
        )


def unchecked_method_lines(config: dict[str, Any], words: Sequence[str], folders: Sequence[Path] = ()) -> list[str]:
    """For a user's own method, a line with the command that checks its promises, which a run does not check."""
    if str(config["algo"]["_target_"]).startswith("fkl."):
        return []
    where = [f"--config-dir {shlex.quote(str(folder))}" for folder in folders]
    of_method = [shlex.quote(word) for word in words if word.lstrip("+").startswith(("algo=", "algo."))]
    return [f"  unchecked {' '.join(['python -m fkl.conformance', *where, *of_method])}"]


def search_objective(run: Run) -> float | None:
    """The value that a search minimises: the mean over replicates of a column of the finished run's summary."""
    name = run.settings.objective
    if name is None:
        return None
    from fkl.runs.folder import read_summary

    summary = read_summary(run.folder)
    require_metric(name, summary, "objective")
    return summary_means(summary)[name]


def write_traceback(error: Exception, folder: Path, config: dict[str, Any], digest: str) -> Path:
    """Write a failed run's traceback to its own folder, and return its path."""
    from fkl.runs.folder import write_failed

    if isinstance(error, DivergedError) and error.folder is not None:
        return error.folder  # this folder already has the rows
    try:
        return write_failed(folder, config, "".join(traceback.format_exception(error)), digest)
    except CannotWriteError as full:
        from fkl.screen.messages import show_warning

        show_warning(str(full))
        return folder


class RunVerdict(NamedTuple):
    """Whether a run's error is below its baselines."""

    mark: str
    words: str


def judge_summary(summary: Mapping[str, Array]) -> RunVerdict:
    """Compare the mean error over replicates with each of its baselines; or judge an audit."""
    # An audit is judged by its two bounds
    mean = summary_means(summary)
    if (lower := "epsilon_lower") in summary:
        upper = "epsilon_upper_sums" if "epsilon_upper_sums" in summary else "epsilon_upper"
        mark = BELOW if (summary[lower] <= summary[upper]).all() else NOT_BELOW
        return RunVerdict(
            mark, f"audit: epsilon is at least {number_text(mean[lower])}, stated {number_text(mean[upper])}"
        )
    # The first error that has baselines decides; it must be below all of them
    for error, baselines in CONSTANTS.items():
        there = {name: mean[name] for name in baselines if name in mean}
        if error not in mean or not there:
            continue
        mean_error = mean[error]
        worse = {SHORT[name]: value for name, value in there.items() if not mean_error < value}
        if worse:
            constants = {name: f"{name} ({number_text(value)})" for name, value in worse.items()}
            best = [f"the {constants.pop(HINDSIGHT)}"] if HINDSIGHT in constants else []
            clause = [f"{WHOSE[error]} {' and '.join(constants.values())}"] if constants else []
            return RunVerdict(NOT_BELOW, f"not better than {' and '.join(clause + best)}")
        # Below all: how far below each
        shown = {SHORT[name]: value for name, value in there.items() if SHORT[name] != HINDSIGHT}
        apart = (f"{percent_apart(mean_error, value)} the {name}" for name, value in shown.items())
        return RunVerdict(BELOW, ", ".join(apart))
    return RunVerdict(BELOW, "finished; it has no baseline to compare with")


def other_warnings(provenance: dict[str, Any], summary: Mapping[str, Array]) -> list[str]:
    """Further facts about a run's numbers, in addition to the verdict."""
    told = str(provenance.get("warning", "")).removesuffix(not_beaten(summary) or "").removesuffix("; ")
    return [told] if told else []


def experiment_sizes(provenance: dict[str, Any], config: dict[str, Any]) -> str:
    """Size of the experiment."""
    usual = f"{count_of(provenance['clients'], 'client')}, {count_of(provenance['rounds'], 'round')}"
    size_words = [provenance.get("sizes", usual), count_of(config["replicates"], "replicate")]
    if graph := provenance.get("topology"):
        size_words.append(f"{graph['edges']} links, spectral gap {graph['spectral_gap']:.3g}")
    if config.get("stop_when"):
        size_words.append(f"ended after round {provenance['rounds']}")
    if config.get("rows", "all") != "all":
        size_words.append(f"rows={config['rows']}")
    return ", ".join(size_words)


def is_own(config: dict[str, Any]) -> bool:
    """Whether the data are the user's own table, whose units the user knows."""
    return str((config.get("dataset") or {}).get("_target_")) == OWN_TABLE


def result_blocks(
    folder: Path,
    provenance: dict[str, Any],
    config: dict[str, Any],
    summary: Mapping[str, Array],
    waited: float | None = None,
) -> list[str]:
    """Lines with the run and the verdict, numbers by subject, the folder of the files, and next steps.

    Parameters
    ----------
    folder : Path
    provenance, config : dict
    summary : mapping of str to (R,)
        Columns of summary.csv.
    waited : float, optional
        Seconds that the user waited for the run.
    """
    # What was run, and whether it beats its baselines
    mean = summary_means(summary)
    mark, sentence = judge_summary(summary)
    lines = [f"{provenance['algorithm']} on {provenance['dataset']}", f"{mark} {sentence}", ""]
    in_units = [UNITS] * (is_own(config) and UNITS in summary)
    errors = in_units + ([name for name in MAIN if name in summary] or [main_metric(summary)])
    baselines = [name for name in SHORT if name in summary and name != "mse_best_constant"]  # R² stands for it

    # Values that do not exist or are NaN are left out, and lines without values as well
    def value(name: str, before: str = "", behind: str = "") -> list[str]:
        is_known = name in mean and mean[name] == mean[name]  # NaN if it is unknown
        return [f"{before} {number_text(mean[name])} {behind}".strip()] if is_known else []

    def line(label: str, entries: list[str]) -> None:
        for start in range(0, len(entries), 2):
            first, *second = entries[start : start + 2]
            text = f"  {label if start == 0 else '':{LABEL}} {first:{FIRST - 1}} {''.join(second)}"
            lines.append(text.rstrip())

    # The main error with its spread over replicates, then accuracies and R2
    values_known = {name: summary[name][~np.isnan(summary[name])] for name in errors}
    spread = {name: float(values.std(ddof=1)) if len({*values}) > 1 else 0.0 for name, values in values_known.items()}
    main = [f"{name} {with_spread(mean[name], spread[name])}{' (sd)' * (spread[name] > 0)}" for name in errors]
    other_mean = bool(mark == NOT_BELOW and mean.get("r2", 0) > 0)
    right = [entry for name in errors[:1] if name in ACCURACIES for entry in value(ACCURACIES[name], ACCURACIES[name])]
    line("error", [*main[:1], *right, *value("r2", "R²", "against the overall mean" * other_mean), *main[1:]])
    line("", [f"{SHORT[name]} {number_text(mean[name])}" for name in baselines])
    # Fairness, intervals, privacy, regrets: each on its line, if there are such columns
    fairness = [name.removesuffix("_gini") for name in summary if name.endswith("_gini")]
    line("clients", [
        entry for name in fairness
        for entry in (*value(f"{name}_worst_tenth", "worst tenth"), *value(f"{name}_gini", "Gini"))
    ])  # fmt: skip
    covered, length = (mean.get(f"conformal_{fact}_90", float("nan")) for fact in ("coverage", "length"))
    if covered == covered:
        line("intervals", [f"{covered:.1%} of targets in 90 % intervals", f"mean length {number_text(length)}"])
    epsilons = {"epsilon_sample": "of a sample", "epsilon_client": "of a client"}
    line("privacy", [entry for name, words in epsilons.items() for entry in value(name, "epsilon", words)])
    regrets = {"regret_best_kernel": "to the best kernel", "regret_hindsight": "in hindsight"}
    line("regret", [entry for name, words in regrets.items() for entry in value(name, behind=words)])
    # What was sent, and how long it took
    ways = {
        "uplink": "up from all clients",
        "downlink": "down to all clients",
        "broadcast": "broadcast by all agents",
        "link": "over all links",
    }
    sent = {way: float(mean[f"{name}_bytes"]) for name, way in ways.items() if f"{name}_bytes" in mean}
    line("sent", [f"{bytes_of(size)} {way}" for way, size in sent.items()])
    behind = [f"{seconds_text(waited)} from start to end"] if waited is not None else ["finished already"]
    line("time", [f"{seconds_text(mean['runtime_s'])} computing a replicate", *behind])
    # The sizes, the order of rows, and where the files are
    lines.append(f"  data      {experiment_sizes(provenance, config)}")
    if "row_order" in provenance:
        lines.append(f"  order     {provenance['row_order']}")
    if is_own(config):
        line("scaling", [f"{config['scaling']}, from {provenance.get('scaling_from', 'all rows')}"])
    pictures = " · ".join(file.name for file in sorted(folder.glob("*.png")))
    lines += ["", f"  run       {folder}"]
    lines += [f"  pictures  {pictures}"] * bool(pictures)
    return [*lines, "  next      fkl compare · all columns: fkl run ... -v"]


def all_columns(summary: Mapping[str, Array], timing: tuple[str, ...]) -> str:
    """Mean and standard deviation over replicates; times have no deviation, because replicates run together."""
    import pandas as pd

    figures = pd.DataFrame(summary).drop(columns="replicate")
    varies = (figures.nunique() != 1) | (len(figures) == 1)  # std of equal numbers can exceed 0
    deviation = figures.std(ddof=1).where(varies, 0.0).drop(list(timing))
    table = pd.DataFrame({"mean": figures.mean(), "sd": deviation}).loc[list(figures)]
    return table.to_string(float_format=lambda value: f"{value:.5g}", na_rep="-")
