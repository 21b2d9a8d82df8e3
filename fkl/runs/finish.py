"""The end of a run: its model, warnings, figures and provenance, and the closing table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fkl.basics.errors import in_one_line, plural
from fkl.basics.files import writing
from fkl.conditions import Wrapped
from fkl.config import Run
from fkl.data.baselines import not_beaten
from fkl.data.problem import COMPLETE
from fkl.engines.divergence import worse_than_zero
from fkl.engines.experiment import Experiment
from fkl.kernels.dictionary import AroundMedian
from fkl.runs import folder as results
from fkl.runs.model import FILE as MODEL
from fkl.runs.model import Model
from fkl.runs.tables import LOSSES, Tables

SAMPLES = 1000
"""Samples that tell whether a feature hides the others."""
ALL_OF_NORM = 0.99


def finish(run: Run, experiment: Experiment, tables: Tables, folder: Path) -> None:
    """Complete the folder of a run after its rounds, and move it to its place."""
    title, summary = title_of(run), results.read_summary(folder)
    # Entries of provenance.json about the run itself
    problem = experiment.problem
    own = hasattr(run.dataset, "reading")  # a table of the user's own
    notes: dict[str, Any] = {
        **about(run),
        "sizes": experiment.task.describe(),
        "rounds": tables.curves.mean.shape[1],
        "clients": problem.clients,
        "features": problem.dimension,
        "rows_left_out": problem.rows_left_out + getattr(problem, "incomplete", COMPLETE).rows,
        "scaling_from": "training rows" if own and not experiment.task.judged_as_it_learns else "all rows",
        "threads": run.settings.threads,
        "scalars_by_kind": tables.kinds,
    }
    if isinstance(run.kernels, AroundMedian):
        notes["bandwidths"] = experiment.dictionary.bandwidths.tolist()
    if (graph := experiment.topology) is not None:
        notes["topology"] = {
            "agents": graph.agents,
            "edges": graph.edges,
            "spectral_gap": graph.spectral_gap,
            "links": graph.listed.tolist(),
        }
    notes |= experiment.engine.notes()
    # Warnings about numbers that are finite but not a valid result
    warnings = [*experiment.algorithm.warnings(summary)] if isinstance(experiment.algorithm, Wrapped) else []
    if "converged" in summary and summary["converged"].min() < 1:
        warnings.append(
            "the steps ended before the duality gap was as small as asked for, see the columns converged and gap"
        )
    if own and run.settings.scaling == "unit_ball":
        warnings += _hidden_by_one_feature(experiment)
    idle = [why for one in run.conditions.values() if hasattr(one, "idle") and (why := one.idle(problem))]
    warnings += [f"{why}: as without it" for why in idle]
    ways = [f"{way}_bytes" for way in ("uplink", "broadcast", "link") if f"{way}_bytes" in summary]
    alone = experiment.topology is None or run.settings.learners != "federated"
    if ways and not alone and not summary[ways].to_numpy().any():
        warnings.append("nothing was sent in any round: each client learned alone")
    error = next((name for name in ("mse", "train_mse", "test_mse") if name in summary), None)
    if error is not None and (worse := worse_than_zero(experiment.task.targets, summary[error].to_numpy())):
        warnings.append(worse)
    elif above := not_beaten(summary):
        warnings.append(above)
    if run.settings.save_model and len(tables.learned) == run.settings.replicates:
        model = Model.from_experiment(experiment, run.dataset, tables.learned)
        model.save(folder / MODEL)
        warnings = [*of_clients_gone(experiment, model), *warnings]
    if tables.row_losses:
        tables.write_row_losses(folder / LOSSES)
    if warnings:
        notes["warning"] = "; ".join(warnings)
    if run.settings.figures != "none":
        from fkl.report.figures import draw_run, styled  # imports matplotlib, a third of the time of a small run

        with writing(run.folder), styled("paper" if run.settings.figures == "paper" else "screen"):
            of_conditions = experiment.algorithm.panels if isinstance(experiment.algorithm, Wrapped) else {}
            panels = {**experiment.task.panels(), **of_conditions}
            draw_run(folder, tables.curves, summary, run.algo.label, title, panels)
    results.finish(run, folder, notes)


def _hidden_by_one_feature(experiment: Experiment) -> list[str]:
    """A warning where one feature is nearly all of the samples' norm, which hides the others from methods."""
    problem = experiment.problem
    x = problem.x if experiment.task.of_features else experiment.task.sample_rows(SAMPLES)
    squares = np.square(x, dtype=np.float64).sum(axis=0)
    largest, encoder = int(squares.argmax()), problem.encoder
    share = squares[largest] / squares.sum()
    if share <= ALL_OF_NORM or encoder is None or len(squares) < 2:
        return []
    name = in_one_line(encoder.feature_names[largest])
    return [
        f"{name} is {share:.1%} of the features' norm and hides the others; scaling=unit_box gives each the same range"
    ]


def of_clients_gone(experiment: Experiment, model: Model) -> Iterator[str]:
    """Warning about functions of clients that were absent at the end, while the others continued to learn."""
    if not model.personal:
        return
    never = [np.flatnonzero(~one.reached) for one in model.learned]
    if any(map(len, never)):
        clients = ", ".join(sorted({str(k) for some in never for k in some}, key=int))
        yield f"clients {in_one_line(clients)} took part in no round: the model has no function of theirs"
    gone = int((~experiment.problem.present[-1]).sum())
    if gone:
        yield (
            f"{gone} of {plural(experiment.problem.clients, 'client')} had no sample in the last round: in the model "
            "their own part is of the last round they had, what all share of the run's, and the two may not fit"
        )


def title_of(run: Run) -> str:
    """Names of a run on a terminal, and in its figures."""
    return f"{run.algo.label} on {run.dataset.name}"


def about(run: Run) -> dict[str, Any]:
    """Name a run: its data set, its method, and the user's settings."""
    return {"dataset": run.dataset.name, "algorithm": run.algo.label, "words": [*run.words]}
