"""Bandwidths around the median distance: of the samples that may be looked at, and of no others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from fkl.basics.errors import BadValue
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.kernels.dictionary import AroundMedian
from fkl.runs.prepare import prepare_run
from fkl.tasks.batch import BatchTask
from fkl.tasks.stream import StreamTask

RNG = np.random.default_rng(8)


def composed(*words: str):
    """The checked configuration of these words."""
    return load_run(compose_config(*words))


@pytest.mark.parametrize(("family", "metric"), [("rbf", "euclidean"), ("laplacian", "cityblock")])
def test_bandwidths_are_multiples_of_the_median_distance(family: str, metric: str) -> None:
    """At the median distance the kernel of the middle bandwidth is exp(-1/2), or exp(-1)."""
    x = RNG.normal(size=(40, 3))
    median = np.median(pdist(x, metric))
    found = AroundMedian(family=family, N=3, smallest=0.5, largest=2.0).fitted(np.concatenate([x, x[:1]]))
    doubled = np.concatenate([pdist(x, metric), pdist(x, metric)[:39]])  # distances to the row that is there twice
    assert found.bandwidths == pytest.approx(np.median(doubled) * np.array([0.5, 1, 2]))
    found = AroundMedian(family=family, N=3, smallest=0.5, largest=2.0).fitted(x)
    apart = np.array([[0.0, 0.0, 0.0], [median, 0.0, 0.0]])
    assert found.gram(1, apart, apart)[0, 1] == pytest.approx(np.exp(-0.5 if family == "rbf" else -1))


def test_nothing_is_seen_that_comes_later() -> None:
    """Targets, later rounds of a stream, and samples that are tested on change no bandwidth."""
    run = composed("dataset=diabetes", "kernels=auto", "kernels.samples=40", "kernels.N=3")
    experiment = prepare_run(run)
    stream = experiment.problem
    x = stream.x.copy()
    x[10:] = 7  # 40 samples of 4 clients are 10 rounds
    others = StreamTask(replace(stream, x=x, y=stream.y + 1)).sample_rows(40)
    assert np.array_equal(others, stream.x[:10].reshape(40, -1))
    assert run.kernels.fitted(others) == experiment.dictionary
    batch = prepare_run(composed("dataset=diabetes", "algo=cta", "topology=ring", "kernels=auto", "kernels.N=1",
                             "kernels.smallest=1", "kernels.largest=1")).problem  # fmt: skip
    x = np.where(batch.training[:, None], batch.x, 7)
    looked_at = BatchTask(replace(batch, x=x)).sample_rows(50)
    assert np.array_equal(looked_at, BatchTask(batch).sample_rows(50))
    assert 40 <= len(looked_at) <= 50


def test_odd_samples_have_bandwidths_and_odd_keys_are_refused() -> None:
    """Samples that are all alike, or hardly apart, or very far."""
    assert AroundMedian().fitted(np.ones((3, 2))) == AroundMedian().fitted(np.ones((1, 2)))
    for far in (1e-200, 1e200):
        assert np.isfinite(AroundMedian().fitted(np.array([[0.0], [far]])).scales).all()
    for keys in ({"family": "polynomial"}, {"laplacians": 2}, {"bandwidth_convention": "variance"}, {"samples": 1}):
        with pytest.raises(BadValue):
            AroundMedian(**keys)  # type: ignore[arg-type]


def test_an_algorithm_keeps_the_kernels_that_it_brings() -> None:
    """The data set of a file brings kernels and a partition; algorithms have the last word."""
    own = ("dataset=file", "dataset.path=none.csv", "dataset.target=y")
    assert isinstance(composed(*own).kernels, AroundMedian)
    assert composed(*own, "algo=raker").kernels == composed("algo=raker").kernels
    parties = composed(*own, "algo=libsvm")
    assert parties.kernels is None
    assert type(parties.partition).__name__ == "FeatureGroups"
