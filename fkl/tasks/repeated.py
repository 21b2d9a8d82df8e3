"""A batch for every replicate, each with its own split, for methods that learn once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from fkl.basics.arrays import Array
from fkl.basics.errors import BrokenPromiseError, FklError
from fkl.basics.memory import count_bytes, require_memory
from fkl.basics.random_streams import Role, Streams, shared_generator
from fkl.config.loading import Run
from fkl.contract.star import Fitted
from fkl.contract.world import Algorithm, World
from fkl.data.baselines import best_constant_errors
from fkl.data.encoder import Encoder
from fkl.data.problem import Batch, PerReplicate, Scale
from fkl.kernels.threads import largest_threads
from fkl.screen.messages import show_messages
from fkl.tasks.batch import PARTS, SHARES, drawn_batch, sample_counts, with_other_tests
from fkl.tasks.task import (
    Books,
    Panel,
    Probe,
    RowLosses,
    Task,
    has_drawn_samples,
    other_values,
    overrides_for_keys,
    read_table,
    read_table_anew,
    require_number,
)

CLASSES = ("dataset=ellipses", "dataset.rows=90", "scaling=none")
"""Settings for 9 clients with samples of two classes."""
FEW = {"passes": 20, "trees": 20, "steps": 50, "centres": 100}
"""Values of keys that make a method fast, if it has these keys."""


class PerReplicateTask(Task):
    """Learning functions from a `fkl.data.problem.PerReplicate`; each replicate draws its own simulated samples."""

    of_classes: ClassVar[bool] = True
    judge_counts: ClassVar[bool] = False

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """Split the data for each replicate, from a shared table or from its own."""
        settings = run.settings
        # All replicates share a table, or draw their own
        shared = None if has_drawn_samples(run) else read_table(run, shared_generator(settings.seed, Role.DATA))
        batches: list[Batch] = []
        # Notes of the first replicate are enough
        for generator in Streams(settings.seed, tuple(range(settings.replicates))).generators(Role.DATA):
            with show_messages(results=False, notes=False) if batches else nullcontext():
                table = read_table_anew(run, generator) if shared is None else shared
                batches.append(drawn_batch(run, table, generator))
            if batches[-1].clients != batches[0].clients:
                counts = f"{batches[0].clients} and {batches[-1].clients}"
                raise FklError(f"{run.dataset.name}: replicates have {counts} clients, but need the same number")
            # Refuse splits of all replicates that do not fit, as soon as one shows its size
            if len(batches) == 1:
                rest = settings.replicates - 1
                require_memory(
                    rest * count_bytes(batches[0]), f"a split for each of {rest + 1} replicates", "replicates"
                )
        if not getattr(run.algo, "several_classes", False):
            require_number(run, batches[0].encoder)
        return cls(PerReplicate(tuple(batches)))

    @property
    def amount(self) -> str:
        """Numbers of training and test samples."""
        return sample_counts(self.problem.batches[0])

    def judge(self, world: World, method: Algorithm) -> "FittedJudge":
        """Shares of errors."""
        return FittedJudge(world.problem, world.streams.replicates)

    def encoder(self, replicate: int) -> Encoder | None:
        """The encoder of this replicate."""
        return self.problem.batches[replicate].encoder

    def scales_of_replicates(self, world: World) -> tuple[Scale, ...]:
        """The scale of each replicate."""
        return tuple(self.problem.batches[replicate].scale for replicate in world.streams.replicates)

    def replicates_at_once(self, rehearse: Callable[[], tuple[int, int]]) -> int:
        """One per thread, because replicates share nothing, and their rounds are long."""
        return largest_threads()

    def first_round(self) -> PerReplicate:
        """The problem of one replicate."""
        return replace(self.problem, batches=self.problem.batches[:1])

    def panels(self) -> Mapping[str, Panel]:
        """Shares of errors."""
        return {"error": SHARES}

    @classmethod
    def small_settings(cls, algorithm: type) -> tuple[str, ...]:
        """Settings for 9 clients with two classes."""
        return (*CLASSES, *overrides_for_keys(algorithm, **FEW))

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
        """Predictions for the test samples, and figures."""
        tested = [world.problem.batches[replicate].part(False)[0] for replicate in world.streams.replicates]
        predictions = [predict(x) for predict, x in zip(outcome.predict, tested, strict=True)]
        return {"predictions": predictions, **outcome.figures, **outcome.of_clients}

    def in_doubles(self) -> PerReplicate:
        """The problem itself, unchanged, because these methods always use float64."""
        return self.problem

    def other_samples(self, numbers: np.random.Generator) -> PerReplicate:
        """Other samples for every replicate."""
        return PerReplicate(
            tuple(
                replace(one, x=other_values(one.x, numbers), y=other_values(one.y, numbers))
                for one in self.problem.batches
            )
        )

    def other_targets(self, outcome: Any, numbers: np.random.Generator) -> Iterator[Probe]:
        """Other targets of test samples."""
        batches = tuple(with_other_tests(one, numbers) for one in self.problem.batches)
        yield Probe(PerReplicate(batches), "other targets to be tested on")


class FittedJudge(Books):
    """Judges functions of methods whose replicates have their own samples, on all clients' samples together.

    train_error, test_error
        Share of samples with a wrong predicted class; NaN counts as wrong.
    test_error_majority
        Error on the test samples of predicting the most frequent class of the training samples.
    """

    def __init__(self, problem: PerReplicate, replicates: tuple[int, ...]) -> None:
        self._batches = [problem.batches[replicate] for replicate in replicates]
        super().__init__(problem.rounds, len(replicates))
        self.by_client = {
            name: np.stack([np.bincount(batch.part(training)[2], minlength=batch.clients) for batch in self._batches])
            for name, training in (("training_samples", True), ("test_samples", False))
        }
        learned, tested = ([batch.part(training)[1] for batch in self._batches] for training in (True, False))
        self.at_the_end = best_constant_errors(learned, tested, classes=True)

    def enter(self, t: int, outcome: Fitted) -> bool:
        """Record round t; return whether all figures are finite."""
        # Errors of each replicate on both parts
        wrong = {f"{part}_error": self._is_wrong(outcome, training) for part, training in PARTS}
        errors = {name: np.array([one.mean() if len(one) else np.nan for one in each]) for name, each in wrong.items()}
        for name, values in {**errors, **outcome.figures}.items():
            self.record_values(name, t, values)
        # A user's metrics, and losses of single rows
        if self.metrics:
            tested = [batch.part(False)[:2] for batch in self._batches]
            predictions = [predict(x) for predict, (x, _) in zip(outcome.predict, tested, strict=True)]
            self.book_own(t, [y for _, y in tested], predictions)
        self.by_client.update(outcome.of_clients)
        self.row_losses = [
            RowLosses(batch.row[~batch.training], one.astype(np.float64))
            for batch, one in zip(self._batches, wrong["test_error"], strict=True)
            if batch.row is not None
        ]
        return all(bool(np.isfinite(values).all()) for values in outcome.figures.values())

    def close(self) -> None:
        """Release the samples."""
        self._batches = []

    def _is_wrong(self, outcome: Fitted, training: bool) -> list[Array]:
        """Whether each sample's predicted class is wrong: (n,) bool for each replicate."""
        parts = [batch.part(training)[:2] for batch in self._batches]
        predictions = [predict(x) for predict, (x, _) in zip(outcome.predict, parts, strict=True)]
        for r, (values, (_, y)) in enumerate(zip(predictions, parts, strict=True)):
            if np.shape(values) != y.shape:
                shape = np.shape(values)
                raise BrokenPromiseError(f"Fitted.predict of replicate {r} has shape {shape}, must be (n,) = {y.shape}")
        return [values != y for values, (_, y) in zip(predictions, parts, strict=True)]
