"""Values that their keys allow and that no memory, or not the memory of these tests, could hold."""

from typing import NamedTuple

from conftest import small

GIB = 2**30
ANY = None
"""Of any machine: what is asked for is more than any has."""


class TooLarge(NamedTuple):
    """One run that does not fit.

    Parameters
    ----------
    call : tuple of str
        Overrides.
    free : int or None
        Bytes that there are said to be; None for what there is.
    said : str
        Pattern of the line that refuses it: what is too large, and the key to lower.
    slow : bool
        Whether another case says the same of another method.
    """

    call: tuple[str, ...]
    free: int | None
    said: str
    slow: bool = False


RANDOM_FEATURES = (
    "pof_mkl", "ofskl", "ofmkl_avg", "vm_kofl", "em_kofl", "pooled_raker", "pooled_omkl_gf", "raker", "rfomkr",
    "omkl_gf", "omkl_sfg", "omkl_sfg_r", "coke", "dkla", "cta", "fomd_oms", "nco_oms", "fed_poe", "ada_raker",
    "rf_gp", "consensus_rf_gp", "d_rf_gp",
    "pooled_ada_raker",
)  # fmt: skip
"""Methods that keep something for each of a kernel's features."""
ALWAYS = ("pof_mkl", "em_kofl", "rf_gp", "fomd_oms", "raker", "omkl_sfg", "pooled_raker", "coke", "consensus_rf_gp")
"""Those of `make test`: one of each way to keep it."""
MANY_KERNELS = ("pof_mkl", "vm_kofl", "raker", "omkl_gf")
FREE = r"at least [\d.e+]+ (MiB|GiB|TiB), and [\d.]+ (MiB|GiB) is free; lower "


def too_large() -> list[TooLarge]:
    """All of them."""
    return [*_features(), *_kernels(), *_data(), *_partitions(), *_graphs(), *_methods(), *_records()]


