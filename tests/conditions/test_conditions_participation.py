"""Rounds that clients miss: nothing changes where nobody does, and all promises are kept where many do."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from fkl.conformance import Conformance, quick_run
from fkl.engines.base import Experiment, make_world
from fkl.runs.prepare import prepare_run

SMALL = ("kernels.D=6", "partition.rounds=30", "replicates=3", "precision=float64")
HALF = ("participation=share", "participation.share=0.3")


def made(algo: str, *overrides: str) -> Experiment:
    return prepare_run(quick_run(f"algo={algo}", *SMALL, *overrides))


@pytest.mark.parametrize("algo", ["em_kofl", "fomd_oms", "perfedavg", "pof_mkl", "scaffold"])
def test_nothing_is_sent_or_learned_in_a_round_without_clients(algo: str) -> None:
    given = made(algo, *HALF)
    assert given.redraw is not None
    world, ledger = make_world(given, (1,))
    present, method = world.problem.present, given.algorithm
    state = method.init(world)
    empty = 0
    for t in range(world.problem.rounds):
        world.channel.open_round(t, present[t])
        before = repr(state.server)
        state, _ = method.step(world, state, t)
        if not present[t].any():
            empty += 1
            assert repr(state.server) == before
            assert all((tally.by_round[t] == 0).all() for tally in ledger.tallies.values())
    assert empty > 2
    assert method.silent or (ledger.tallies["downlink"].by_client[0, :, 0] >= present.sum(axis=0)).all()


def test_every_replicate_has_absences_of_its_own_whatever_runs_with_it() -> None:
    suite = Conformance(made("pof_mkl", *HALF))
    assert suite.experiment.redraw is not None
    drawn = [suite.experiment.redraw(r)[0].present for r in range(3)]
    assert all((drawn[0] != other).any() for other in drawn[1:])
    suite.threads_and_chunks_do_not_matter()
    rounds = pd.read_csv(StringIO(suite.tables["clients"])).groupby("replicate")["rounds"].sum()
    assert rounds.tolist() == [present.sum() for present in drawn]


def test_a_trace_s_file_is_part_of_what_a_run_is(fkl: Callable) -> None:
    """Another file, another folder."""
    words = ("run", "dataset=diabetes", "kernels.D=4", "partition.rounds=20", "replicates=1", "participation=trace")
    digests = set()
    for lines in ("1,0,0", "2,0,0"):
        Path("who.csv").write_text(f"round,client,present\n{lines}\n")
        assert fkl(*words, "participation.path=who.csv").code == 0
        digests |= {folder.name for folder in Path("outputs/runs").iterdir()}
    assert len(digests) == 2
