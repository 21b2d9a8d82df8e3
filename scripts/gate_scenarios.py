"""Runs that `gate.py` compares: words of `fkl run`."""

REPLICATES = "replicates=5"
STREAM = ("dataset=diabetes",)
"""4 clients, with samples that need no file."""
FEDERATED = (*STREAM, "kernels.D=8", "partition.rounds=40")
EXACT = (*STREAM, "partition.clients=1", "partition.rounds=100")
ALONE = (*EXACT, "kernels.D=8")
AGENTS = (*STREAM, "kernels.D=8", "algo.iterations=100")
CLASSES = ("dataset=ellipses", "dataset.rows=90", "scaling=none")
"""9 clients, with samples of two classes."""
PARTIES = (*CLASSES, "dataset.test_rows=0", "partition=vertical", "partition.parties=2")
SPARSE = (*CLASSES, "algo.steps=50", "algo.centres=100")
STOCHASTIC = (*PARTIES, "algo.iterations=20", "algo.batch=8", "algo.features=4")
ABSENT = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=60")
NEAREST = ("compression=uniform", "compression.rounding=nearest")
LOSSY = ("network.loss=0.3", "topology=erdos_renyi", "topology.p=0.9")

LOCAL = ("fedavg", "fedavgm", "fedadagrad", "fedadam", "fedyogi", "fedprox", "scaffold", "q_fedavg", "ditto", "pfedme")
ON_BATCHES = {f"{name}_batches": (f"algo={name}", "kernels=coke", "algo.eta=0.5") for name in LOCAL}
ON_BATCHES["pfedme_batches"] += ("algo.eta_k=0.3",)
"""Methods with local steps on all samples of clients: their old names, and the words that replaced these."""

SMALL: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("pof_mkl", "ofmkl_avg", "ofskl", "vm_kofl", "em_kofl", "perfedavg"), FEDERATED),
    **dict.fromkeys(("fomd_oms", "nco_oms", "fed_poe", "rf_gp"), FEDERATED),
    **dict.fromkeys(LOCAL, FEDERATED),
    **dict.fromkeys(ON_BATCHES, AGENTS),
    **dict.fromkeys(("pooled_raker", "pooled_ada_raker", "pooled_omkl_gf"), FEDERATED),
    **dict.fromkeys(("omkl_gf", "omkl_sfg", "omkl_sfg_r", "raker", "ada_raker", "rfomkr"), ALONE),
    **dict.fromkeys(("omkr", "rbf_1", "poly_2"), EXACT),
    **dict.fromkeys(("cta", "push_cta", "dkla", "link_dkla", "coke", "dekrr_ddrf"), AGENTS),
    "one_shot_ridge": (*STREAM, "kernels.D=8"),
    "fed3r": ("dataset=digits", "partition.clients=4", "partition.rounds=60", "kernels.D=8"),
    **dict.fromkeys(("dkrr_ny_cm", "falkon"), STREAM),
    **dict.fromkeys(("odkla", "qc_odkla", "domkl", "consensus_rf_gp", "d_rf_gp"), FEDERATED),
    **dict.fromkeys(("parsimonious_federated", "parsimonious_centralized"), SPARSE),
    **dict.fromkeys(("pooled_svm", "cascade_svm"), CLASSES),
    **dict.fromkeys(("fdskl", "dsg"), STOCHASTIC),
    **dict.fromkeys(("libsvm", "pp_svmv", "vertical_nystroem", "vertical_ridge"), PARTIES),
    "fd_svrg": (*PARTIES, "algo.passes=20"),
    "secureboost": (*PARTIES, "algo.trees=20"),
}
"""Regression scenario of every algorithm, by its name in conf/algo."""

