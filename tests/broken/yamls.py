"""Configuration folders that are broken or hostile, and what must be said about each; nothing of them may run."""

from typing import NamedTuple

POF = "_target_: fkl.algorithms.federated.pof_mkl.PofMkl\n"
"""A good algorithm, so that what else its file says is what is refused."""


class Folder(NamedTuple):
    """Files of a folder that `--config-dir` names, the words of a call, and a pattern of the line that refuses it."""

    said: str
    content: str | bytes = ""
    call: str = "algo=x"
    file: str = "algo/x.yaml"
    more: tuple[tuple[str, str], ...] = ()


def setting(said: str, text: str) -> Folder:
    """A choice that sets keys outside its group, as experiments do."""
    return Folder(said, f"# @package _global_\n{text}\n", "+experiment=x", "experiment/x.yaml")


def to_hydra(said: str, text: str, default: str = "", call: str = "+experiment=x") -> Folder:
    """A choice that speaks to Hydra itself."""
    defaults = f"defaults:\n{default}\n" if default else ""
    return setting(said, f"{defaults}hydra: {text}" if text == "5" else f"{defaults}hydra:\n  {text}")._replace(
        call=call
    )


def bomb(levels: int, width: int) -> str:
    """Each line stands for the one above `width` times."""
    lines = ["a0: &a0 lol"]
    for level in range(levels):
        lines.append(f"a{level + 1}: &a{level + 1} [{', '.join([f'*a{level}'] * width)}]")
    return "\n".join(lines) + "\n"


