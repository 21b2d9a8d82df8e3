"""Words of `fkl run` before Hydra sees them: its options, of which fkl does without some, and KEY=VALUE."""

from argparse import ArgumentParser
from typing import NoReturn

from fkl.errors import FklError, shown

LONGEST = 8192
"""Letters of a word; Hydra's parser takes seconds for more."""
ONE_OF = {"run": "--run", "multirun": "-m", "cfg": "--cfg", "info": "--info"}
"""What Hydra does one of."""
REFUSED = {
    "experimental_rerun": "it would run what is in a pickle",
    "shell_completion": "it completes commands of one word",
    "config_path": "fkl's own configuration must be there; --config-dir adds a folder to it",
}
"""Options of Hydra's that fkl does without, and why."""
SHOWN = ("job", "hydra", "all")
TOLD = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
"""What `--cfg` shows, and what `--info` tells."""


def require_understood(words: list[str]) -> None:
    """Refuse what Hydra would print its usage or a traceback for, and options that fkl does without.

    Raises
    ------
    fkl.errors.FklError
        Names the word.
    """
    given = _parser().parse_args(words)
    for name, why in REFUSED.items():
        if getattr(given, name) not in (None, False):
            raise FklError(f"--{name.replace('_', '-')}: not supported, since {why}")
    if given.config_dir == "":
        raise FklError("--config-dir=: must be a folder")
    chosen = [option for name, option in ONE_OF.items() if getattr(given, name)]
    if len(chosen) > 1:
        raise FklError(f"{' and '.join(chosen)}: must be one of these")
    if given.resolve and not (given.cfg or given.help):
        raise FklError("--resolve: must be given together with --cfg or --help")
    for word in given.overrides:
        if len(word) > LONGEST:
            raise FklError(f"{shown(word)}: longer than {LONGEST} letters")
        key = word.lstrip("+~").partition("=")[0]
        if not key.strip():
            raise FklError(f"{word}: not understood; write KEY=VALUE")
        if key == "hydra.mode":
            raise FklError(f"{word}: not supported, since -m says that there are many runs")
        if word.startswith("~hydra"):
            raise FklError(f"{word}: no key of hydra can be left out")


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FklError(f"{message}; options such as -m stand before KEY=VALUE, and --hydra-help lists them")


def _parser() -> ArgumentParser:
    """The options of Hydra's, by their long and short names."""
    parser = _Parser(add_help=False)
    parser.add_argument("overrides", nargs="*")
    for long, short in (("help", "h"), ("run", "r"), ("multirun", "m"), ("shell-completion", "sc")):
        parser.add_argument(f"--{long}", f"-{short}", action="store_true")
    for long in ("hydra-help", "version", "resolve"):
        parser.add_argument(f"--{long}", action="store_true")
    for long, short in (("package", "p"), ("config-path", "cp"), ("config-name", "cn"), ("config-dir", "cd")):
        parser.add_argument(f"--{long}", f"-{short}")
    parser.add_argument("--experimental-rerun")
    parser.add_argument("--cfg", "-c", choices=SHOWN)
    parser.add_argument("--info", "-i", nargs="?", const="all", choices=TOLD)
    return parser
