"""Words of the field for fkl's own keys, choices and columns, and other spellings of fkl's own names."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class FieldWord(NamedTuple):
    """Words of the field with one meaning.

    Parameters
    ----------
    words : str
        The words, with spaces between them; case, ``-`` and ``_`` do not matter.
    names : tuple of str
        What fkl calls it: keys, columns, or GROUP=NAME for choices, each of which `fkl describe` explains.
    note : str
        What a newcomer would otherwise get wrong; may be empty.
    """

    words: str
    names: tuple[str, ...]
    note: str = ""


FIELD_WORDS = (
    FieldWord(
        "order shuffle shuffled consecutive",
        ("partition=iid", "partition=blocks"),
        "iid deals rows at random, as order=shuffled did; blocks are consecutive rows, as iid dealt before",
    ),
    FieldWord(
        "lr learning_rate step_size client_lr local_lr",
        ("algo.eta",),
        "algo.gamma of fdskl and dsg; a method with a closed form, such as rf_gp, has none",
    ),
    FieldWord("server_lr server_learning_rate global_lr eta_g", ("algo.eta_server",), "of fedavg and its kin"),
    FieldWord(
        "num_clients n_clients clients num_users num_parties num_agents num_nodes",
        ("partition.clients",),
        "partition.clients_per_site where data have sites, partition.parties of partition=vertical",
    ),
    FieldWord(
        "num_rounds n_rounds rounds global_rounds comm_rounds communication_rounds num_server_rounds",
        ("partition.rounds", "algo.iterations"),
        "on a stream a round is a row of each client; a method on batches has algo.iterations",
    ),
    FieldWord(
        "local_epochs epochs num_epochs n_epochs local_iterations local_updates",
        ("algo.local_steps",),
        "steps of a client in a round: on its one new sample, or with algo.iterations on all its samples",
    ),
    FieldWord(
        "batch_size minibatch minibatch_size local_bs local_batch_size",
        ("algo.batch",),
        "only of fdskl, dsg and fd_svrg: elsewhere a step takes the round's sample, or all samples of a batch",
    ),
    FieldWord(
        "fraction_fit client_fraction sample_fraction participation_rate clients_per_round num_clients_per_round frac",
        ("participation.share",),
        "after participation=share; participation=schedule takes a number of clients",
    ),
    FieldWord(
        "noniid niid heterogeneous heterogeneity pathological label_skew shards",
        ("partition=dirichlet", "partition=quantity_skew", "partition=by_target", "partition=by_site"),
        "with partition.alpha near 0, dirichlet is pathological: a client sees one class",
    ),
    FieldWord("alpha dirichlet_alpha concentration", ("partition.alpha",), "of partition=dirichlet and quantity_skew"),
    FieldWord(
        "accuracy acc top1 test_acc train_acc",
        ("accuracy", "test_accuracy"),
        "1 - error, and 1 - test_error on batches, where classes are learned: algo.loss=logistic",
    ),
    FieldWord(
        "auc auroc roc_auc roc f1 f1_score precision recall sensitivity specificity confusion_matrix",
        ("accuracy", "test_accuracy"),
        "fkl has no AUC, F1, precision or recall, which are no means over samples: compute them from the columns "
        "prediction and f that fkl predict writes",
    ),
    FieldWord("rmse root_mean_squared_error", ("rmse_in_units", "mse"), "mse is of the scaled target"),
    FieldWord("mean_squared_error l2_error", ("mse", "test_mse"), "of the scaled target"),
    FieldWord(
        "mae mape mean_absolute_error",
        ("metrics",),
        "fkl has none; a function of your own is one: metrics.mae=my_module.mae",
    ),
    FieldWord("r2_score r_squared explained_variance", ("r2",)),
    FieldWord(
        "epsilon eps target_epsilon privacy_budget dp differential_privacy",
        ("epsilon_sample", "epsilon_client", "privacy.noise"),
        "the privacy follows from privacy.noise; dataset=epsilon is LIBSVM's data set",
    ),
    FieldWord("noise_multiplier dp_noise", ("privacy.noise",), "after privacy=central, local or sampled"),
    FieldWord("max_grad_norm clip_norm clipping_norm clipping", ("privacy.clip",), "after privacy=central or local"),
    FieldWord("proximal_mu prox_mu", ("algo.mu",), "of fedprox"),
    FieldWord("momentum server_momentum", ("algo.beta",), "of fedavgm"),
    FieldWord("weight_decay l2 lambda reg regularization regularisation", ("algo.lam",)),
    FieldWord(
        "device cuda gpu cpu use_gpu num_gpus accelerator",
        ("engine",),
        "engine=jax runs on the device that JAX finds, all others on the CPU",
    ),
    FieldWord("random_state random_seed manual_seed", ("seed",)),
    FieldWord("num_seeds repeats repetitions n_repeats num_runs", ("replicates",), "other data splits: -m seed=0,1,2"),
    FieldWord("model method algorithm strategy aggregator optimizer", ("algo",), "what a server learns: aggregate"),
    FieldWord("data data_path dataset_name data_dir csv", ("dataset",), "your own: dataset=file dataset.path=FILE"),
    FieldWord(
        "length_scale lengthscale kernel_width sigma bandwidth",
        ("kernels.smallest", "kernels.largest"),
        "the ends of a grid of kernels.N bandwidths",
    ),
    FieldWord("n_components num_features rff_dim num_random_features", ("kernels.D",), "of each kernel"),
    FieldWord("n_jobs num_workers workers num_threads num_cpus", ("threads",)),
    FieldWord("output_dir save_dir log_dir results_dir", ("paths.outputs", "out"), "out is the folder of one run"),
    FieldWord("test_size test_fraction test_split val_size", ("algo.test_share",), "partition.test_share of vertical"),
    FieldWord("early_stopping patience target_accuracy", ("stop_when",), "such as stop_when=error<0.1"),
    FieldWord("secagg secure_aggregation", ("secure=pairwise",)),
    FieldWord("byzantine malicious num_attackers poisoning", ("attack", "aggregate")),
    FieldWord("quantization quantisation sparsification", ("compression",)),
)
"""The only table of such words: for `fkl describe`, and for errors about names that do not exist."""


def field_words(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """What fkl calls a word of the field: a line of text, and the names in it, for each of its meanings.

    Parameters
    ----------
    name : str
        The word, or a key that ends with it.

    Examples
    --------
    >>> field_words("algo.learning-rate")[0][1]
    ('algo.eta',)
    >>> field_words("mse")
    []
    """
    word = name.rpartition(".")[2]
    matching = []
    for term in FIELD_WORDS:
        if plain_name(word) in map(plain_name, term.words.split()):
            note = f" ({term.note})" if term.note else ""
            matching.append((f"{word} in fkl: {' or '.join(term.names)}{note}", term.names))
    return matching


def plain_name(name: str) -> str:
    """A name in small letters, without - and _ and spaces."""
    return re.sub("[-_ ]", "", name.lower())


def own_spelling(name: str, names: Iterable[str]) -> str:
    """The only one of these names that has the same letters, in any case, with or without ``-`` and ``_``.

    The name itself if it is one of them, or if none or several of them have its letters.

    Examples
    --------
    >>> own_spelling("POF-MKL", ["coke", "pof_mkl"])
    'pof_mkl'
    >>> own_spelling("POF", ["coke", "pof_mkl"])
    'POF'
    """
    there = {*names}
    alike = [one for one in there if plain_name(one) == plain_name(name)]
    return alike[0] if len(alike) == 1 and name not in there else name
