"""A study's file: its question, methods, data sets and comparison."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from fkl.basics.errors import BadValue, FklError, did_you_mean, require
from fkl.basics.keys import require_words
from fkl.config.choices import GROUPS, Choices, read_mapping, read_text, tuned_keys
from fkl.config.compose import compose_config, keys_of, quote_word, read_words
from fkl.config.loading import Run, import_object, load_run, type_of_key
from fkl.config.settings import Settings
from fkl.engines.per_world import why_not
from fkl.statistics.differences import MOST_SEEDS
from fkl.statistics.power import LOOKS, PILOT
from fkl.study.space import Range

KEYS = (
    "question", "methods", "datasets", "claim", "pairs", "tune", "budget", "beside", "judge", "set", "limit_s",
    "config_dir",
)  # fmt: skip
CLAIMS = ("rows", "seeds", "clients", "time")
BESIDE = ("alone", "pooled", "mean")
TRIALS_PER_KEY, LEAST_TRIALS = 12, 24
SETTINGS = {one.name for one in fields(Settings)}
OURS = ("rows", "seed", "replicates", "engine", "out", "objective", "paths.outputs", "figures", "save_model")
"""Keys of runs that the study sets."""
SAME_ERROR = "a key that does not change what the error is, or of which samples; compare such values in a study each"
"""What is allowed in a search, which would otherwise choose the easiest error instead of the best method."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "tune": {"trials": None, "space": {}, "once": False},
    "budget": {},
    "judge": {"seeds": 10, "margin": 0.02, "looks": []},
}


@dataclass(frozen=True)
class PlannedPart:
    """A method or a data set of a study.

    Parameters
    ----------
    name : str
    words : tuple of str
        Its words for `fkl run`.
    """

    name: str
    words: tuple[str, ...]

    @property
    def source(self) -> tuple[str, ...]:
        """Source of a data set's rows; data sets from the same source, such as two kinds of drift, count as one."""
        return tuple(word for word in self.words if word.startswith(("dataset=", "dataset.path=")))