DIFFICULT: dict[str, tuple[str, ...]] = {
    **{
        f"{algo}, clients absent": (f"algo={algo}", *FEDERATED, *ABSENT)
        for algo in ("ofmkl_avg", "ofskl", "vm_kofl", "em_kofl", "perfedavg")
    },
    "pof_mkl, bins drawn, clients absent": ("algo=pof_mkl", *FEDERATED, *ABSENT, "algo.M=2", "algo.xi=0.3"),
    "pof_mkl, cosine map": ("algo=pof_mkl", *FEDERATED, "kernels.map=cosine", "kernels.shared=true"),
    "raker, mixed families": ("algo=raker", *ALONE, "kernels.N=7", "kernels.laplacians=3"),
    "cta, messages lost": ("algo=cta", *AGENTS, *LOSSY),
    "coke, messages lost": ("algo=coke", *AGENTS, "algo.v=0.1", *LOSSY),
    "coke, quantized": ("algo=coke", *AGENTS, "algo.v=0.1", *NEAREST, "compression.bits=6"),
    "dkla, logistic": ("algo=dkla", *CLASSES, "kernels.D=8", "algo.loss=logistic", "algo.iterations=20"),
    "fdskl, a bank": ("algo=fdskl", *STOCHASTIC, "algo.bank=24"),
    "fdskl, fresh masks, a fold": ("algo=fdskl", *STOCHASTIC, "algo.masks=fresh", "algo.fold=1"),
    "fdskl, one feature an iteration": ("algo=fdskl", *PARTIES, "algo.iterations=200"),
    "pof_mkl, engine numpy": ("algo=pof_mkl", *FEDERATED, "engine=numpy"),
    "pof_mkl, engine jax": ("algo=pof_mkl", *FEDERATED, "engine=jax"),
    "coke, engine jax": ("algo=coke", *AGENTS, "algo.v=0.1", "engine=jax"),
    "ofskl, noise": ("algo=ofskl", *FEDERATED, "privacy=local"),
    "ofmkl_avg, sums behind masks": ("algo=ofmkl_avg", *FEDERATED, "secure=pairwise"),
    "pof_mkl, updates late": ("algo=pof_mkl", *FEDERATED, "late=updates"),
    "vm_kofl, few entries": ("algo=vm_kofl", *FEDERATED, "compression=top_k"),
    "dkla, links failing": ("algo=dkla", *AGENTS, "links=failing"),
    "cta, dropouts": ("algo=cta", *AGENTS, "participation=dropout"),
    "push_cta, links of one direction": ("algo=push_cta", *AGENTS, "topology=directed"),
    "raker, kernels around the median": ("algo=raker", *EXACT, "kernels=auto", "kernels.D=8"),
    "secureboost, a fold": ("algo=secureboost", *PARTIES, "algo.fold=0", "algo.trees=5"),
}
"""Cases in which more can go wrong."""

ENERGY = (
    *("dataset=energy", "partition=agents", "topology=gnm", "topology.edges=28", "scaling=none"),
    *("kernels.D=100", "kernels.smallest=0.1", "algo.redraw=true", "algo.lam=1.0e-3"),
)
WISDM = (
    *("dataset=wisdm", "scaling=none", "dataset.activity=walking", "dataset.against=jogging"),
    *("dataset.participants=10", "algo.eps=0.5", "algo.steps=500", "algo.centres=1728"),
)
PHISHING = (
    *("dataset=phishing", "scaling=unit_box", "network.latency_s=1.0e-4", "network.bandwidth_bytes_per_s=1.25e+8"),
    *("kernels.smallest=1.5", "algo.gamma=100.0", "algo.lam=1.0e-6", "algo.batch=1024", "algo.features=128"),
    *("algo.iterations=320", "algo.marks=50"),
)
NAVAL = ("dataset=naval", "network.uplink_budget=1000", "kernels.D=100")
TABLES: dict[str, tuple[str, ...]] = {
    "POF-MKL, Table 1, naval, M=1": ("algo=pof_mkl", "algo.M=1", *NAVAL),
    "graph-aided OMKL, Table 1, concrete": ("algo=omkl_gf", "algo.M=10", "dataset=concrete", "dataset.decimals=2"),
    "COKE, energy, DKLA": ("algo=dkla", *ENERGY),
    "COKE, energy, COKE": ("algo=coke", *ENERGY, "algo.v=0.5", "algo.mu=0.98"),
    "COKE, energy, CTA": ("algo=cta", *ENERGY),
    "FDSKL, phishing": ("algo=fdskl", *PHISHING, "replicates=1"),
    "parsimonious functions, walking": ("algo=parsimonious_federated", *WISDM, "algo.gamma=120", "replicates=2"),
}
"""A complete run of each paper's main table; the last two with fewer replicates than the table, the others in
float64."""
