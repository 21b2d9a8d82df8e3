"""What fkl composes is what Hydra composes of the same files and words; a slip is refused with what may be meant."""

import re
import shlex
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import hydra
import pytest
import yaml
from conftest import ALGORITHMS, Answer
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_class
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fkl import conf_folder
from fkl.basics.errors import FklError
from fkl.config import experiments
from fkl.config.choices import GROUPS, REQUIRED, Choices, choice_files
from fkl.config.compose import PLAIN, compose_config, each_value, read_words
from fkl.config.loading import FUNCTIONS, resolve_config
from fkl.papers import PAPERS
from fkl.papers.jobs import experiment_jobs

ROOT = Path(__file__).parents[2]
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
COMMAND = re.compile(r"\bfkl run ((?:\\\n|[^\n`])+)")
LINES = [
    *(f"algo={algo} seed=3" for algo in ALGORITHMS[::9]),
    "algo=pof_mkl algo.eta=1 '+kernels.new=[1,{a: 2}]' ++kernels.N=2 ++kernels.newer=x",
    "algo=coke ~topology",
    "algo=coke ~topology=erdos_renyi",
    "logger=[jsonl,tensorboard] logger.jsonl.file=x",
    "+as_published=fdskl dataset=phishing",
    "privacy=local compression=sign participation=share late=uploads links=random",
    "network={loss: 0.5} ~network.deadline_s",
    "algo=coke topology=ring partition=agents kernels=rbf kernels.D=5 +partition.new.deep=1",
    "algo.M='${kernels.N}' out='a b' paths.outputs=null",
]
WORDS = """a=b +a.b_c=d-e/f.g ++a/b=c a=1 a=-2 a=+3 a=007 a=1.50 a=1e-3 a=-1E5 a=.5 a=5. a=1_000 a=True a=null a=NaN
    a=inf a=none a=e1 a=1e a=1-3 a=1.2.3 a=_x a= a=x.yaml a=../x a=x:y a=9999999999999999999
    a=trueish a=1/3 a=x.. a=x--"""


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The papers' choices as the files that Hydra would want."""
    folder = tmp_path_factory.mktemp("papers")
    for group, options in experiments.paper_choices().items():
        for name, node in options.items():
            file = folder / group / f"{name}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            keys = {key: value for key, value in node.items() if key not in experiments.NO_CONFIGURATION}
            file.write_text("# @package _global_\n" + yaml.safe_dump(keys, sort_keys=False))
    return folder


def by_hydra(words: list[str], papers: Path) -> Any:
    """What Hydra itself composes."""
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return OmegaConf.to_container(hydra.compose("config", [*words, f"hydra.searchpath=[file://{papers}]"]))


