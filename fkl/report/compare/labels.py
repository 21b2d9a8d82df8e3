"""Short names for runs, which show only their differences."""

from collections.abc import Iterable, Sequence
from typing import Any

from fkl.config.choices import flat_items
from fkl.config.digest import NOT_RESULTS, WITHOUT_NULL
from fkl.data.table_layout import for_display
from fkl.runs.finished_runs import EndedRun

CLASS = "_target_"
Flat = dict[str, Any]
"""A configuration with one key per value; dots join nodes and keys."""


def flat_config(config: dict[str, Any]) -> Flat:
    """The part of a resolved configuration that decides numbers; 1.0 becomes 1.

    Examples
    --------
    >>> flat_config({"seed": 0, "threads": 2, "algo": {"eta": 1.0}})
    {'seed': 0, 'algo.eta': 1}
    """
    shown = {"dataset": for_display(config["dataset"])} if isinstance(config.get("dataset"), dict) else {}
    empty = {key for key in WITHOUT_NULL if config.get(key) is None}
    decides = {key: node for key, node in (config | shown).items() if key not in {*NOT_RESULTS, *empty}}
    return {key: _without_point(value) for key, value in flat_items(decides)}


def _without_point(value: Any) -> Any:
    """A whole number without its decimal point; any other value as it is."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def by_hand(run: EndedRun) -> Flat:
    """The user's settings of a run: keys with values, and groups with the names of their choices.

    It omits the method and the data set, which have their own names, and keys that decide no number.
    """
    pairs = (word.lstrip("+").partition("=") for word in run.words)
    config = flat_config(run.config)
    groups = {key for key, node in run.config.items() if isinstance(node, dict) and key not in NOT_RESULTS}
    return {
        key: config.get(key, value) for key, _, value in pairs if key in config or key in groups - {"algo", "dataset"}
    }


def varying_keys(flats: Sequence[Flat]) -> list[str]:
    """Keys whose values differ between configurations; keys of a node are compared only within its class.

    Examples
    --------
    >>> varying_keys([{"algo.eta": 1, "seed": 0}, {"algo.eta": 2, "seed": 0}])
    ['algo.eta']
    """
    keys = dict.fromkeys(key for one in flats for key in one)
    return [key for key in keys if any(_values_differ(key, some) for some in _of_one_class(key, flats))]


def _of_one_class(key: str, flats: Sequence[Flat]) -> Iterable[list[Flat]]:
    group, _, name = key.rpartition(".")
    by_class: dict[Any, list[Flat]] = {}
    for flat in flats:
        by_class.setdefault(flat.get(f"{group}.{CLASS}") if name != CLASS else "", []).append(flat)
    return by_class.values()


def _values_differ(key: str, flats: Sequence[Flat]) -> bool:
    first = repr(flats[0].get(key, CLASS))
    return any(repr(one.get(key, CLASS)) != first for one in flats)


def key_values(config: Flat, keys: Sequence[str]) -> str:
    """Values of some keys as text, with only the last part of a key if that is unambiguous, without keys of None.

    Examples
    --------
    >>> key_values({"algo.M": 1, "kernels.D": 20, "network.uplink_budget": None}, ["algo.M", "network.uplink_budget"])
    'M=1'
    """
    return " ".join(_word_of_key(key, config[key], keys) for key in keys if config.get(key) is not None)


def _word_of_key(key: str, value: Any, keys: Sequence[str]) -> str:
    last = key.rpartition(".")[2]
    if last == CLASS:
        return str(value).rpartition(".")[2]
    name = key if sum(other.rpartition(".")[2] == last for other in keys) > 1 else last
    return f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
