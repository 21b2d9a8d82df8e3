"""Commands that README, the pages and SKILL.md show run, in their order; long ones are made small by more words."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import Answer, require_shown, script
from published_files import DATA, need_data

from fkl.cli.commands import commands
from fkl.config.choices import choice_descriptions
from fkl.study.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
README, SKILL = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "SKILL.md"))
SHOWN = [*dict.fromkeys(re.findall(r"(?:^    \$ |`)(fkl [a-z][^`\n]*)", README, re.MULTILINE))]
LITTLE = ("kernels.D=4", "replicates=2")
SMALL = ("dataset=diabetes", *LITTLE)
MORE = {
    "fkl run": SMALL,
    "fkl run -m": ("algo.eta=0.1", *SMALL),
    "fkl study": ("--dry-run",),
    "fkl run dataset=file": LITTLE,
    "fkl run --config-dir": LITTLE,
}
"""Words that make a command of README small: those of the longest beginning that fits."""


def commands_of(page: str, program: str = "fkl") -> list[list[str]]:
    """The words of each command of a program on a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(rf"^    (?:\$ )?{program} (.+)|`{program} ([^`]+)`", text, re.MULTILINE)
    return [shlex.split(block or inline, comments=True) for block, inline in found]


def blocks_of(page: str, language: str) -> list[str]:
    """The fenced blocks of a language on a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that README's reader has."""
    rows = [f"{i % 7},{i % 5},{i % 3 + i / 100}" for i in range(120)]
    (tmp_path / "mine.csv").write_text("\n".join(["size,age,price", *rows]))
    shutil.copytree(ROOT / "examples" / "own_method", tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples" / "studies", tmp_path / "examples" / "studies")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("command", SHOWN)
@pytest.mark.usefixtures("here")
def test_commands_of_readme_run(command: str, fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(command)[1:]
    if words[0] == "study":
        for name in ("naval", "energy", "bias"):
            need_data(name)
        monkeypatch.setenv("FKL_DATA", str(DATA))
    if words[0] == "compare":
        assert fkl("run", "-m", "algo=raker,rfomkr", "partition=stream", *SMALL).code == 0
    more = next((MORE[name] for name in sorted(MORE, key=len, reverse=True) if command.startswith(name)), ())
    answer = fkl(*words, *more)
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("target", re.findall(r"`?make ([a-z-]+)", README))
def test_targets_of_readme_exist(target: str) -> None:
    assert subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_own_files_with_sites(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """A file with a column of sites, and a file for each site as a hospital writes it."""
    wards = ("icu", "surgery", "other")
    rows = [f"{wards[i % 3]},{'fm'[i % 2]},{20 + i % 50},{i % 3 + i / 40}" for i in range(60)]
    (tmp_path / "wards.csv").write_text("\n".join(["ward,sex,age,stay", *rows]))
    (tmp_path / "sites").mkdir()
    for site in ("north", "south"):
        rows = [f"{i};N{i};{wards[i % 3]};{'' if i % 9 else 20 + i};{1 + i:02}.01.2024;{i},5" for i in range(30)]
        (tmp_path / "sites" / f"{site}.csv").write_text("\n".join(["id;name;ward;age;admitted;stay", *rows]))
    shown = [words for words in commands_of("own_data.md") if any(word.startswith("dataset.path=") for word in words)]
    assert len(shown) == 3 and {words[0] for words in shown} == {"run", "data"}
    for words in shown:
        answer = fkl(*words, *LITTLE if words[0] == "run" else ())
        assert answer.code == 0, answer.err
        assert ("2 clients" if "dataset.path=sites/*.csv" in words else "3 clients") in answer.out


@pytest.mark.slow
def test_own_method(fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its promises, and is OFMKL-Avg."""
    [method], [keys, ranges] = (blocks_of("extending.md", language) for language in ("python", "yaml"))
    (tmp_path / "my_method.py").write_text(method)
    (tmp_path / "my_conf" / "algo").mkdir(parents=True)
    (tmp_path / "my_conf" / "algo" / "my_method.yaml").write_text(keys)
    monkeypatch.syspath_prepend(str(tmp_path))
    require_printed((ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), fkl, tmp_path)
    small = ("dataset=diabetes", *LITTLE)
    mine = ("--config-dir", "my_conf", "algo=my_method")
    runs = [fkl("run", *words, *small) for words in (mine, ("algo=ofmkl_avg", "algo.eta=0.3"))]
    errors = {re.search("mse (.*?) ", run.out)[1] for run in runs}  # type: ignore[index]
    assert len(errors) == 1
    (tmp_path / "my_conf" / "tune.yaml").write_text(ranges)
    (tmp_path / "study.yaml").write_text("config_dir: my_conf\nmethods: [my_method, vm_kofl]\ndatasets: [diabetes]\n")
    plan = Plan.read(tmp_path / "study.yaml")
    assert {*plan.search_space(plan.datasets[0], plan.methods[0])} == {"algo.eta", "algo.lam"}


@pytest.mark.slow
def test_a_table_in_latex(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """From the tutorial's sweep, with tests of the methods."""
    shown = [words for words in commands_of("tutorial.md") if words[0] in ("run", "list", "describe", "compare")]
    shown = [words for words in shown if not any(word.isupper() or "=FILE" in word or "my_" in word for word in words)]
    shown = [words for words in shown if words not in (["run", "-m", "..."], ["list", "algo"])]
    assert [words[0] for words in shown] == ["run", "list", "describe", "describe", "run", "compare"]
    for words in shown:
        answer = fkl(*words, *("dataset=diabetes", "kernels.D=4") if words[0] == "run" else ())
        assert answer.code == 0, answer.err
    table = (tmp_path / "outputs" / "comparison" / "pivot.tex").read_text()
    assert all(words in table for words in (r"\begin{tabular}", r"\toprule", "POF-MKL", "vM-KOFL", "OFMKL-Avg"))
    assert "is best" in answer.out
    assert fkl("compare", "algo.eta=0.1,0.3", "--metric", "mse", "--by", "seed").code == 0  # of paper_table.md


def test_the_study_of_the_page_is_counted(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("naval", "energy", "bias"):
        need_data(name)
    monkeypatch.setenv("FKL_DATA", str(DATA))
    [study, lists] = blocks_of("paper_table.md", "yaml")
    (tmp_path / "study.yaml").write_text(study)
    answer = fkl("study", "study.yaml", "--dry-run")
    assert answer.code == 0 and answer.out.startswith("study.yaml: 4,500 runs\n"), answer
    (tmp_path / "lists.yaml").write_text(lists)
    plan = Plan.read(tmp_path / "lists.yaml")
    assert [part.name for part in plan.methods][1:] == ["COKE 0.5", "OFMKL-Avg (sign)"]
    assert [part.name for part in plan.datasets][2] == "Wards"


NEEDS_CLUSTER = ("hydra/launcher=submitit_slurm", "hydra/launcher=ray")
SMALLER = {
    "seed=0,1,2": ("seed=0",),
    "engine=jax": ("dataset=diabetes",),
    "hydra/launcher=joblib": ("algo=ofmkl_avg", "seed=0,1", "dataset=diabetes", "hydra.launcher.n_jobs=2"),
    "hydra/sweeper=optuna": ("dataset=diabetes", "hydra.sweeper.n_trials=2", "algo.iterations=20"),
    "learners=federated,alone,pooled": ("dataset=diabetes",),
    "topology=ring": ("algo.iterations=50",),
    "partition.clients=1000000": ("dataset.rows=20000", "partition.clients=2000"),
}


SWEEPS = [words for words in commands_of("sweeps.md") if "=" in " ".join(words)]
SWEEPS += [words for words in commands_of("choosing.md") if words[0] == "run"]
SWEEPS = [pytest.param(words, marks=[pytest.mark.slow] * ("dataset=air" in words)) for words in SWEEPS]


@pytest.mark.parametrize("words", SWEEPS, ids=" ".join)
def test_commands_of_sweeps_run(words: list[str], fkl: Callable[..., Answer], tmp_path: Path) -> None:
    if any(word in words for word in NEEDS_CLUSTER):
        pytest.skip("it needs a cluster")
    if "engine=jax" in words and words[0] == "run":
        pytest.importorskip("jax")
    (tmp_path / "own_logger.py").write_text(blocks_of("sweeps.md", "python")[0])
    smaller = [word for key, more in SMALLER.items() if key in words for word in more]
    answer = fkl(*words, *(LITTLE if words[0] == "run" else []), *smaller)
    if words[0] == "plan" and "engine=jax" in words:  # a plan that is refused, in the line that the page shows
        assert answer.code == 2 and answer.err.strip() in (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    else:
        assert answer.code == 0, answer.err
    assert "own_logger" not in " ".join(words) or "round 2: mse" in answer.out


def require_printed(page: str, fkl: Callable[..., Answer], folder: Path) -> None:
    """Play the console blocks of a page in their order; `...` stands for any lines, all others come in their order."""
    blocks = "".join(re.findall(r"```console\n((?s:.*?))```", page)).replace("\\\n", " ")
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE):
        program, *words = shlex.split(command)
        if program == "fkl":
            answer = fkl(*(part for word in words for part in (sorted(map(str, Path().glob(word))) or [word])))
            assert answer.code == 0, answer.err
            found = answer.out
        else:
            assert program == "python"
            ended = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            found = ended.stdout
        require_shown(found, shown)


@pytest.mark.slow
def test_privacy_and_conditions_run(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """One command for each condition; the first prints what its page shows."""
    require_printed((ROOT / "docs" / "privacy.md").read_text(encoding="utf-8"), fkl, tmp_path)
    shown = [words for words in commands_of("privacy.md") if words[0] == "run" and "..." not in words]
    assert len(shown) >= 10
    for words in shown:
        answer = fkl(*words, "dataset=diabetes", *LITTLE)
        assert answer.code == 0, f"{words}: {answer.err}"


@pytest.mark.slow
def test_three_hospitals_print_what_their_page_shows(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """From their files to a model, and the same at sites, each in a process of its own."""
    pytest.importorskip("flwr")
    shutil.copytree(ROOT / "examples" / "hospitals", tmp_path, dirs_exist_ok=True)
    require_printed((ROOT / "docs" / "flower.md").read_text(encoding="utf-8"), fkl, tmp_path)


@pytest.mark.parametrize("name", ["SKILL.md", "llms.txt"])
def test_files_for_agents_are_as_their_script_writes_them(name: str) -> None:
    """If not: python scripts/agent_files.py."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert script("agent_files").FILES[name]() == text
    assert {*choice_descriptions("algo"), *choice_descriptions("dataset")} <= {*re.findall(r"\w+", text)}
    assert name == "llms.txt" or all(f"`fkl {command}`" in text for command in commands.commands)


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_commands_of_the_skill_run(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """One after the other in one folder; the study has fewer trials and seeds."""
    [study] = re.findall(r"```yaml\n(.*?)```", SKILL, re.DOTALL)
    plan = yaml.safe_load(study)
    plan["tune"]["trials"], plan["judge"]["seeds"] = 2, 3
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(plan))
    for command in re.findall(r"^    \$ (.+)", SKILL, re.MULTILINE):
        program, *words = shlex.split(command)
        if program == "python":
            subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)
        else:
            answer = fkl(*words)
            assert answer.code == 0, f"{command}: {answer.err}"
