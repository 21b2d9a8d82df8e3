"""Who gets which row: nobody twice, everybody enough, and nothing lost from the count."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import BadValue, FklError
from fkl.data.partition import BySite, ByTarget, Dirichlet, Iid, QuantitySkew, Sites
from fkl.data.problem import Batch, Table


def table(rows, sites=1):
    """Make a table of numbered rows: the feature is the row number plus 1, so that 0 in a Problem is padding."""
    number = np.arange(rows, dtype=float)
    site = np.arange(rows) * sites // rows
    target = np.sin(number * 12.9898 + 1)
    return Table(number[:, None] + 1, target, site, ("number",), tuple(f"s{i}" for i in range(sites)))


def given_rows(problem, source):
    """Numbers of the rows given out, after checking that targets came along with their features."""
    rows = problem.x[:, :, 0][problem.present].astype(int) - 1
    assert np.array_equal(problem.y[problem.present], source.y[rows])
    return rows


def check(problem, source, clients, rounds):
    rows = given_rows(problem, source)
    assert problem.x.shape == (rounds, clients, 1)
    assert problem.y.shape == problem.present.shape == (rounds, clients)
    assert len(set(rows)) == len(rows)
    assert problem.rows_left_out == len(source.y) - len(rows)
    for client in range(clients):
        mine = source.site[problem.x[problem.present[:, client], client, 0].astype(int) - 1]
        assert (mine == problem.site[client]).sum() == np.bincount(mine).max()


SIZES = {
    "clients": st.integers(1, 7),
    "rounds": st.integers(1, 9),
    "spare": st.integers(0, 20),
    "seed": st.integers(0, 9),
}


@given(**SIZES, order=st.sampled_from(["consecutive", "shuffled"]), sites=st.integers(1, 3))
def test_iid(clients, rounds, spare, seed, order, sites):
    source = table(clients * rounds + spare, sites)
    problem = Iid(clients, rounds, order).split(source, np.random.default_rng(seed))
    check(problem, source, clients, rounds)
    assert problem.present.all()
    assert problem.rows_left_out == spare


def test_iid_consecutive_keeps_the_order_of_the_file():
    problem = Iid(clients=3, rounds=4).split(table(13), np.random.default_rng(0))
    assert problem.x[:, :, 0].T.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]


@given(clients=st.integers(1, 7), spare=st.integers(0, 20), order=st.sampled_from(["consecutive", "shuffled"]))
def test_iid_without_rounds_shares_out_all_rows(clients, spare, order):
    source = table(clients + spare)
    problem = Iid(clients, None, order).split(source, np.random.default_rng(0))
    check(problem, source, clients, (clients + spare) // clients)
    assert problem.rows_left_out == (clients + spare) % clients


def test_one_client_without_rounds_is_the_stream_of_the_file():
    problem = Iid(1, None).split(table(13), np.random.default_rng(0))
    assert problem.x[:, 0, 0].tolist() == list(range(1, 14))


def test_iid_shuffled_draws_from_all_rows():
    problem = Iid(clients=2, rounds=50, order="shuffled").split(table(1000), np.random.default_rng(0))
    assert problem.x.max() > 800
    assert (np.diff(problem.x[:, 0, 0]) < 0).any()


@given(**SIZES, alpha=st.sampled_from([0.001, 0.5, 100.0, 1e6]), quantiles=st.integers(1, 5))
def test_dirichlet(clients, rounds, spare, seed, alpha, quantiles):
    source = table(clients * rounds + spare + 5)
    problem = Dirichlet(clients, rounds, alpha, quantiles).split(source, np.random.default_rng(seed))
    check(problem, source, clients, rounds)
    assert problem.present.all()


def test_dirichlet_alpha_sets_how_much_clients_differ():
    source = table(20000)
    spread = []
    for alpha in (0.01, 1.0, 1e6):
        problem = Dirichlet(10, 100, alpha).split(source, np.random.default_rng(0))
        spread.append(problem.y.mean(axis=0).std())
    assert spread[0] > 1.5 * spread[1] > 4 * spread[2]


def test_dirichlet_gives_each_client_its_rows_in_random_order():
    problem = Dirichlet(1, 100, alpha=1e6).split(table(1000), np.random.default_rng(0))
    assert problem.y[:20].min() < -0.5
    assert problem.y[:20].max() > 0.5


@given(**SIZES, mixed=st.sampled_from([0.0, 0.2, 0.75, 1.0]))
def test_by_target(clients, rounds, spare, seed, mixed):
    source = table(clients * rounds + spare)
    problem = ByTarget(clients, rounds, mixed).split(source, np.random.default_rng(seed))
    check(problem, source, clients, rounds)
    assert problem.present.all()


def test_by_target_gives_what_is_far_from_the_middle_to_the_first_clients():
    """Apart from the share that is mixed: a client's targets are all farther than those of the next."""
    source = table(1000)
    middle = (source.y.min() + source.y.max()) / 2
    far = np.abs(ByTarget(10, None, 0.0).split(source, np.random.default_rng(0)).y - middle)
    assert (far.min(axis=0)[:-1] >= far.max(axis=0)[1:]).all()
    mixed = np.abs(ByTarget(10, None, 0.2).split(source, np.random.default_rng(0)).y - middle)
    assert mixed[:, -1].max() > far[:, -1].max()
    alike = np.abs(ByTarget(10, None, 1.0).split(source, np.random.default_rng(0)).y - middle).mean(axis=0)
    assert np.ptp(alike) < 0.2 < np.ptp(far.mean(axis=0))


