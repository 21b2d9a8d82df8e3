"""Rounds that clients miss: nothing changes where nobody does, and all promises are kept where many do."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from recount import ledger_books_every_message

from fkl.config.compose import compose
from fkl.config.loading import load
from fkl.conformance import Conformance, scenario
from fkl.engines.base import Experiment, make_world
from fkl.engines.rounds import simulate
from fkl.runs.prepare import prepare
from fkl.runs.tables import TIMING_COLUMNS, make_records

SMALL = ("kernels.D=6", "partition.rounds=30", "replicates=3", "precision=float64")
HALF = ("participation=share", "participation.share=0.3")


def made(algo: str, *overrides: str) -> Experiment:
    return prepare(scenario(f"algo={algo}", *SMALL, *overrides))


def tables(given: Experiment, chunk: int | None = None) -> dict[str, pd.DataFrame]:
    records = make_records(given, simulate(given, 1, chunk, lambda _: None))
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore") for name, table in vars(records).items()}


@pytest.mark.parametrize(
    ("algo", "words"), [("pof_mkl", ("share", "share=1")), ("vm_kofl", ("markov", "leave=0"))], ids=str
)
def test_a_run_whose_clients_are_all_there_is_the_plain_run_bit_for_bit(algo: str, words: tuple[str, str]) -> None:
    """Although its replicates are drawn anew, and so run one at a time."""
    plain = tables(made(algo))
    for name, table in tables(made(algo, f"participation={words[0]}", f"participation.{words[1]}")).items():
        pd.testing.assert_frame_equal(table, plain[name], check_exact=True)


@pytest.mark.parametrize("algo", ["em_kofl", "fomd_oms", "pof_mkl"])
def test_parties_on_their_own_miss_the_same_rounds(algo: str) -> None:
    """In a quarter of these 30 rounds none of 4 clients takes part."""
    suite = Conformance.from_overrides(f"algo={algo}", *SMALL, *HALF)
    present = suite.experiment.problem.present
    assert 0.1 < present.mean() < 0.6
    assert (~present.any(axis=1)).sum() > 2
    suite.parties_see_what_they_hold_alone()
    ledger_books_every_message(suite)


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
    given = made("pof_mkl", *HALF)
    assert given.redraw is not None
    drawn = [given.redraw(r)[0].present for r in range(3)]
    assert all((drawn[0] != other).any() for other in drawn[1:])
    whole, chunked = tables(given), tables(given, chunk=3)
    for name, table in whole.items():
        pd.testing.assert_frame_equal(table, chunked[name], check_exact=True)
    rounds = whole["clients"].groupby("replicate")["rounds"].sum()
    assert rounds.tolist() == [present.sum() for present in drawn]


@pytest.mark.parametrize("algo", ["raker", "pooled_svm", "libsvm"])
def test_whose_rounds_nobody_can_miss_is_refused(algo: str) -> None:
    """Learners alone, pooled ones, one-shot methods and those over a vertical partition: by the key, in one line."""
    from fkl.basics.errors import BadValue

    run = load(compose(f"algo={algo}", "participation=share"))
    with pytest.raises(BadValue, match=r"participation=Share: must be null for .*, whose rounds no client can miss"):
        prepare(run)


def test_a_trace_s_file_is_part_of_what_a_run_is(fkl: Callable) -> None:
    """Another file, another folder."""
    words = ("run", "dataset=diabetes", "kernels.D=4", "partition.rounds=20", "replicates=1", "participation=trace")
    digests = set()
    for lines in ("1,0,0", "2,0,0"):
        Path("who.csv").write_text(f"round,client,present\n{lines}\n")
        assert fkl(*words, "participation.path=who.csv").code == 0
        digests |= {folder.name for folder in Path("outputs/runs").iterdir()}
    assert len(digests) == 2