@dataclass(frozen=True, eq=False)
class Plan:
    """Content of a study's file.

    Parameters
    ----------
    file : Path
    methods, datasets : tuple of Part
    question : str
    claim : {"rows", "seeds", "clients", "time"}
        Scope of the comparison: other rows of this source, these rows, other clients like these, a later time.
    trials : int or None
        Trials of each search; None for 12 per key of the method with the most keys, and at least 24.
    space : dict of str to object
        Ranges of keys, instead of or in addition to those of a method.
    once : bool
        Whether all seeds share one search; verdicts are then about the values that it found.
    budget : dict of str to float
        Upper limits of columns of a run's summary, such as uplink_bytes.
    beside : tuple of str
    seeds : int
    margin : float
        Differences below this do not matter; 0.02 is 2 %.
    looks : tuple of int
        Numbers of seeds after which a data set ends if all its pairs are decided; if empty, all seeds are run.
    planned : tuple of (str, str)
        Pairs of methods to compare, by name; empty for every two methods.
    words : tuple of str
        KEY=VALUE words of all runs.
    limit_s : float or None
        Time limit of a run in seconds; a longer run has failed.
    folders : tuple of Path
        Folders with the user's own choices, like ``--config-dir`` of `fkl run`.
    pilot : bool
        Whether this is the pilot, with five separate seeds, which are not judged.
    """

    file: Path
    methods: tuple[PlannedPart, ...]
    datasets: tuple[PlannedPart, ...]
    question: str = ""
    claim: str = "rows"
    trials: int | None = None
    space: dict[str, Any] = field(default_factory=dict)
    once: bool = False
    budget: dict[str, float] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    seeds: int = 10
    margin: float = 0.02
    looks: tuple[int, ...] = ()
    planned: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    limit_s: float | None = None
    folders: tuple[Path, ...] = ()
    pilot: bool = False

    @classmethod
    def read(cls, file: Path) -> "Plan":
        """Read and check a study's file.

        Raises
        ------
        fkl.basics.errors.FklError
            The message names the key and its allowed values.
        """
        # Unknown keys first, with a suggestion
        given = dict(read_mapping(read_text(file), file))
        for key in given:
            if key not in KEYS:
                raise FklError(
                    f"{file}: {key}: no such key of a study",
                    help=did_you_mean(str(key), KEYS, f"keys: {', '.join(KEYS)}"),
                )
        # Mappings inside the file, with their defaults
        inner = {}
        for name, defaults in DEFAULTS.items():
            values = given.get(name) or {}
            allowed = f"keys with values: {', '.join(defaults) or 'columns of summary.csv, such as uplink_bytes'}"
            require(isinstance(values, dict) and (not defaults or {*values} <= {*defaults}), name, values, allowed)
            inner[name] = {**defaults, **values}
        # Own configurations, methods and data sets
        tune, judge = inner["tune"], inner["judge"]
        folders: tuple[Path, ...] = ()
        if (config_dir := given.get("config_dir")) is not None:
            folders = (file.parent / str(config_dir),)
            require(folders[0].is_dir(), "config_dir", config_dir, f"a folder next to {file.name}")
        parts: dict[str, Any] = {
            name: _parts_of_entries(_as_list(given, name), prefix, folders)
            for name, prefix in (("methods", "algo"), ("datasets", "dataset"))
        }
        for name, some in parts.items():
            names = [part.name for part in some]
            twice = sorted({one for one in names if names.count(one) > 1})
            require(not twice, name, ", ".join(twice), "different names; give one another name: {name: ..., ...}")
        # What the claim is about, and how methods are tuned
        claim, beside = given.get("claim", "rows"), given.get("beside") or []
        require(claim in CLAIMS, "claim", claim, ", ".join(CLAIMS))
        is_known = isinstance(beside, list) and all(one in BESIDE for one in beside)
        require(is_known, "beside", beside, f"a list of {', '.join(BESIDE)}")
        require(isinstance(tune["once"], bool), "tune.once", tune["once"], "true or false")
        trials = tune["trials"]
        require(trials is None or _is_whole(trials, 2), "tune.trials", trials, "an integer >= 2")
        require(isinstance(tune["space"], dict), "tune.space", tune["space"], "keys with ranges")
        for key, text in tune["space"].items():
            Range.read(f"tune.space.{key}", text)
            of_data = key.partition(".")[0] in ("dataset", "partition") or key in OURS
            changes_error = key == "algo.level" or (key == "algo.loss" and "quantile" in str(text))
            require(not of_data and not changes_error, f"tune.space.{key}", text, SAME_ERROR)
        # How many seeds, when the study may stop, and what counts as equal
        seeds, margin, looks = judge["seeds"], judge["margin"], judge["looks"]
        require(_is_whole(seeds, 3), "judge.seeds", seeds, "an integer >= 3; 10 are usual")
        if claim == "rows":
            allowed = f"at most {MOST_SEEDS} if seeds share rows, because more give false alarms"
            require(seeds <= MOST_SEEDS, "judge.seeds", seeds, allowed)
        allowed = f"a list of {', '.join(map(str, LOOKS))}, ascending, ending with judge.seeds={seeds}"
        is_known = isinstance(looks, list) and all(one in LOOKS for one in looks) and looks == sorted({*looks})
        require(is_known and looks[-1:] in ([], [seeds]), "judge.looks", looks, allowed)
        require(_is_positive(margin) and margin < 1, "judge.margin", margin, "a number between 0 and 1, such as 0.02")
        # Limits, and words for all runs; a study sets some words itself
        budget = {key: _positive_number(f"budget.{key}", value) for key, value in inner["budget"].items()}
        limit_s = None if given.get("limit_s") is None else _positive_number("limit_s", given["limit_s"])
        words = given.get("set") or []
        require(isinstance(words, list), "set", words, "a list of KEY=VALUE words")
        words = tuple(map(str, words))
        for word in read_words(words):
            require(word.key not in OURS, "set", word.text, f"keys other than {', '.join(OURS)}, which the study sets")
        # The plan, and a check that it has something to compare
        plan = cls(
            file,
            **parts,
            question=str(given.get("question", "")),
            claim=claim,
            trials=trials,
            space=tune["space"],
            once=tune["once"],
            budget=budget,
            beside=tuple(beside),
            seeds=seeds,
            margin=float(margin),
            looks=tuple(looks),
            words=words,
            limit_s=limit_s,
            folders=folders,
        )
        allowed = "two or more, or one with beside: [alone] or [pooled]"
        require(len(plan.all_methods) > 1, "methods", given.get("methods"), allowed)
        return replace(plan, planned=_planned_pairs(given.get("pairs") or [], [part.name for part in plan.all_methods]))

    @cached_property
    def all_methods(self) -> tuple[PlannedPart, ...]:
        """The methods, and each of them alone and pooled, if requested and possible."""
        return (*self.methods, *(part for one in self.methods for part in self.baseline_variants(one)))

    def baseline_variants(self, method: PlannedPart) -> list[PlannedPart]:
        """A method with each client alone, and with one learner for all samples, if requested and possible."""
        asked = [learners for learners in self.beside if learners != "mean"]
        return [
            PlannedPart(_name_with(method.name, learners), (*method.words, f"learners={learners}"))
            for learners in asked
            if why_not(learners, class_of(method, self.folders)) is None
        ]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Pairs to compare: the planned pairs or every two methods, and each method with its own variants."""
        found = [*(self.planned or combinations([one.name for one in self.methods], 2))]
        found += [(one.name, part.name) for one in self.methods for part in self.baseline_variants(one)]
        return [pair for at, pair in enumerate(found) if {*pair} not in map(set, found[:at])]

    @property
    def folder(self) -> Path:
        """Folder for everything that the study writes, next to its file."""
        place = self.file.with_suffix("")
        return place / "pilot" if self.pilot else place

    def as_pilot(self) -> "Plan":
        """A copy with a few seeds, to find how many seeds are needed."""
        return replace(self, seeds=PILOT, looks=(), pilot=True)

    def config(self, words: Sequence[str]) -> dict[str, Any]:
        """The configuration of a run."""
        return compose_config(*words, folders=self.folders)

    def checked_run(self, words: tuple[str, ...]) -> Run:
        """A checked run."""
        return load_run(self.config(words), words)

    def words_of(self, dataset: PlannedPart, method: PlannedPart) -> tuple[str, ...]:
        """Words that all runs of a method on a data set share."""
        return (*method.words, *dataset.words, *self.words)

    @cache  # noqa: B019
    def search_space(self, dataset: PlannedPart, method: PlannedPart) -> dict[str, Range]:
        """Search space: the ranges in tune.yaml, and those of the study, for keys that the method has."""
        words = self.words_of(dataset, method)
        config = self.config(words)
        values = {word.key: word.value for word in read_words(words)}
        tuned = tuned_keys(str(values["algo"]), self.folders)
        ranges = {key: Range.read(key, text) for key, text in tuned.items() if key not in values}
        for key, text in self.space.items():
            if has_key(config, key) and key not in values:
                ranges[key] = Range.read(f"tune.space.{key}", text)
        return ranges

    def words_of_middles(self, dataset: PlannedPart, method: PlannedPart) -> tuple[str, ...]:
        """Words that set each searched key to the middle of its range, for a trial run before any search."""
        return tuple(f"{key}={one.middle}" for key, one in self.search_space(dataset, method).items())

    @cache  # noqa: B019
    def widen_range(self, dataset: PlannedPart, method: PlannedPart, key: str, known: Range, end: str) -> Range | None:
        """A wider range of a key, as far as the key allows; None if it cannot be wider at this end."""

        # A range may be widened as far as a run's configuration accepts
        def allows(value: Any) -> bool:
            words = (*self.words_of(dataset, method), *self.words_of_middles(dataset, method), f"{key}={value}")
            try:
                self.checked_run(words)
            except FklError:
                return False
            return True

        return known.widen_ends(end, allows)

    @cached_property
    def trials_each(self) -> int:
        """Trials of every search, the same for all methods."""
        if self.trials is not None:
            return self.trials
        most = max(len(self.search_space(self.datasets[0], method)) for method in self.methods)
        return max(LEAST_TRIALS, TRIALS_PER_KEY * most)

    def not_tuned(self, dataset: PlannedPart) -> list[str]:
        """Names of the methods without a key to search, which run with their default values or those of the study."""
        return [method.name for method in self.all_methods if not self.search_space(dataset, method)]

    def trials_of(self, dataset: PlannedPart, method: PlannedPart) -> int:
        """Trials of each search of a method: the same for all, or one run of a method that is not tuned."""
        return self.trials_each if self.search_space(dataset, method) else 1

    @property
    def searches(self) -> Sequence[int]:
        """Numbers of the searches: one for each seed, or one for all seeds."""
        return range(1 if self.once else self.seeds)

    @property
    def stops(self) -> tuple[int, ...]:
        """Numbers of seeds after which a data set may end; the last is the number of all seeds."""
        return self.looks or (self.seeds,)


def class_of(method: PlannedPart, folders: Sequence[Path]) -> type:
    """The class of a method."""
    name = next(str(word.value) for word in read_words(method.words) if word.key == "algo")
    found: type = import_object("_target_", str(keys_of("algo", name, folders)["_target_"]), "class")
    return found


def has_key(config: dict[str, Any], key: str) -> bool:
    """Whether a configuration has a key, whose name is written with dots."""
    node: Any = config
    for name in key.split("."):
        if not isinstance(node, dict) or name not in node:
            return False
        node = node[name]
    return True


def _as_list(given: dict[str, Any], name: str) -> list[Any]:
    entries = given.get(name)
    require(isinstance(entries, list) and bool(entries), name, entries, "a list of names, or of {key: value, ...}")
    assert isinstance(entries, list)
    return entries


def _planned_pairs(entries: Any, names: list[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of methods, by their names in the study."""
    allowed = f"a list of pairs [A, B] of methods: {', '.join(names)}"
    require(isinstance(entries, list), "pairs", entries, allowed)
    for pair in entries:
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(one in names for one in pair) and pair[0] != pair[1]
        require(is_pair, "pairs", pair, allowed)
    return tuple((str(a), str(b)) for a, b in entries)