@given(**SIZES, alpha=st.sampled_from([0.001, 0.5, 100.0, 1e6]))
def test_quantity_skew(clients, rounds, spare, seed, alpha):
    source = table(clients * (rounds + 1) + spare)
    problem = QuantitySkew(clients, rounds, alpha).split(source, np.random.default_rng(seed))
    check(problem, source, clients, rounds)
    counts = problem.present.sum(axis=0)
    assert counts.max() == rounds
    assert counts.min() >= 1
    assert (np.diff(problem.present.astype(int), axis=0) <= 0).all()  # gone is gone
    assert (problem.x[~problem.present] == 0).all()
    assert (problem.y[~problem.present] == 0).all()


def test_quantity_skew_alpha_sets_how_unequal_clients_are():
    unequal, equal = (
        QuantitySkew(20, 100, alpha).split(table(5000), np.random.default_rng(0)).present.sum(axis=0)
        for alpha in (0.5, 1e6)
    )
    assert equal.min() >= 98
    assert unequal.min() < 10


def test_quantity_skew_names_a_number_of_rounds_that_is_enough():
    source = table(100)
    with pytest.raises(BadValue) as caught:
        QuantitySkew(10, 100, 5.0).split(source, np.random.default_rng(3))
    most = int(caught.value.allowed.split()[2])
    assert caught.value.key == "rounds"
    assert most > 1
    problem = QuantitySkew(10, most, 5.0).split(source, np.random.default_rng(3))
    check(problem, source, 10, most)


@given(
    clients_per_site=st.integers(1, 4),
    sites=st.integers(2, 4),
    own=st.integers(1, 6),
    other=st.integers(0, 2),
    spare=st.integers(0, 5),
    seed=st.integers(0, 9),
)
def test_by_site(clients_per_site, sites, own, other, spare, seed):
    rounds = own + other * (sites - 1)
    source = table(sites * (clients_per_site * rounds + spare), sites)
    problem = BySite(clients_per_site, own, other).split(source, np.random.default_rng(seed))
    rows = given_rows(problem, source)
    assert problem.x.shape == (rounds, sites * clients_per_site, 1)
    assert problem.present.all()
    assert len(set(rows)) == len(rows)
    assert problem.rows_left_out == sites * spare
    per_client = np.sort(problem.x[:, :, 0].astype(int) - 1, axis=0).T
    for client, mine in enumerate(per_client):
        home = client // clients_per_site
        counts = np.bincount(source.site[mine], minlength=sites)
        assert counts[home] == own
        assert (np.delete(counts, home) == other).all()
        for site in range(sites):  # consecutive before the shuffle
            assert (np.diff(mine[source.site[mine] == site]) == 1).all()