@pytest.mark.parametrize("line", LINES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_command_line_is_composed_as_by_hydra(line: str, papers: Path) -> None:
    """A line that one of the two refuses is refused by both."""
    words = shlex.split(line)
    try:
        composed = compose_config(*words)
    except FklError:
        with pytest.raises(Exception):  # noqa: B017 # whatever it is
            by_hydra(words, papers)
    else:
        assert list(composed.items()) == list(by_hydra(words, papers).items())


def by_omegaconf(name: str, *words: object, _root_: Any) -> Any:
    """A function of fkl's interpolations as a resolver of OmegaConf's."""
    return FUNCTIONS[name](
        ",".join(map(str, words)), lambda *path, default: OmegaConf.select(_root_, ".".join(path), default=default)
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_s_job_is_composed_as_by_hydra(paper: str, papers: Path) -> None:
    job = experiment_jobs([*experiments.paper_experiments(paper)][-1])[-1]
    for name in FUNCTIONS:
        OmegaConf.register_new_resolver(name, partial(by_omegaconf, name), replace=True)
    composed = by_hydra([*job.words], papers)
    del composed["paths"]
    assert job.config == OmegaConf.to_container(OmegaConf.create(composed), resolve=True)


def test_plain_words_are_read_as_hydra_reads_them() -> None:
    words = [*WORDS.split(), "a=a b"]
    theirs = OverridesParser.create().parse_overrides(words)
    read = [(one.sign + one.key, repr(one.value)) for one in read_words(words)]
    assert read == [(one.get_key_element(), repr(one.value())) for one in theirs]
    plain = [bool(PLAIN.fullmatch(word)) for word in ("algo=coke", "algo.eta=1e-3", "a=null", "a='b'", "~a")]
    assert plain == [True, True, False, False, False]


def test_every_command_line_that_a_page_shows_is_composed() -> None:
    """Of a sweep, its first job; lines with placeholders are no commands."""
    read = 0
    for text in TEXTS:
        for line in COMMAND.findall(text.read_text(encoding="utf-8")):
            shown = re.split(" #| &&", line.replace("\\\n", " "))[0]
            if "=" not in line or re.search(r"\b[A-Z]{3,}|\.\.\.|\(fkl|\[|'|<|\$|\\$", shown):
                continue
            own = [folder for folder in [text.parent / "my_conf"] if "--config-dir" in shown and folder.is_dir()]
            words = [word for word in shlex.split(shown) if not word.startswith(("-", "my_conf", "hydra"))]
            if "--config-dir" not in shown or own:
                compose_config(*(each_value(word, Choices(*own).names)[0] for word in words), folders=own)
                read += 1
    assert read > 70


@pytest.mark.parametrize("group", sorted({*GROUPS} - {*REQUIRED}))
def test_null_is_the_choice_of_nothing_in_every_group_that_may_be_empty(group: str) -> None:
    """The choice's keys wait for it."""
    assert (
        compose_config(f"{group}=null")
        == compose_config(f"~{group}")
        == compose_config(f"{group}=null", f"{group}.key=1")
    )


def test_a_sweep_plays_with_and_without_a_condition(fkl: Callable[..., Answer]) -> None:
    words = ("algo=vm_kofl", "dataset=diabetes", "kernels.D=4", "replicates=1", "figures=none")
    swept = ("privacy=null,local", "privacy.clip=1", "secure=null", "compression=null")
    assert "2 runs: 2 finished\n" in fkl("run", "-m", *words, *swept).out
    assert "finished already" in fkl("run", *words, "logger=null").out


CLASSES = {
    f"{group}={name}": yaml.safe_load(file.read_text())["_target_"]
    for group in GROUPS
    for name, file in choice_files(group).items()
    if "_target_: " in file.read_text() and group not in ("dataset", "logger")
}
"""The class of each choice that names one; a data set's layout is its content, a logger's node lies deeper."""


def test_a_key_has_one_default_on_the_command_line_and_in_python() -> None:
    """A key that the class demands, or another choice of it, has none."""
    paths = {"topology=edge_list": ("topology.path=x",), "participation=trace": ("participation.path=x",)}
    for word, name in CLASSES.items():
        target = get_class(name)
        chosen = resolve_config(compose_config(word, *paths.get(word, ())))[word.partition("=")[0]]
        defaults = {one.name: one.default for one in fields(target) if one.default is not MISSING}
        try:
            target()
        except (TypeError, FklError):  # its defaults are no object: they stand for "must be given"
            defaults = {key: value for key, value in defaults.items() if value not in (None, 0.0)}
        assert {key: chosen.get(key) for key in defaults} == defaults, word


def test_a_published_variant_is_its_method_with_other_values() -> None:
    """The same keys, and not the same values: one that the text has by now would be no variant."""
    for name in experiments.paper_choice_descriptions("as_published"):
        stated, published = compose_config(f"algo={name}"), compose_config(f"+as_published={name}")
        stated, published = ({key: one.get(key) or {} for key in ("algo", "kernels")} for one in (stated, published))
        assert stated["algo"]["_target_"] == published["algo"]["_target_"]
        assert [{*node} for node in stated.values()] == [{*node} for node in published.values()]
        assert stated != published


SLIPS = {
    "algo=pof_mlk": ("algo=pof_mlk: no such choice", "did you mean pof_mkl? all of them: fkl list algo"),
    "seed=1 dataset=DIABETESS": ("dataset=DIABETESS: no such choice", "did you mean diabetes? all of them: "),
    "+experiment=nope": ("experiment=nope: no such choice", "choices: coke/..., "),
    "+experiment=pof_mkl/tabel1": ("experiment=pof_mkl/tabel1: no such choice", "did you mean pof_mkl/table1"),
    "algo.nope=1": ("algo.nope: no such key", "keys there: M, "),
    "kernels=rbf kernels.d=1": ("kernels.d: no such key", "did you mean kernels.D? keys there: D, N, "),
    "sed=1": ("sed: no such key", "did you mean seed? all keys: fkl describe settings"),
    "experiment=coke/censored": ("experiment=coke/censored: the configuration has no experiment; to add it, write", ""),
    "+topology=ring": ("topology: chosen twice, as None and ring; without + a word replaces the choice", ""),
}
"""Words that mean nothing, how the line that refuses them begins, and the help below it."""


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_is_refused_with_what_may_be_meant(words: str) -> None:
    with pytest.raises(FklError) as refused:
        compose_config(*words.split())
    said, help = SLIPS[words]
    assert str(refused.value).startswith(said)
    assert "".join(refused.value.help).startswith(help)


def test_interpolations_are_replaced_as_by_omegaconf() -> None:
    """Of keys near and far, in places of lists, of nodes, and inside text; random ones, of which some are refused."""
    values = ["${a}", "${a.b}", "${.b}", "${b.0}", "${b[1]}", "p${seed}q", "${ a.c }", "${seed}", 1, None, "7", True]

    def node(draw: Random, depth: int) -> Any:
        kind = draw.choice(("list", "mapping", *["value"] * 3)) if depth < 2 else "value"
        inner = [node(draw, depth + 1) for _ in range(2)] if kind != "value" else []
        return {"list": inner, "mapping": dict(zip("bc", inner, strict=False))}.get(kind, draw.choice(values))

    replaced = 0
    for number in range(200):
        draw = Random(number)
        config = {"a": {name: node(draw, 0) for name in "bc"}, "b": [node(draw, 0), node(draw, 0)], "seed": 3}
        try:
            theirs = OmegaConf.to_container(OmegaConf.create(config), resolve=True)
        except OmegaConfBaseException:
            with pytest.raises(FklError):
                resolve_config(config)
        else:
            assert resolve_config(config) == theirs
            replaced += "${" in str(config)
    assert replaced > 20


REFUSED = {
    "${nope}": "names nope, which is no key",
    "${seed.x}": "names seed.x, which is no key",
    "${nope:1}": "a key, or a function: full_or_half,",
    "${variable:HOME}": "an interpolation that variable can read",
    "${full_or_half:x}": "an interpolation that full_or_half can read",
    "${out}": "leads back to itself",
    "x${": "makes keys, which is not allowed",
    "${a${seed}}": "makes keys, which is not allowed",
    "???": "has no value yet: set it",
}


@pytest.mark.parametrize("written", REFUSED)
def test_an_interpolation_that_names_nothing_is_refused(written: str) -> None:
    with pytest.raises(FklError, match=f"^out\\b.*{re.escape(REFUSED[written])}"):
        resolve_config(compose_config("seed=3") | {"out": written})


def test_interpolations_have_a_limit_of_depth() -> None:
    chain: dict[str, Any] = {f"a{n}": f"${{a{n + 1}}}" for n in range(100)}
    with pytest.raises(FklError, match=r"^a0: more than 50 interpolations"):
        resolve_config(chain | {"a100": 1})
