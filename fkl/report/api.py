"""fkl from Python: one run and its results, as `fkl.run` and `fkl.load`."""

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any

from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line, require
from fkl.config.compose import compose_config
from fkl.config.loading import load_run as checked
from fkl.data.baselines import CONSTANTS
from fkl.report import draw_figures
from fkl.runs.command import result_blocks
from fkl.runs.finished_runs import FinishedRun, read_run
from fkl.runs.metrics import WORDS, main_metric, require_metric
from fkl.runs.model import SavedModel
from fkl.runs.model import load_model as load_model
from fkl.runs.play import execute_run
from fkl.screen.messages import show_messages, show_warning
from fkl.screen.pictures import FigureFiles

__all__ = ["Result", "load", "load_model", "run"]

_ONE_AT_A_TIME = RLock()
"""One run at a time, because the threads of compiled code belong to the process."""


@dataclass(frozen=True, repr=False)
class Result(FinishedRun):
    """Results of a finished run.

    Parameters
    ----------
    folder : Path
        Folder of its files, an absolute path.
    config : dict
        Its complete configuration.
    provenance : dict
        Everything else that decided its numbers (versions, machine, checksums of its files), and any warning.

    Attributes
    ----------
    summary, rounds, clients : DataFrame
        One row per replicate; per replicate and round; per replicate and client.
    figures : dict of str to Path
    model : fkl.runs.model.SavedModel
    """

    def __fspath__(self) -> str:
        return str(self.folder)

    @cached_property
    def model(self) -> SavedModel:
        """The learned model of a run with ``save_model=true``."""
        return load_model(self.folder)

    def predict(self, rows: Any, client: Any = None, replicate: int | None = None) -> NDArray[Any]:
        """Predict with the learned model; see `fkl.runs.model.Model.predict`."""
        return self.model.predict(rows, client, replicate)

    @cached_property
    def figures(self) -> dict[str, Path]:
        """Its figures as PNG, by name; ``fkl figure FOLDER`` draws them as PDF."""
        return {file.stem: file for file in sorted(self.folder.glob("*.png"))}

    def plot(self, column: str | None = None, dark: bool = False) -> FigureFiles:
        """Draw a column over the rounds: the mean of the replicates, and the band from 10 to 90 % of them.

        Parameters
        ----------
        column : str, optional
            A column of rounds.csv; by default the main error, with its baselines.
        dark : bool
            Whether the background is dark.

        Returns
        -------
        fkl.screen.pictures.FigureFiles
            PNG and PDF by suffix; a notebook shows it.

        Raises
        ------
        fkl.basics.errors.FklError
            If the rounds have no such column.
        """
        from fkl.report.colours import DASHES, baseline_colour, look_of
        from fkl.report.figures import draw_groups, panel_row, render_figure, style_figures

        # The column by which the run is judged, unless the caller names another
        if column is None:
            column = main_metric(self.rounds.columns)
        require_metric(column, sorted(self.rounds.columns))
        with style_figures(dark=dark):
            figure, (axes,) = panel_row(1)
            # The mean and the band, then the constants that belong to this column
            by_round = self.rounds.groupby("round")
            draw_groups(axes, by_round[column], self.algorithm, look_of(self.algorithm))
            for number, (name, label) in enumerate(CONSTANTS.get(column, {}).items()):
                if name in self.rounds:
                    draw_groups(axes, by_round[name], label, (baseline_colour(number), DASHES[1]))
            axes.set_title(f"{self.algorithm} on {self.dataset}")
            axes.set_ylabel(WORDS.get(column, column))
            axes.set_xlabel("round")
            return FigureFiles(render_figure(figure, self.replicates))

    def __repr__(self) -> str:
        return "\n".join(result_blocks(self.folder, self.provenance, self.config, self.columns))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


def run(*words: str, quiet: bool = False, config_dir: str | PathLike[str] | None = None) -> Result:
    """Do the run that ``fkl run`` would do with these words, unless it is finished, and return its results.

    Runs in one process are executed one after another, even from several threads. Only the progress bar and notes are
    printed, to stderr; warnings are Python warnings.

    Parameters
    ----------
    *words : str
        As on the command line: ``"algo=pof_mkl"``, ``"kernels.D=50"``, ``"paths.outputs=FOLDER"``.
    quiet : bool
        Whether to print no progress bar and no notes.
    config_dir : path, optional
        Folder with your own choices, like ``--config-dir``. Python must be able to import their modules.

    Returns
    -------
    Result

    Raises
    ------
    fkl.basics.errors.FklError
        For any error that the caller can correct, in one line.

    Examples
    --------
    >>> import fkl
    >>> words = ("algo=raker", "dataset=diabetes", "partition=stream", "kernels.smallest=1", "algo.eta=0.5")
    >>> result = fkl.run(*words, "replicates=2", quiet=True)
    >>> result.summary[["replicate", "mse"]].round(3)
       replicate    mse
    0          0  0.048
    1          1  0.048
    >>> sorted(result.figures)
    ['mse', 'regret']
    >>> result.config["algo"]["eta"]
    0.5
    """
    # Refuse options of the command line, which have no meaning here
    for word in words:
        require(isinstance(word, str), "word", word, 'text such as "algo=raker"')
        if word.startswith("-"):
            raise FklError(f"{in_one_line(word)}: not allowed here; fkl.run accepts only KEY=VALUE words, for one run")
    folders = () if config_dir is None else (Path(config_dir),)
    for folder in folders:
        require(folder.is_dir(), "config_dir", str(config_dir), "a folder that exists")
    # One run at a time, because messages and working state belong to the process
    with _ONE_AT_A_TIME, show_messages(results=False, notes=not quiet, warning_lines=False):
        run = checked(compose_config(*words, folders=folders), words)
        execute_run(run, draw_figures, progress=not quiet)
        result = load(run.folder)
        if "warning" in result.provenance:
            show_warning(result.provenance["warning"])
    return result


def load(folder: str | PathLike[str]) -> Result:
    """Return the results of a finished run from its folder.

    Raises
    ------
    fkl.basics.errors.FklError
        If it is not a finished run, or has changed since it was written.

    Examples
    --------
    >>> import fkl
    >>> fkl.load("nowhere")
    Traceback (most recent call last):
    fkl.basics.errors.FklError: nowhere: not a folder
    """
    try:
        finished = read_run(Path(folder))
    except FklError as error:
        raise FklError(f"{in_one_line(folder)}: {error}") from None
    return Result(finished.folder.absolute(), finished.config, finished.provenance)