def test_by_site_shuffles_over_the_rounds_and_knows_the_home():
    problem = BySite(2, own=30, other=10).split(table(4 * 120, sites=4), np.random.default_rng(0))
    assert problem.site.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    sites = (problem.x[:, 0, 0] - 1) // 120
    assert len(set(sites[:20])) > 1


def test_by_site_needs_sites():
    with pytest.raises(FklError, match="one site only; use partition=iid"):
        BySite().split(table(10000), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("partition", "source", "key", "allowed"),
    [
        (Iid(3, 10), table(29), "clients", "at most 2 "),
        (Iid(1, 30), table(29), "rounds", "at most 29"),
        (Iid(30, None), table(29), "clients", "at most 29 "),
        (Dirichlet(3, 10), table(29), "clients", "at most 2 "),
        (Dirichlet(2, 10, quantiles=30), table(29), "quantiles", "at most 29"),
        (ByTarget(30, 1), table(29), "clients", "at most 29"),
        (QuantitySkew(30, 1), table(29), "clients", "at most 29"),
        (BySite(3, own=5, other=5), table(58, sites=2), "clients_per_site", "at most 2 "),
    ],
)
def test_more_than_the_data_set_has_is_refused(partition, source, key, allowed):
    with pytest.raises(BadValue, match=allowed) as caught:
        partition.split(source, np.random.default_rng(0))
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Iid(clients=0), "clients"),
        (lambda: Iid(clients=0, rounds=None), "clients"),
        (lambda: Iid(rounds=0), "rounds"),
        (lambda: Iid(order="random"), "order"),
        (lambda: BySite(clients_per_site=0), "clients_per_site"),
        (lambda: BySite(own=0), "own"),
        (lambda: BySite(other=-1), "other"),
        (lambda: Dirichlet(alpha=0.0), "alpha"),
        (lambda: Dirichlet(quantiles=0), "quantiles"),
        (lambda: QuantitySkew(alpha=float("nan")), "alpha"),
        (lambda: ByTarget(mixed=1.5), "mixed"),
    ],
)
def test_values_that_cannot_be_are_refused(make, key):
    with pytest.raises(BadValue) as caught:
        make()
    assert caught.value.key == key


def test_even_and_odd_rows_are_all_rows() -> None:
    """Every row is of one part, neighbours mostly of the same; what stands beside the rows goes with them."""
    random = np.random.default_rng(5)
    y = np.arange(230.0)
    table = replace(Table.of_one_site(random.random((230, 3)), y, ("a", "b", "c")), tested=y > 7, expected=2 * y)
    even, odd = table.part("even"), table.part("odd")
    assert sorted([*even.y, *odd.y]) == y.tolist()
    assert odd.y.tolist() == [*range(50, 100), *range(150, 200)]
    for part in (even, odd):
        assert (part.x == table.x[part.y.astype(int)]).all()
        assert (part.expected == 2 * part.y).all() and (part.tested == (part.y > 7)).all()
    assert table.part("all") is table
    with pytest.raises(BadValue, match="rows=odd: must be all or even"):
        even.part("even").part("even").part("odd")


@pytest.mark.parametrize("share", [0.3, 0.25, 0.0])
def test_batches_are_tested_on_what_streams_predict_last(share):
    """The last rounds of every client, in their order, absent ones not counted."""
    random = np.random.default_rng(2)
    problem = Iid(clients=3, rounds=20, order="shuffled").split(table(60), random)
    present = problem.present.copy()
    present[15:, 1] = False
    problem = replace(problem, present=present)
    batch = Batch.from_problem(problem.testing_last(share), 1, share, None, random)
    _, y, client = batch.part(training=False)
    for k in range(3):
        mine = problem.y[present[:, k], k]
        tested = round(share * len(mine))
        assert sorted(y[client == k]) == sorted(mine[len(mine) - tested :])


def test_a_site_without_rows_is_no_client():
    """As in rows=even of a table with few rows for each site; the others keep their names."""
    source = table(12, 4)
    some = source.site != 1
    source = replace(source, x=source.x[some], y=source.y[some], site=source.site[some])
    problem = Sites().split(source, np.random.default_rng(0))
    assert problem.x.shape == (3, 3, 1) and problem.present.all()
    assert [problem.site_names[site] for site in problem.site] == ["s0", "s2", "s3"]