def _parts_of_entries(entries: list[Any], group: str, folders: Sequence[Path]) -> tuple[PlannedPart, ...]:
    """Methods or data sets from a name or keys each, with the names given to them or short names.

    A short name is that of the choice, with other keys in parentheses; data sets show only keys that distinguish them.
    """
    # A name alone, or a mapping with keys
    entries = [{group: entry} if isinstance(entry, str) else entry for entry in entries]
    parts = [_part_of_entry(entry, group, folders) for entry in entries]
    # Short names: a method's label, a data set's file
    if group == "algo":
        names = [str(getattr(class_of(part, folders), "label", part.name)) for part in parts]
    else:
        names = [
            _name_of_file(str(entry["path"])) if "path" in entry else part.name
            for entry, part in zip(entries, parts, strict=True)
        ]
    named_parts = []
    # Parts of one name need the keys in which they differ
    for entry, part, name in zip(entries, parts, names, strict=True):
        others = [other for other, its in zip(parts, names, strict=True) if its == name and other != part]
        common = set.intersection(*({*other.words} for other in [part, *others])) if group == "dataset" else set()
        for word in part.words:
            key, _, value = word.partition("=")
            if word not in common and key != group and (key not in GROUPS or value != "null"):
                name = _name_with(name, value if key in GROUPS else f"{key.rpartition('.')[2]}={value}")
        named_parts.append(replace(part, name=str(entry.get("name", name))))
    return tuple(named_parts)