def _features() -> list[TooLarge]:
    each = [
        TooLarge((*small(algo), "kernels.D=4000000"), GIB // 2, rf"{FREE}.*kernels\.D", algo not in ALWAYS)
        for algo in RANDOM_FEATURES
    ]
    variants = (
        ("kernels.map=cosine",),
        ("kernels.shared=true",),
        ("kernels.family=laplacian",),
        ("kernels.laplacians=20",),
        ("kernels.draw=orthogonal", "kernels.N=5"),
        ("kernels.draw=structured",),
        ("kernels.draw=quasi",),
        ("kernels.draw=quadrature",),
        ("precision=float64",),
        ("chunk=2",),
        ("partition.clients=1",),
        ("algo.M=51",),
        ("replicates=1",),
    )
    base = (*small("pof_mkl"), "kernels.D=5000000")
    each += [TooLarge((*base, *variant), GIB, rf"{FREE}.*kernels\.D") for variant in variants]
    most = ("kernels.D=10000000", "kernels.N=2000")
    return [*each, TooLarge((*small("pof_mkl"), *most), ANY, rf"{FREE}.*kernels\.D=10000000 or kernels\.N=2000")]


def _kernels() -> list[TooLarge]:
    wide = ("kernels.N=10000", "kernels.D=1000")
    return [TooLarge((*small(algo), *wide), GIB // 2, r"free.*; lower .*kernels\.N") for algo in MANY_KERNELS]


def _data() -> list[TooLarge]:
    farm, drawn, plane = "dataset=wave_farm", "dataset=synthetic", "dataset=ellipses"
    return [
        TooLarge((farm, "dataset.rows_per_site=10000000"), 4 * GIB, rf"40000000 rows .*{FREE}dataset\.rows_per_site"),
        TooLarge((farm, "dataset.rows_per_site=100000"), GIB // 8, rf"400000 rows .*{FREE}dataset\.rows_per_site"),
        TooLarge((drawn, "dataset.rows=100000000"), 4 * GIB, rf"100000000 rows .*{FREE}dataset\.rows"),
        TooLarge((drawn, "dataset.rows=100000000", "dataset.dimension=10000"), ANY, rf"{FREE}dataset\.rows"),
        TooLarge(
            (drawn, "dataset.rows=1000000", "dataset.dimension=1000"), GIB, r"1000 features .* lower dataset\.rows"
        ),
        TooLarge((drawn, "dataset.rows=50000000", "dataset.sites=50000000"), 6 * GIB, rf"{FREE}dataset\.sites"),
        TooLarge((drawn, "dataset.rows=100000", "dataset.centres=10000"), 2 * GIB, rf"{FREE}dataset\.centres"),
        TooLarge((drawn, "dataset.rows=2000", "dataset.centres=10000"), GIB // 8, rf"{FREE}dataset\.centres"),
        TooLarge((plane, "dataset.rows=10000000"), GIB // 2, rf"10001000 rows .*{FREE}dataset\.rows"),
        TooLarge((plane, "dataset.test_rows=10000000"), GIB // 2, rf"{FREE}.*dataset\.test_rows"),
    ]


def _partitions() -> list[TooLarge]:
    rows = ("dataset=synthetic", "dataset.rows=200000", "dataset.dimension=1", "dataset.centres=1")
    skew = (*rows, "partition=quantity_skew", "partition.alpha=0.001")
    return [
        TooLarge((*skew, "partition.clients=50000", "partition.rounds=13000"), 4 * GIB, rf"{FREE}partition\.clients"),
        TooLarge((*skew, "partition.clients=100", "partition.rounds=180000"), GIB // 4, rf"{FREE}partition\.clients"),
        TooLarge((*rows, "partition.clients=200000", "partition.rounds=1"), 4_900_000, rf"{FREE}partition\.clients"),
        TooLarge((*rows, "partition.clients=1", "partition.rounds=200000"), 4_900_000, rf"{FREE}.*partition\.rounds"),
        TooLarge(
            (*rows, "partition=dirichlet", "partition.clients=200", "partition.rounds=1000"),
            4_900_000,
            rf"200 clients over 1000 rounds .*{FREE}partition\.clients",
        ),
        TooLarge(
            ("dataset=wave_farm", "dataset.rows_per_site=3000", "partition.clients_per_site=6"),
            4_805_000,
            rf"24 clients over 500 rounds .*{FREE}partition\.clients_per_site",
        ),
    ]


def _graphs() -> list[TooLarge]:
    agents = ("algo=coke", "partition=agents", "dataset=synthetic", "dataset.rows=20000", "partition.clients=20000")
    many = (*agents, "partition.rounds=1")
    return [
        TooLarge((*many, "topology=complete"), 4 * GIB, rf"199990000 edges .*{FREE}partition\.clients"),
        TooLarge((*many, "topology=erdos_renyi", "topology.p=0.5"), 4 * GIB, rf"edges .*{FREE}topology\.p"),
        TooLarge(
            (*many, "topology=erdos_renyi", "topology.p=null", "topology.edges=100000000"),
            4 * GIB,
            rf"100000000 edges .*{FREE}topology\.edges",
        ),
        TooLarge((*many, "topology=watts_strogatz", "topology.neighbours=19998"), 4 * GIB, rf"{FREE}topology\.neigh"),
    ]


def _methods() -> list[TooLarge]:
    most = "1000000000"
    gf, sfg, dsg, fdskl, svrg = (small(name) for name in ("omkl_gf", "omkl_sfg", "dsg", "fdskl", "fd_svrg"))
    trees, svc, merged, network = (small(name) for name in ("secureboost", "libsvm", "pp_svmv", "perfedavg"))
    more = "dataset.rows=12000"
    wide = ("algo.neurons=3000", "algo.parameters=10000000")
    return [
        TooLarge((*gf, "algo.J=10000", "algo.M=10000"), GIB, r"free.*; lower algo\.M=10000 or algo\.J=10000"),
        TooLarge((*gf, "algo.J=10000", "algo.M=1000"), GIB // 2, r"free.*; lower algo\.J=10000 or algo\.M=1000"),
        TooLarge((*sfg, "kernels.N=10000", "algo.M=10000"), GIB // 2, r"free.*; lower .*kernels\.N=10000"),
        TooLarge((*dsg, f"algo.iterations={most}", f"algo.features={most}"), ANY, rf"{FREE}.*algo\.features"),
        TooLarge((*dsg, f"algo.iterations={most}"), GIB, rf"{FREE}algo\.iterations"),
        TooLarge((*dsg, f"algo.features={most}"), GIB, rf"{FREE}algo\.iterations, algo\.features"),
        TooLarge((*fdskl, f"algo.iterations={most}", f"algo.features={most}"), ANY, rf"{FREE}.*algo\.features"),
        TooLarge((*fdskl, "algo.iterations=100000000"), GIB, rf"{FREE}algo\.iterations"),
        TooLarge((*fdskl, "algo.features=100000000"), GIB, rf"{FREE}algo\.iterations, algo\.features"),
        TooLarge((*svrg, f"algo.inner={most}", "algo.batch=50"), 4 * GIB, rf"{FREE}algo\.inner or algo\.batch"),
        TooLarge((*svrg, f"algo.inner={most}"), GIB, rf"{FREE}algo\.inner"),
        TooLarge((*svrg, f"algo.passes={most}"), GIB, rf"{FREE}algo\.passes"),
        TooLarge((*trees, "algo.trees=1000000"), GIB // 16, rf"{FREE}algo\.trees"),
        TooLarge((*svc, more, "algo.cache_mib=1000000"), GIB // 8, rf"LIBSVM's cache .*{FREE}algo\.cache_mib=1e\+06"),
        TooLarge((*merged, more), GIB // 4, rf"matrix of \d+ x \d+ samples .*{FREE}the number of samples"),
        TooLarge((*small("vertical_nystroem"), more, "algo.landmarks=9000"), GIB, rf"{FREE}algo\.landmarks"),
        TooLarge((*small("vertical_ridge"), "algo.angles=1000000"), ANY, rf"{FREE}algo\.angles"),
        TooLarge((*network, *wide), GIB // 32, r"free.*; lower algo\.parameters=10000000"),
        TooLarge((*small("parsimonious_centralized"), "algo.centres=1000000"), GIB // 8, rf"{FREE}algo\.centres"),
        TooLarge((*small("parsimonious_federated"), "algo.centres=1000000"), GIB // 8, rf"{FREE}algo\.centres"),
    ]


def _records() -> list[TooLarge]:
    several = ("replicates=1000000", "chunk=1000000")
    agents = [
        TooLarge((*small(algo), "algo.iterations=1000000000"), GIB, rf"1000000000 rounds .*{FREE}algo\.iterations")
        for algo in ("coke", "dkla", "cta")
    ]
    stream = ("dataset=synthetic", "dataset.rows=10000", "partition.clients=1", "partition.rounds=10000")
    return [
        *agents,
        TooLarge((*small("pof_mkl"), *several), GIB, rf"{FREE}.*chunk=1000000"),
        TooLarge((*small("vm_kofl"), *several), GIB, rf"{FREE}.*chunk=1000000"),
        TooLarge((*small("coke"), *several), GIB, rf"{FREE}.*chunk=1000000"),
        TooLarge((*stream, "replicates=100000", "chunk=100000"), 4 * GIB, rf"{FREE}partition\.rounds.*chunk=100000"),
        TooLarge((*small("raker"), "chunk=200000", "replicates=200000"), GIB, rf"{FREE}.*chunk=200000"),
    ]
