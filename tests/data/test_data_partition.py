"""Who gets which row: nobody twice, everybody enough, and nothing lost from the count."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import BadValue, FklError
from fkl.data.partition import Blocks, BySite, ByTarget, Dirichlet, Iid, QuantitySkew, Sites
from fkl.data.problem import Batch, Table

RNG = np.random.default_rng


def table(rows, sites=1):
    """Make a table of numbered rows: the feature is the row number plus 1, so that 0 in a Problem is padding."""
    number = np.arange(rows, dtype=float)
    target = np.sin(number * 12.9898 + 1)
    site = np.arange(rows) * sites // rows
    return Table(number[:, None] + 1, target, site, ("number",), tuple(f"s{i}" for i in range(sites)))


SIZES = {"clients": st.integers(1, 7), "rounds": st.integers(1, 9), "spare": st.integers(0, 20)}
EQUAL = [
    lambda clients, rounds: Iid(clients, rounds),
    lambda clients, rounds: Blocks(clients, rounds),
    lambda clients, rounds: Dirichlet(clients, rounds, 0.001, 2),
    lambda clients, rounds: Dirichlet(clients, rounds, 1e6, 5),
    lambda clients, rounds: ByTarget(clients, rounds, 0.2),
    lambda clients, rounds: QuantitySkew(clients, rounds, 0.5),
]


@given(**SIZES, make=st.sampled_from(EQUAL), sites=st.integers(1, 3), seed=st.integers(0, 9))
def test_no_row_is_dealt_twice_and_what_is_left_out_is_counted(clients, rounds, spare, make, sites, seed):
    source, partition = table(clients * (rounds + 1) + spare + 5, sites), make(clients, rounds)
    problem = partition.split(source, RNG(seed))
    assert problem.x.shape == (rounds, clients, 1)
    rows = problem.x[problem.present][:, 0].astype(int) - 1
    assert np.array_equal(problem.y[problem.present], source.y[rows])  # targets come along with their features
    assert len(set(rows)) == len(rows)
    assert problem.rows_left_out == len(source.y) - len(rows)
    for client in range(clients):
        mine = source.site[problem.x[problem.present[:, client], client, 0].astype(int) - 1]
        assert (mine == problem.site[client]).sum() == np.bincount(mine).max()
    if isinstance(partition, QuantitySkew):
        counts = problem.present.sum(axis=0)
        assert (counts.min() >= 1) and (counts.max() == rounds)
        assert (np.diff(problem.present.astype(int), axis=0) <= 0).all()  # gone is gone
        assert not problem.x[~problem.present].any() and not problem.y[~problem.present].any()
    else:
        assert problem.present.all()


def test_blocks_keep_the_order_of_the_file_and_iid_draws_from_all_rows():
    problem = Blocks(clients=3, rounds=4).split(table(13), RNG(0))
    assert problem.x[:, :, 0].T.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert Blocks(1, None).split(table(13), RNG(0)).x[:, 0, 0].tolist() == list(range(1, 14))
    shared = Blocks(3, None).split(table(13), RNG(0))
    assert (shared.rounds, shared.rows_left_out) == (4, 1)
    problem = Iid(clients=2, rounds=50).split(table(1000), RNG(0))
    assert problem.x.max() > 800 and (np.diff(problem.x[:, 0, 0]) < 0).any()


def test_dirichlet_alpha_sets_how_much_clients_differ():
    means = [Dirichlet(10, 100, alpha).split(table(20000), RNG(0)).y.mean(axis=0) for alpha in (0.01, 1.0, 1e6)]
    spread = [mean.std() for mean in means]
    assert spread[0] > 1.5 * spread[1] > 4 * spread[2]
    problem = Dirichlet(1, 100, alpha=1e6).split(table(1000), RNG(0))
    assert problem.y[:20].min() < -0.5 and problem.y[:20].max() > 0.5  # in random order


def test_by_target_gives_what_is_far_from_the_middle_to_the_first_clients():
    """Apart from the share that is mixed: a client's targets are all farther than those of the next."""
    source = table(1000)
    middle = (source.y.min() + source.y.max()) / 2
    far, mixed, alike = (
        np.abs(ByTarget(10, None, share).split(source, RNG(0)).y - middle) for share in (0.0, 0.2, 1.0)
    )
    assert (far.min(axis=0)[:-1] >= far.max(axis=0)[1:]).all()
    assert mixed[:, -1].max() > far[:, -1].max()
    assert np.ptp(alike.mean(axis=0)) < 0.2 < np.ptp(far.mean(axis=0))