def merge_bomb(levels: int) -> str:
    """Mappings that merge the one above twice."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(levels):
        lines.append(f"a{level + 1}: &a{level + 1} {{y: {{<<: *a{level}}}, z: {{<<: *a{level}}}}}")
    return "\n".join(lines) + "\n"


def doubling(levels: int) -> str:
    """Interpolations that each stand for the one before twice."""
    lines = ["a0: lolololol"]
    lines += [f"a{level + 1}: ${{algo.a{level}}}${{algo.a{level}}}" for level in range(levels)]
    return "\n".join(lines) + "\n"


def doubling_lists(levels: int) -> str:
    """The same with lists."""
    lines = ["a0: [lol]"]
    lines += [f"a{level + 1}: ['${{algo.a{level}}}', '${{algo.a{level}}}']" for level in range(levels)]
    return "\n".join(lines) + "\n"


X = r"conf/algo/x\.yaml"
NOT_IN_A_FILE = "experiment/x.yaml: hydra=.*: must be sweeper.params alone, what a sweep varies"
FOLDERS: dict[str, Folder] = {
    # What is no YAML
    "tab": Folder(rf"{X}, line 2: found character '\\t'", f"{POF}\tM: 2\n"),
    "tab after a key": Folder(rf"{X}, line 2: ", f"{POF}M:\t\t- 2\n\t- 3\n"),
    "duplicate key": Folder(rf"{X}, line 3: found duplicate key M", f"{POF}M: 1\nM: 2\n"),
    "duplicate target": Folder(rf"{X}, line 2: found duplicate key _target_", POF + POF),
    "utf-16": Folder(rf"{X}, line 1: byte 0xff is not text in UTF-8", POF.encode("utf-16")),
    "utf-32": Folder(rf"{X}, line 1: byte 0xff is not text in UTF-8", POF.encode("utf-32")),
    "latin-1": Folder(rf"{X}, line 2: byte 0xfc is not text in UTF-8", f"{POF}# für\n".encode("latin-1")),
    "cut in a letter": Folder(rf"{X}, line 2: byte 0xc3 is not text", f"{POF}# ü".encode()[:-1]),
    "binary": Folder(rf"{X}, line 1: byte 0x80 is not text", b"\x80\x04\x95" + bytes(range(256))),
    "zeros": Folder(rf"{X}, line 1: 0x0 is no character of a text", bytes(100)),
    "escape code": Folder(rf"{X}, line 2: 0x1b is no character of a text", f"{POF}M: \x1b[31m2\n"),
    "bell": Folder(rf"{X}, line 2: 0x7 is no character of a text", f"{POF}M: \a\n"),
    "gzip": Folder(rf"{X}, line 1: byte 0x8b is not text", b"\x1f\x8b\x08\x00"),
    "pickle": Folder(rf"{X}, line 1: byte 0x80 is not text", b"\x80\x04cos\nsystem\n(S'touch ran'\ntR."),
    "empty": Folder(f"{X}: empty; must be keys and values", ""),
    "blank": Folder(f"{X}: empty", "\n\n  \n"),
    "comments only": Folder(f"{X}: empty", "# nothing\n# at all\n"),
    "byte order mark only": Folder(f"{X}: empty", "\ufeff"),
    "null": Folder(f"{X}: a single value; must be keys and values", "null\n"),
    "a word": Folder(f"{X}: a single value", "pof_mkl\n"),
    "a number": Folder(f"{X}: a single value", "5\n"),
    "a list": Folder(f"{X}: a list; must be keys and values", "- a\n- b\n"),
    "an empty list": Folder(f"{X}: a list", "[]\n"),
    "no keys": Folder(f"{X}: empty", "{}\n"),
    "two documents": Folder(f"{X}, line 2: but found another document", f"{POF}---\n{POF}"),
    "only a separator": Folder(f"{X}: a single value", "---\n"),
    "open quote": Folder(rf"{X}, line \d: found unexpected end of stream", f"{POF}M: 'two\n"),
    "open bracket": Folder(rf"{X}, line \d: ", f"{POF}M: [1, 2\n"),
    "open brace": Folder(rf"{X}, line \d: ", f"{POF}M: {{a: 1\n"),
    "bad indent": Folder(rf"{X}, line 2: ", f"{POF}  M: 2\n"),
    "no colon": Folder(rf"{X}, line \d: ", f"{POF}M 2\n"),
    "a colon in a value": Folder(rf"{X}, line 2: mapping values are not allowed here", f"{POF}M: a: 2\n"),
    "at sign": Folder(rf"{X}, line 2: found character '@'", f"{POF}M: @two\n"),
    "backtick": Folder(rf"{X}, line 2: found character '`'", f"{POF}M: `ls`\n"),
    "percent": Folder(rf"{X}, line 2: found character '%'", f"{POF}M: %s\n"),
    "bad escape": Folder(rf"{X}, line 2: found unknown escape character 'q'", f'{POF}M: "\\q"\n'),
    "no such alias": Folder(rf"{X}, line 2: found undefined alias 'nope'", f"{POF}M: *nope\n"),
    "twice anchored": Folder(rf"algo\.b: no such key|{X}", f"{POF}M: &a 1\nb: &a 2\n"),
    "bad directive": Folder(rf"{X}, line 1: ", "%YAML 9.9\n---\n" + POF),
    # Tags that name types
    "python object": Folder(
        rf"{X}, line 2: python/object/apply:os.system: no such type", f"{POF}M: !!python/object/apply:os.system [ls]\n"
    ),
    "python name": Folder(rf"{X}, line 2: .*: no such type", f"{POF}M: !!python/name:os.system\n"),
    "python module": Folder(rf"{X}, line 2: .*: no such type", f"{POF}M: !!python/module:os\n"),
    "a path": Folder(rf"{X}, line 2: .*: no such type", f"{POF}M: !!python/object/apply:pathlib.Path [x]\n"),
    "own tag": Folder(rf"{X}, line 2: !own: no such type; there are bool", f"{POF}M: !own 2\n"),
    "bytes": Folder(rf"{X}, line 2: binary: no such type", f"{POF}M: !!binary aGk=\n"),
    "a set": Folder(rf"{X}, line 2: set: no such type", f"{POF}M: !!set {{a, b}}\n"),
    "a time": Folder(rf"{X}, line 2: timestamp: no such type", f"{POF}M: !!timestamp 2020-01-01\n"),
    "a tagged root": Folder(rf"{X}, line 1: !x: no such type", f"!x\n{POF}"),
    "a default value": Folder(rf"{X}, line 2: value: no such type", f"{POF}M: =\n"),
    "wrong tag": Folder(rf"{X}.*: ", f"{POF}M: !!int two\n"),
    # What hangs, or fills the memory
    "alias bomb": Folder(f"{X}.*more than 30000 keys and values", POF + bomb(10, 10)),
    "wide alias bomb": Folder(f"{X}.*more than 30000 keys and values", POF + bomb(2, 400)),
    "merge bomb": Folder(f"{X}.*more than 30000 keys and values", POF + merge_bomb(30)),
    "long words under aliases": Folder(
        f"{X}.*more than 30000", f"{POF}a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 2000)}]\n"
    ),
    "alias of itself": Folder(f"{X}, line 2: an alias inside what it names", f"{POF}M: &a [*a]\n"),
    "aliases of each other": Folder(f"{X}, line 2: an alias inside", f"{POF}M: &a {{b: &b [*a]}}\n"),
    "merged into itself": Folder(f"{X}, line 2: an alias inside", f"{POF}M: &a {{<<: *a}}\n"),
    "deep lists": Folder(f"{X}: nested more than 50 deep", f"{POF}M: {'[' * 50_000}\n"),
    "deep keys": Folder(f"{X}: nested more than 50 deep", POF + "".join(f"{' ' * n}a:\n" for n in range(400))),
    "long file": Folder(f"{X}: longer than 262144 bytes", POF + "# x\n" * 70_000),
    "many keys": Folder(f"{X}.*more than 30000", POF + "M: [" + "1," * 50_000 + "]\n"),
    "long number": Folder(f"{X}, line 2: a number of more than 1000 letters", f"{POF}M: {'9' * 5000}\n"),
    "doubling words": Folder(r"algo\.a\d+: stands for more than", POF + doubling(60)),
    "doubling lists": Folder(r"algo\.a\d+: stands for more than", POF + doubling_lists(60)),
    "a chain of interpolations": Folder(
        r"algo\.a\d+: stands for another key", POF + "".join(f"a{n}: ${{algo.a{n + 1}}}\n" for n in range(5000))
    ),
    # What Hydra and OmegaConf cannot compose
    "list as a key": Folder(f"{X}", f"{POF}[1, 2]: 3\n"),
    "null as a key": Folder(f"{X}", f"{POF}null: 3\n"),
    "a number as a key": Folder("algo.3: no such key", f"{POF}3: 3\n"),
    "a truth as a key": Folder("algo.True: no such key", f"{POF}yes: 3\n"),
    "unknown key": Folder("algo.nope: no such key", f"{POF}nope: 3\n"),
    "open interpolation": Folder("algo.M: an interpolation that makes keys", f"{POF}M: ${{\n"),
    "empty interpolation": Folder("algo.M: no viable alternative at input", f"{POF}M: ${{}}\n"),
    "unknown interpolation": Folder("algo.M: Interpolation key 'nope' not found", f"{POF}M: ${{nope}}\n"),
    "unknown resolver": Folder("algo.M: Unsupported interpolation type nope", f"{POF}M: ${{nope:1}}\n"),
    "its own interpolation": Folder("algo.M: ", f"{POF}M: ${{algo.M}}\n"),
    "interpolation of each other": Folder("algo.(M|xi): ", f"{POF}M: ${{algo.xi}}\nxi: ${{algo.M}}\n"),
    "missing value": Folder("algo.M: Missing mandatory value", f"{POF}M: ???\n"),
    "bad package": Folder(f"{X}", f"# @package a b c\n{POF}"),
    "no package": Folder(f"{X}", f"# @package\n{POF}"),
    "odd package": Folder("x.yaml: @package algo..x: must be _global_ or keys with dots", f"# @package algo..x\n{POF}"),
    "package of a number": Folder("algo._target_=None: must be", f"# @package seed\n{POF}"),
    "defaults of itself": Folder("algo/x.yaml: its defaults lead back to itself", f"defaults: [x, _self_]\n{POF}"),
    "defaults of each other": Folder(
        "algo/[xy].yaml: its defaults lead back",
        f"defaults: [y, _self_]\n{POF}",
        more=(("algo/y.yaml", f"defaults: [x, _self_]\n{POF}"),),
    ),
    "defaults of its own folder": Folder(
        "algo/x.yaml: defaults: x@x: must be NAME, /GROUP/NAME, GROUP: NAME", f"defaults: [x@x]\n{POF}"
    ),
    "defaults without an end": Folder(
        "its defaults lead back to itself, or have no end",
        f"defaults: [a0, a0, _self_]\n{POF}",
        more=(*((f"algo/a{n}.yaml", f"defaults: [a{n + 1}, a{n + 1}]\n") for n in range(39)), ("algo/a39.yaml", POF)),
    ),
    "unknown default": Folder("algo=nope: no such choice", f"defaults: [nope, _self_]\n{POF}"),
    "defaults no list": Folder(f"{X}: defaults=nope: must be a list", f"defaults: nope\n{POF}"),
    "defaults a number": Folder(
        "algo/x.yaml: defaults: 5: must be NAME, /GROUP/NAME, GROUP: NAME", f"defaults: [5]\n{POF}"
    ),
    "defaults a mapping": Folder(f"{X}: defaults=.*: must be a list", f"defaults: {{a: b}}\n{POF}"),
    "defaults of two keys": Folder(
        "algo/x.yaml: defaults: .*: must be NAME, /GROUP/NAME, GROUP: NAME", f"defaults: [{{a: b, c: d}}]\n{POF}"
    ),
    "defaults of lists": Folder(
        "algo/x.yaml: defaults: .*: must be NAME, /GROUP/NAME, GROUP: NAME", f"defaults: [[pof_mkl]]\n{POF}"
    ),
    "defaults null": Folder(
        "algo/x.yaml: defaults: None: must be NAME, /GROUP/NAME, GROUP: NAME", f"defaults: [null]\n{POF}"
    ),
    "defaults twice self": Folder("algo/x.yaml: defaults: _self_ is there twice", f"defaults: [_self_, _self_]\n{POF}"),
    "defaults overriding nothing": Folder(
        "algo/x.yaml: override /nope: the configuration has no nope",
        f"defaults: [{{override /nope: a}}, _self_]\n{POF}",
    ),
    "defaults of a folder": Folder("algo=.: no such choice", f"defaults: [., _self_]\n{POF}"),
    "defaults outside": Folder("passwd: no such choice", f"defaults: [../../../../../../etc/passwd, _self_]\n{POF}"),
    "defaults by interpolation": Folder("algo=\\${nope}: no such choice", f"defaults: ['${{nope}}', _self_]\n{POF}"),
    # What would run code, or reach beyond a run
    "a callback": to_hydra(NOT_IN_A_FILE, "callbacks: {x: {_target_: joblib.load, filename: evil.pkl}}"),
    "a package of hydra's": Folder(
        "experiment/x.yaml: @package hydra.callbacks.x: must not be of hydra's",
        "# @package hydra.callbacks.x\n_target_: os.system\n",
        "+experiment=x",
        "experiment/x.yaml",
    ),
    "callbacks by interpolation": to_hydra(NOT_IN_A_FILE, "callbacks: ${algo}"),
    "a list of callbacks": to_hydra(NOT_IN_A_FILE, "callbacks: [{_target_: os.system}]"),
    "a logging factory": to_hydra(NOT_IN_A_FILE, "job_logging: {handlers: {x: {(): os.system}}}"),
    "a launcher": to_hydra(NOT_IN_A_FILE, "launcher: {_target_: os.system}"),
    "a sweeper": to_hydra(NOT_IN_A_FILE, "sweeper: {_target_: os.system}"),
    "commands of a cluster": to_hydra(
        NOT_IN_A_FILE,
        "launcher: {setup: ['touch ran']}",
        "- override /hydra/launcher: submitit_slurm",
        "-m +experiment=x seed=1,2",
    ),
    "lines of a cluster": to_hydra(
        NOT_IN_A_FILE,
        'launcher: {name: "a\\ntouch ran"}',
        "- override /hydra/launcher: submitit_local",
        "-m +experiment=x seed=1,2",
    ),
    "an expression": to_hydra(
        NOT_IN_A_FILE,
        'launcher: {pre_dispatch: \'__import__("os").system("touch ran")\'}',
        "- override /hydra/launcher: joblib",
        "-m +experiment=x seed=1,2",
    ),
    "no sweep in params": to_hydra(
        r"seed=range\(0\): no values", "sweeper: {params: {seed: range(0)}}", call="-m +experiment=x"
    ),
    "code in params": to_hydra(
        "experiment/x.yaml: hydra.sweeper.params.\\+hydra.*: must be values of a key of runs",
        "sweeper: {params: {+hydra.callbacks.x._target_: joblib.load}}",
        call="-m +experiment=x",
    ),
    "open params": to_hydra("seed=1,: not understood", "sweeper: {params: {seed: '1,'}}", call="-m +experiment=x"),
    "environment": to_hydra(NOT_IN_A_FILE, "job: {env_set: {LD_PRELOAD: ./evil.so}}"),
    "a folder to run in": to_hydra(NOT_IN_A_FILE, "run: {dir: ran}"),
    "a folder from a choice": to_hydra(NOT_IN_A_FILE, "searchpath: [nowhere]"),
    "no mapping": to_hydra("experiment/x", "5"),
    "a target in the working directory": Folder(r"evil.py, line 1: RuntimeError: ran\)", "_target_: evil.Evil\n"),
    "a target with a path": Folder("must be the import path", "_target_: ../evil.Evil\n"),
    "a target from a list": Folder("must be the import path", "_target_: [os.system]\n"),
    "a target that is a function": Folder("must be the import path of a dataclass", "_target_: joblib.load\n"),
    "a target that ends": Folder(r"ends.py, line 1: SystemExit: 0\)", "_target_: ends.Ends\n"),
    "a target that cannot be parsed": Folder(r"halved.py, line 1\)", "_target_: halved.Halved\n"),
    "a target inside": Folder("algo.M=.*: must be an integer", f"{POF}M: {{_target_: evil.Evil}}\n"),
    "a null byte": setting("out=.*: must be .*, without control", r'out: "a\0b"'),
    "a line break": setting("out=a b: must be .*, without control", r'out: "a\nb"'),
    "an escape code": setting(r"out=\\x1b\[31mred: must be", r'out: "\e[31mred"'),
    "a title": setting(r"precision=\\x1b\]0;mine\\x07: must be", r'precision: "\e]0;mine\a"'),
    "a letter that turns lines": setting(r"scaling=a\\u202eb: must be", r'scaling: "a\u202eb"'),
    "another end of line": setting(r"scaling=a\\x85?b?|scaling=a b", r'scaling: "a\Nb"'),
    "a home folder": setting("out=~: must be", "out: '~'"),
    "a folder above all": setting("out=/: must be", "out: /"),
    "an empty folder": setting("paths.outputs=: must be", "paths: {outputs: ''}"),
    "a long folder": setting("out=.*no name longer", f"out: {'x' * 5000}"),
    "a mapping as a seed": setting("seed=.*: must be an integer", "seed: {a: b}"),
    "an interpolated key": setting("an interpolation that makes keys", "out: '${${paths.data}}'"),
    "yaml in an interpolation": setting("an interpolation that makes keys", "seed: ${oc.create:'[1,2]'}"),
}
"""What can be wrong with a user's own configuration."""
