"""Who takes part: only clients that are there, as often as the words say, and what a trace says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import BadValue, FklError
from fkl.network.participation import Dropout, Markov, Schedule, Share, Trace

MANY = 4.0
"""Standard errors that a mean over many draws may be off."""
KINDS = st.one_of(
    st.builds(Share, st.floats(0.01, 1)),
    st.builds(Markov, st.floats(0, 1), st.floats(0.01, 1)),
    st.builds(Schedule, st.just(1), st.integers(1, 9)),
    st.builds(Dropout, st.floats(0, 1)),
)


def everyone(T: int, K: int) -> Any:
    return np.ones((T, K), np.bool_)


@given(KINDS, st.integers(1, 12), st.integers(1, 6), st.integers(0, 9), st.floats(0, 1))
def test_clients_are_only_taken_away_and_the_draw_repeats(kind: Any, T: int, K: int, seed: int, there: float) -> None:
    """Whoever has no sample never takes part; who takes part does not depend on who has one."""
    present = np.random.default_rng(seed).random((T, K)) < there
    before = present.copy()
    found, again, of_all = (
        kind.present(given_, np.random.default_rng(seed)) for given_ in (present, present, everyone(T, K))
    )
    assert (found <= present).all()
    assert (found == again).all()
    assert (found == (of_all & present)).all()
    assert (present == before).all()


@pytest.mark.parametrize("kind", [Share(1), Markov(0, 0.3), Schedule(5, 2), Dropout(0)], ids=str)
def test_limiting_cases_leave_everyone(kind: Any) -> None:
    assert kind.present(everyone(50, 5), np.random.default_rng(1)).all()


def test_a_share_is_the_probability_and_the_mean_over_who_answers_is_unbiased() -> None:
    """The oracle of federated averaging: over many rounds, the mean over who takes part is the mean over all."""
    values, T = np.array([1.0, 5.0, -2.0, 0.5, 9.0]), 40_000
    taking_part = Share(0.4).present(everyone(T, 5), np.random.default_rng(3))
    error = np.sqrt(0.4 * 0.6 / T)
    assert taking_part.mean(axis=0) == pytest.approx(np.full(5, 0.4), abs=MANY * error)
    count = taking_part.sum(axis=1)
    means = (taking_part @ values)[count > 0] / count[count > 0]
    assert means.mean() == pytest.approx(values.mean(), abs=MANY * means.std() / np.sqrt(len(means)))
    assert (count == 0).mean() == pytest.approx(0.6**5, abs=MANY * np.sqrt(0.6**5 / T))


@pytest.mark.parametrize(("leave", "back"), [(0.1, 0.3), (1.0, 1.0)])
def test_a_chain_starts_and_stays_stationary(leave: float, back: float) -> None:
    """By round over many clients: the share back / (leave + back), also in the first; absences last 1 / back."""
    K, chain = 20_000, Markov(leave, back)
    state = chain.present(everyone(30, K), np.random.default_rng(5))
    expected = back / (leave + back)
    error = np.sqrt(expected * (1 - expected) / K)
    for t in (0, 1, 29):
        assert state[t].mean() == pytest.approx(expected, abs=MANY * error)
    away = ~state[:-1]
    returned = (away & state[1:]).sum() / away.sum()
    assert returned == pytest.approx(back, abs=MANY * np.sqrt(back * (1 - back) / away.sum()) + 1e-12)


def test_a_schedule_goes_round() -> None:
    state = Schedule(clients=2, period=3).present(everyone(9, 5), np.random.default_rng(0))
    assert [np.flatnonzero(row).tolist() for row in state[::3]] == [[0, 1], [2, 3], [0, 4]]
    assert (state.reshape(3, 3, 5) == state[::3][:, None]).all()
    with pytest.raises(BadValue, match="clients=6: must be an integer from 1 to 5, the number"):
        Schedule(clients=6).present(everyone(2, 5), np.random.default_rng(0))


def test_who_drops_out_never_comes_back() -> None:
    gone = [Dropout(0.5).present(everyone(20, 10), np.random.default_rng(seed)) for seed in range(200)]
    for state in gone:
        assert state[0].all()
        assert (np.diff(state.astype(int), axis=0) <= 0).all()
        assert (~state[-1]).sum() == 5
    last = np.concatenate([state.sum(axis=0)[~state[-1]] for state in gone])
    assert set(last) == set(range(1, 20)), "any round from the second on"
    assert Dropout(1.0).present(everyone(1, 3), np.random.default_rng(0)).all(), "one round, in which all are there"


HEADER = "round,client,present\n"


def trace(folder: Path, text: str) -> Trace:
    file = folder / "who.csv"
    file.write_text(text)
    return Trace(str(file))


def test_a_trace_is_what_its_lines_say(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    state = rng.random((4, 3)) < 0.5
    lines = [f"{t + 1},{k},{int(state[t, k])}" for t, k in rng.permutation(list(np.ndindex(4, 3)))]
    whole = trace(tmp_path, HEADER + "\r\n".join([*lines, ""]))
    assert (whole.present(everyone(4, 3), rng) == state).all()
    known = whole.fingerprint
    part = trace(tmp_path, HEADER + "2,1,0\n\n")
    assert np.argwhere(~part.present(everyone(4, 3), rng)).tolist() == [[1, 1]]
    assert part.fingerprint != known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: '' is not round,client,present"),
        (HEADER + "1,0\n", "line 2: 2 columns where 3 are expected"),
        (HEADER + "1,0,1\n0,0,1\n", "line 3, column round: '0' is not an integer from 1 to 4"),
        (HEADER + "1,3,1\n", "line 2, column client: '3' is not an integer from 0 to 2"),
        (HEADER + "1,1,yes\n", "line 2, column present: 'yes' is not an integer from 0 to 1"),
        (HEADER + "1,1,1\n1,1,0\n", "line 3: round 1 of client 1 is already in line 2"),
    ],
)
def test_what_a_trace_may_not_have_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FklError) as refused:
        trace(tmp_path, text).present(everyone(4, 3), np.random.default_rng(0))
    assert str(refused.value) == f"{tmp_path / 'who.csv'}, {said}"