def test_quantity_skew_alpha_sets_how_unequal_clients_are():
    equal, unequal = (
        QuantitySkew(20, 100, alpha).split(table(5000), RNG(0)).present.sum(axis=0) for alpha in (1e6, 0.5)
    )
    assert equal.min() >= 98 and unequal.min() < 10


@given(
    per_site=st.integers(1, 4), sites=st.integers(2, 4), own=st.integers(1, 6), other=st.integers(0, 2),
    spare=st.integers(0, 5), seed=st.integers(0, 9),
)  # fmt: skip
def test_by_site_each_client_has_its_own_rows_and_some_of_each_other_site(per_site, sites, own, other, spare, seed):
    rounds = own + other * (sites - 1)
    source = table(sites * (per_site * rounds + spare), sites)
    problem = BySite(per_site, own, other).split(source, RNG(seed))
    assert problem.x.shape == (rounds, sites * per_site, 1)
    assert problem.rows_left_out == sites * spare and len(np.unique(problem.x)) == problem.x.size
    for client, mine in enumerate(np.sort(problem.x[:, :, 0].astype(int) - 1, axis=0).T):
        counts = np.bincount(source.site[mine], minlength=sites)
        assert counts[client // per_site] == own
        assert (np.delete(counts, client // per_site) == other).all()
        for site in range(sites):  # consecutive before the shuffle
            assert (np.diff(mine[source.site[mine] == site]) == 1).all()


def test_by_site_shuffles_over_the_rounds_and_knows_the_home():
    problem = BySite(2, own=30, other=10).split(table(4 * 120, sites=4), RNG(0))
    assert problem.site.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(set((problem.x[:20, 0, 0] - 1) // 120)) > 1
    with pytest.raises(FklError, match="one site only; use partition=iid"):
        BySite().split(table(10000), RNG(0))
    with pytest.raises(BadValue, match="at most 2 "):
        Iid(3, 10).split(table(29), RNG(0))


def test_even_and_odd_rows_are_all_rows() -> None:
    """Every row is of one part, neighbours mostly of the same; what stands beside the rows goes with them."""
    y = np.arange(230.0)
    table = replace(Table.of_one_site(RNG(5).random((230, 3)), y, ("a", "b", "c")), tested=y > 7, expected=2 * y)
    even, odd = table.part("even"), table.part("odd")
    assert sorted([*even.y, *odd.y]) == y.tolist()
    assert odd.y.tolist() == [*range(50, 100), *range(150, 200)]
    for part in (even, odd):
        assert (part.x == table.x[part.y.astype(int)]).all()
        assert (part.expected == 2 * part.y).all() and (part.tested == (part.y > 7)).all()


@pytest.mark.parametrize("share", [0.3, 0.0])
def test_batches_are_tested_on_what_streams_predict_last(share):
    """The last rounds of every client, in their order, absent ones not counted."""
    problem = Iid(clients=3, rounds=20).split(table(60), RNG(2))
    present = problem.present.copy()
    present[15:, 1] = False
    problem = replace(problem, present=present)
    batch = Batch.from_problem(problem.testing_last(share), 1, share, None, RNG(2))
    _, y, client = batch.part(training=False)
    for k in range(3):
        mine = problem.y[present[:, k], k]
        assert sorted(y[client == k]) == sorted(mine[len(mine) - round(share * len(mine)) :])


def test_a_site_without_rows_is_no_client():
    """As in rows=even of a table with few rows for each site; the others keep their names."""
    source = table(12, 4)
    some = source.site != 1
    problem = Sites().split(replace(source, x=source.x[some], y=source.y[some], site=source.site[some]), RNG(0))
    assert problem.x.shape == (3, 3, 1) and problem.present.all()
    assert [problem.site_names[site] for site in problem.site] == ["s0", "s2", "s3"]
