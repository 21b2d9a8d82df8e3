"""Studies of a truth that we make: how often `fkl study` calls equal methods unequal, and how often it sees an effect.

Each study goes through the real program: searches, runs that are judged on other rows, verdicts. FKL_STUDIES says how
many there are of each kind, `STUDIES` if it is not set.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pytest
from scipy.stats import nct, t

from fkl.statistics.verdicts import BETTER, BEYOND, PairVerdict
from fkl.study.answer import StudyAnswer
from fkl.study.plan import Plan
from fkl.study.results import study_stages

STUDIES = 40
HERE = Path(__file__).parent
METHODS = "{{algo: {method}, name: A{a}}}, {{algo: {method}, name: B, dataset.mirror: true{b}}}"
SOURCES = {"a stream": ("ofskl", "algo.eta: log 0.03..3"), "a batch": ("one_shot_ridge", "algo.lam: log 1e-4..1")}
"""Methods, and what they are tuned over."""
FILE = """
methods: [{methods}]
datasets: [{{dataset: mirrored, number: {number}}}]
config_dir: truth
tune: {{trials: 6, space: {{{space}}}}}
judge: {{seeds: 10}}
set: [partition=iid, partition.clients=5, partition.rounds=50, scaling=none, kernels.D=25, kernels.smallest=1.5]
"""


def verdict_of(number: int, kind: str, a: str, b: str, folder: Path) -> PairVerdict:
    """The verdict of one study, on one data set of the source, whose files are deleted again."""
    mine = folder / str(number)
    copytree(HERE / "truth", mine / "truth")
    method, space = SOURCES[kind]
    file = mine / "study.yaml"
    file.write_text(FILE.format(methods=METHODS.format(method=method, a=a, b=b), number=number, space=space))
    plan = Plan.read(file)
    for _, jobs in study_stages(plan, plan.datasets[0]):
        for job in jobs:
            job.do_job()
    [one] = StudyAnswer.compare_ended(plan).verdicts[plan.datasets[0].name]
    rmtree(mine)
    return one


def find_own_data() -> None:
    """Let a worker import the data set."""
    sys.path.insert(0, str(HERE))


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), find_own_data) as workers:
        yield workers


def studies(pool: ProcessPoolExecutor, kind: str, folder: Path, a: str = "", b: str = "") -> list[PairVerdict]:
    number = int(os.environ.get("FKL_STUDIES", STUDIES))
    return [*pool.map(partial(verdict_of, kind=kind, a=a, b=b, folder=folder), range(number))]


def rate(said: list[bool], expected: float, record: pytest.FixtureRequest) -> tuple[float, float]:
    """The share that is true, and three standard errors of the expected one."""
    share = float(np.mean(said))
    print(f"{record.node.name}: {share:.3f} of {len(said)} studies")
    return share, 3 * np.sqrt(expected * (1 - expected) / len(said))


def has_won(one: PairVerdict, method: str) -> bool:
    return one.outcome in (BETTER, BEYOND) and one.better == method


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_equal_methods_are_seldom_called_unequal(
    kind: str, pool: ProcessPoolExecutor, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = studies(pool, kind, tmp_path)
    share, around = rate([has_won(one, "A") or has_won(one, "B") for one in found], 0.05, request)
    assert share <= 0.05 + around


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_an_effect_is_seen_as_often_as_was_foretold(
    kind: str, pool: ProcessPoolExecutor, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = studies(pool, kind, tmp_path, b=", dataset.blur: 0.4")
    effect = np.mean([one.difference.m for one in found])
    foretold = np.mean([_power(effect, one.difference.V, one.difference.nu) for one in found])
    share, around = rate([has_won(one, "A") for one in found], foretold, request)
    assert share >= foretold - around
    assert not any(has_won(one, "B") for one in found[:STUDIES])


def _power(effect: float, V: float, nu: float) -> float:
    quantile, ncp = t.ppf(0.975, nu), abs(effect) / np.sqrt(V)
    return float(nct.sf(quantile, nu, ncp) + nct.cdf(-quantile, nu, ncp))
