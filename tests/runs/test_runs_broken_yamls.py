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
ALGO = [
    # What is no YAML of keys and values
    (f"{POF}\tM: 2\n", rf"{X}, line 2: found character '\\t'"),
    (f"{POF}M: 1\nM: 2\n", rf"{X}, line 3: found duplicate key M"),
    ("# nothing\n", f"{X}: empty; must be keys and values"),
    # Tags that name types, what hangs, or fills the memory
    (f"{POF}M: !!python/object/apply:os.system [ls]\n", f"{X}, line 2: .*os.system: no such type"),
    (POF + BOMB, f"{X}.*more than 30000 keys and values"),
    (f"{POF}M: &a [*a]\n", f"{X}, line 2: an alias that contains itself"),
    (f"{POF}M: {'[' * 50_000}\n", f"{X}: nested more than 50 deep"),
    (POF + "# x\n" * 70_000, f"{X}: longer than 262144 bytes"),
    (POF + DOUBLING, r"algo\.a\d+: has more than"),
    # What cannot be composed
    (f"{POF}nope: 3\n", "algo.nope: no such key"),
    (f"defaults: [x, _self_]\n{POF}", "algo/x.yaml: its defaults lead back to itself"),
    (f"defaults: [nope, _self_]\n{POF}", "algo=nope: no such choice"),
    (f"defaults: [../../../../etc/passwd]\n{POF}", "passwd: no such choice"),
    # Targets, of which none may run
    ("_target_: evil.Evil\n", r"evil.py, line 1: RuntimeError: ran\)"),
    ("_target_: ends.Ends\n", r"ends.py, line 1: SystemExit: 0\)"),
    ("_target_: halved.Halved\n", r"halved.py, line 1\)"),
    (f"{POF}M: {{_target_: evil.Evil}}\n", "algo.M=.*: must be an integer"),
]
"""Contents of conf/algo/x.yaml, and what is said of them."""
NOT_IN_A_FILE = "experiment/x.yaml: hydra=.*: must be only sweeper.params, the keys of a sweep"
EXPERIMENT = {
    # What would run code, or reach beyond a run
    "hydra: {callbacks: {x: {_target_: joblib.load, filename: evil.pkl}}}": NOT_IN_A_FILE,
    "hydra: {job: {env_set: {LD_PRELOAD: ./evil.so}}}": NOT_IN_A_FILE,
    "hydra: {sweeper: {params: {+hydra.callbacks.x._target_: joblib.load}}}": (
        r"hydra.sweeper.params.\+hydra.*: must be values of a key of fkl"
    ),
    "hydra: {sweeper: {params: {seed: range(0)}}}": r"seed=range\(0\): no values",
    r'out: "a\0b"': "out=.*: must be .*, without control",
    r'scaling: "a\u202eb"': r"scaling=a\\u202eb: must be",
    "seed: {a: b}": "seed=.*: must be an integer",
    "seed: ${oc.create:'[1,2]'}": "must be a key, or a function: full_or_half",
}
"""Lines of conf/experiment/x.yaml."""
HEAD = "# @package _global_\n"
CASES = [("algo", *case) for case in ALGO]
CASES += [("experiment", f"{HEAD}{text}\n", said) for text, said in EXPERIMENT.items()]
OF_HYDRA = "# @package hydra.callbacks.x\n_target_: os.system\n"
CASES.append(("experiment", OF_HYDRA, "@package hydra.callbacks.x: must not be a node of Hydra's"))


@pytest.mark.parametrize(("group", "content", "said"), CASES, ids=[f"{group} {said}" for group, _, said in CASES])
def test_a_broken_choice_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, content: str, said: str
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "conf" / group).mkdir(parents=True)
    (tmp_path / "conf" / group / "x.yaml").write_text(content)
    given = files(tmp_path)
    words = ["algo=x"] if group == "algo" else ["+experiment=x", *["-m"] * ("params" in content)]
    require_refused(fkl("run", "--config-dir", "conf", *SMALL, *words), tmp_path, said, content[:99], given)
