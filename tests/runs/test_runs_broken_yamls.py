"""Configuration folders that are another's: one line names the file or the key, nothing is written, nothing runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken.refusal import files, require_refused
from conftest import SMALL, Answer

POF = "_target_: fkl.algorithms.federated.pof_mkl.PofMkl\n"
"""A good algorithm, so that what else its file says is what is refused."""
X = r"conf/algo/x\.yaml"
BOMB = "a0: &a0 lol\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(10))
DOUBLING = "a0: lol\n" + "".join(f"a{n + 1}: ${{algo.a{n}}}${{algo.a{n}}}\n" for n in range(60))
MODULES = {"evil": "raise RuntimeError('ran')", "ends": "raise SystemExit(0)", "halved": "class"}
"""What lies in the working directory; each does something that tells when it is run."""
ALGO: dict[str, tuple[str | bytes, str]] = {
    # What is no YAML of keys and values
    "tab": (f"{POF}\tM: 2\n", rf"{X}, line 2: found character '\\t'"),
    "duplicate key": (f"{POF}M: 1\nM: 2\n", rf"{X}, line 3: found duplicate key M"),
    "escape code": (f"{POF}M: \x1b[31m2\n", rf"{X}, line 2: 0x1b is no character of a text"),
    "nothing": ("# nothing\n", f"{X}: empty; must be keys and values"),
    "a list": ("- a\n- b\n", f"{X}: a list; must be keys and values"),
    "open quote": (f"{POF}M: 'two\n", rf"{X}, line \d: found unexpected end of stream"),
    # Tags that name types, what hangs, or fills the memory
    "python object": (f"{POF}M: !!python/object/apply:os.system [ls]\n", f"{X}, line 2: .*os.system: no such type"),
    "alias bomb": (POF + BOMB, f"{X}.*more than 30000 keys and values"),
    "alias of itself": (f"{POF}M: &a [*a]\n", f"{X}, line 2: an alias inside what it names"),
    "deep lists": (f"{POF}M: {'[' * 50_000}\n", f"{X}: nested more than 50 deep"),
    "long file": (POF + "# x\n" * 70_000, f"{X}: longer than 262144 bytes"),
    "long number": (f"{POF}M: {'9' * 5000}\n", f"{X}, line 2: a number of more than 1000 letters"),
    "doubling words": (POF + DOUBLING, r"algo\.a\d+: stands for more than"),
    "long chain": (POF + "".join(f"a{n}: ${{algo.a{n + 1}}}\n" for n in range(5000)), r"a\d+: stands for another key"),
    # What cannot be composed
    "unknown key": (f"{POF}nope: 3\n", "algo.nope: no such key"),
    "open interpolation": (f"{POF}M: ${{\n", "algo.M: an interpolation that makes keys"),
    "odd package": (f"# @package algo..x\n{POF}", "x.yaml: @package algo..x: must be _global_ or keys with dots"),
    "defaults of itself": (f"defaults: [x, _self_]\n{POF}", "algo/x.yaml: its defaults lead back to itself"),
    "unknown default": (f"defaults: [nope, _self_]\n{POF}", "algo=nope: no such choice"),
    "defaults no list": (f"defaults: nope\n{POF}", f"{X}: defaults=nope: must be a list"),
    "defaults outside": (f"defaults: [../../../../etc/passwd]\n{POF}", "passwd: no such choice"),
    # Targets, of which none may run
    "a target that raises": ("_target_: evil.Evil\n", r"evil.py, line 1: RuntimeError: ran\)"),
    "a target that ends": ("_target_: ends.Ends\n", r"ends.py, line 1: SystemExit: 0\)"),
    "a target that is no Python": ("_target_: halved.Halved\n", r"halved.py, line 1\)"),
    "a target inside": (f"{POF}M: {{_target_: evil.Evil}}\n", "algo.M=.*: must be an integer"),
}
NOT_IN_A_FILE = "experiment/x.yaml: hydra=.*: must be sweeper.params alone, what a sweep varies"
EXPERIMENT = {
    # What would run code, or reach beyond a run
    "hydra: {callbacks: {x: {_target_: joblib.load, filename: evil.pkl}}}": NOT_IN_A_FILE,
    "hydra: {launcher: {_target_: os.system}}": NOT_IN_A_FILE,
    "hydra: {job: {env_set: {LD_PRELOAD: ./evil.so}}}": NOT_IN_A_FILE,
    "hydra: 5": "experiment/x",
    "hydra: {sweeper: {params: {+hydra.callbacks.x._target_: joblib.load}}}": (
        r"hydra.sweeper.params.\+hydra.*: must be values of a key of runs"
    ),
    "hydra: {sweeper: {params: {seed: range(0)}}}": r"seed=range\(0\): no values",
    r'out: "a\0b"': "out=.*: must be .*, without control",
    r'precision: "\e]0;mine\a"': r"precision=\\x1b\]0;mine\\x07: must be",
    r'scaling: "a\u202eb"': r"scaling=a\\u202eb: must be",
    "seed: {a: b}": "seed=.*: must be an integer",
    "seed: ${oc.create:'[1,2]'}": "an interpolation that makes keys",
}


@pytest.fixture
def refused(fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Require that a run with a choice of this content is refused."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)

    def require(said: str, name: str, content: str | bytes, *words: str) -> None:
        (tmp_path / "conf" / name).parent.mkdir(parents=True)
        (tmp_path / "conf" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        given = files(tmp_path)
        require_refused(fkl("run", "--config-dir", "conf", *SMALL, *words), tmp_path, said, content[:99], given)

    return require


@pytest.mark.parametrize("what", ALGO)
def test_a_broken_choice_is_refused(refused: Callable[..., None], what: str) -> None:
    content, said = ALGO[what]
    refused(said, "algo/x.yaml", content, "algo=x")


@pytest.mark.parametrize("text", EXPERIMENT)
def test_a_broken_experiment_is_refused(refused: Callable[..., None], text: str) -> None:
    words = ("-m", "+experiment=x") if "params" in text else ("+experiment=x",)
    refused(EXPERIMENT[text], "experiment/x.yaml", f"# @package _global_\n{text}\n", *words)


def test_no_package_is_hydras(refused: Callable[..., None]) -> None:
    text = "# @package hydra.callbacks.x\n_target_: os.system\n"
    refused("@package hydra.callbacks.x: must not be of hydra's", "experiment/x.yaml", text, "+experiment=x")
