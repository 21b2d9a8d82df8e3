"""What fkl composes is what Hydra composes of the same files and words; and what is plain is read as Hydra reads it."""

import re
import shlex
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import hydra
import pytest
import yaml
from conftest import ALGORITHMS, Answer
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_class
from omegaconf import OmegaConf

from fkl import conf_folder
from fkl.basics.errors import FklError
from fkl.config import experiments
from fkl.config.choices import GROUPS, REQUIRED, Choices, files
from fkl.config.compose import PLAIN, compose, each_value, read_words
from fkl.config.loading import resolved
from fkl.papers import PAPERS
from fkl.papers.jobs import jobs

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
COMMAND = re.compile(r"\bfkl run ((?:[^\n`]|\\\n)+)")
FOLDERS = {file.parent: file.parent / "my_conf" for file in TEXTS if (file.parent / "my_conf").is_dir()}
OPTION = re.compile(r"(-m|--multirun|--fail-fast|--cfg|job|--resolve|-h|--help)$")
OURS = re.compile(r"\bmetrics\.|\bstop_when=")
"""Keys whose words Hydra's grammar refuses: a new key without a +, and < in a value."""
MORE = [
    *(f"algo={algo} seed=3" for algo in ALGORITHMS),
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
"""Besides those that are written somewhere."""


def written() -> dict[str, list[str]]:
    """All command lines that the texts show, as words without options; of a sweep, those of its first job."""
    found = {}
    for text in TEXTS:
        for line in COMMAND.findall(text.read_text(encoding="utf-8")):
            try:
                words = shlex.split(line.replace("\\\n", " ").partition(" #")[0])
            except ValueError:  # a sentence with an apostrophe in it
                continue
            if (
                "=" in line
                and not OURS.search(line)
                and not re.search(r"[A-Z]{3,}|\.\.\.|\(fkl|\[", " ".join(word.partition("=")[0] for word in words))
            ):
                found[" ".join(words)] = words
    return found


LINES = written() | {line: shlex.split(line) for line in MORE}


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The papers' choices as the files that Hydra would want."""
    folder = tmp_path_factory.mktemp("papers")
    for group, options in experiments.choices().items():
        for name, node in options.items():
            file = folder / group / f"{name}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            keys = {key: value for key, value in node.items() if key not in experiments.NO_CONFIGURATION}
            file.write_text("# @package _global_\n" + yaml.safe_dump(keys, sort_keys=False))
    return folder


def by_hydra(words: list[str], *folders: Path) -> Any:
    """What Hydra itself composes."""
    search = ",".join(f"file://{folder}" for folder in folders)
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return OmegaConf.to_container(hydra.compose("config", [*words, f"hydra.searchpath=[{search}]"]))


@pytest.mark.parametrize("line", LINES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_command_line_is_composed_as_by_hydra(line: str, papers: Path) -> None:
    """Each that README, docs and examples show; a line that one of the two refuses is refused by both."""
    words = [word for word in LINES[line] if not OPTION.fullmatch(word) and not word.startswith(("hydra", "my_conf"))]
    own = [folder for folder in FOLDERS.values() if "--config-dir" in words]
    words = [word for word in words if word != "--config-dir"]
    try:
        first = [each_value(word, Choices(*own).names)[0] for word in words]
        composed = compose(*first, folders=own)
    except FklError:
        with pytest.raises(Exception):  # noqa: B017 # whatever it is
            by_hydra(words, *own, papers)
        return
    assert list(composed.items()) == list(by_hydra(first, *own, papers).items())


@pytest.mark.parametrize("group", sorted({*GROUPS} - {*REQUIRED}))
def test_null_is_the_choice_of_nothing_in_every_group_that_may_be_empty(group: str) -> None:
    """So that a sweep over null and a choice plays with and without it; the choice's keys wait for it."""
    assert compose(f"{group}=null") == compose(f"~{group}") == compose(f"{group}=null", f"{group}.key=1")


def test_a_sweep_plays_with_and_without_a_condition(fkl: Callable[..., Answer]) -> None:
    words = ("algo=vm_kofl", "dataset=diabetes", "kernels.D=4", "replicates=1", "figures=none")
    swept = ("privacy=null,local", "privacy.clip=1", "secure=null", "compression=null")
    assert "2 runs: 2 finished\n" in fkl("run", "-m", *words, *swept).out
    assert "finished already" in fkl("run", *words, "logger=null").out


CLASSES = {
    f"{group}={name}": yaml.safe_load(file.read_text())["_target_"]
    for group in GROUPS
    for name, file in files(group).items()
    if "_target_: " in file.read_text() and group not in ("dataset", "logger")
}
"""The class of each choice that names one; a data set's layout is its content, a logger's node lies deeper."""


@pytest.mark.parametrize("word", CLASSES)
def test_a_key_has_one_default_on_the_command_line_and_in_python(word: str) -> None:
    """So that the same keys mean the same in both; a key that the class demands, or another choice of it, has none."""
    target = get_class(CLASSES[word])
    paths = {"topology=edge_list": ("topology.path=x",), "participation=trace": ("participation.path=x",)}
    chosen = resolved(compose(word, *paths.get(word, ())))[word.partition("=")[0]]
    defaults = {one.name: one.default for one in fields(target) if one.default is not MISSING}
    try:
        target()
    except (TypeError, FklError):  # its defaults are no object, so they stand for "must be given"
        defaults = {key: value for key, value in defaults.items() if value not in (None, 0.0)}
    assert {key: chosen.get(key) for key in defaults} == defaults


@pytest.mark.parametrize("name", [name for paper in PAPERS for name in experiments.experiments(paper)])
def test_a_paper_s_job_is_composed_as_by_hydra(name: str, papers: Path) -> None:
    """The last one of each experiment, as that is furthest from the defaults."""
    job = jobs(name)[-1]
    composed = by_hydra([*job.words], papers)
    del composed["paths"]
    assert job.config == OmegaConf.to_container(OmegaConf.create(composed), resolve=True)


@pytest.mark.parametrize(
    "word",
    ["a=b", "+a.b_c=d-e/f.g", "++a/b=c", "a=1", "a=-2", "a=+3", "a=007", "a=1.50", "a=1e-3", "a=-1E5", "a=.5", "a=5.",
     "a=1_000", "a=True", "a=null", "a=NaN", "a=inf", "a=none", "a=e1", "a=1e", "a=1-3", "a=1.2.3", "a=_x", "a=",
     "a=x.yaml", "a=../x", "a=x:y", "a=a b", "a=9999999999999999999", "a=trueish", "a=1/3", "a=x..", "a=x--"],
)  # fmt: skip
def test_a_plain_word_is_read_as_hydra_reads_it(word: str) -> None:
    [override] = OverridesParser.create().parse_overrides([word])
    [read] = read_words([word])
    assert (read.sign + read.key, repr(read.value)) == (override.get_key_element(), repr(override.value()))


def test_some_words_are_plain() -> None:
    assert [bool(PLAIN.fullmatch(word)) for word in ("algo=coke", "algo.eta=1e-3", "a=null", "a='b'", "~a")] == [
        *(True, True),
        *(False, False, False),
    ]