def _name_of_file(path: str) -> str:
    """The name of a file without its suffix; for a pattern such as ``sites/*.csv``, the name of the folder."""
    return Path(path).parent.name if "*" in path else Path(path).stem


def _name_with(name: str, word: str) -> str:
    """A name with one more word in parentheses."""
    return f"{name[:-1]} {word})" if name.endswith(")") else f"{name} ({word})"


def _part_of_entry(entry: Any, group: str, folders: Sequence[Path]) -> PlannedPart:
    """A method or data set from the name of its choice, or from its keys.

    Keys that are neither a setting nor a group belong to the method or data set.
    """
    # Refuse an entry without a method or data set
    if not isinstance(entry, dict) or group not in entry:
        kind = {"algo": "methods", "dataset": "datasets"}[group]
        raise BadValue(kind, entry, f"a name, or keys such as {{{group}: NAME, KEY: VALUE}}")
    # Keys without a dot belong to the choice itself
    words, choices = [], Choices(*folders)
    chosen = choices.spelled_name(group, str(entry[group]))
    node = {group: keys_of(group, chosen, folders)}
    for key, value in entry.items():
        name = str(key)
        if name == "name":
            continue
        # Each key is checked by its declared type, and written as a word
        if "." not in name and name not in GROUPS and name not in SETTINGS:
            name = f"{group}.{name}"
        if name in GROUPS and isinstance(value, str):
            value = choices.spelled_name(name, value)
        require_words(name, value, type_of_key(node, name))
        words.append(f"{name}={_as_word(value)}")
    # Choices come first, because other words change keys of theirs
    choices_first = sorted(words, key=lambda word: "." in word.partition("=")[0])
    return PlannedPart(chosen, tuple(choices_first))


def _as_word(value: object) -> str:
    """A value as it is written on a command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_as_word, value))}]"
    return quote_word(f"={value}")[1:]


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _positive_number(key: str, value: object) -> float:
    """A positive number; YAML reads 1e6 as text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise BadValue(key, value, "a number > 0") from None
    require(_is_positive(value), key, value, "a number > 0")
    return float(value)  # type: ignore[arg-type]
