"""Words of `fkl run` before Hydra sees them: its options, of which some are refused, and KEY=VALUE."""

from typing import NoReturn

from hydra._internal.utils import get_args_parser

from fkl.composing.quoting import quoted
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


def understood(words: list[str]) -> list[str]:
    """The words as Hydra understands them.

    Raises
    ------
    fkl.errors.FklError
        For options that Hydra does not know, or knows not to do together, and for one that runs a pickle.
    """

    def refuse_option(message: str) -> NoReturn:
        raise FklError(f"{message}; options such as -m stand before KEY=VALUE, and --hydra-help lists them")

    parser = get_args_parser()
    parser.error = refuse_option  # type: ignore[method-assign]
    given = parser.parse_args(words)
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
    return [quoted(word) if word in given.overrides else word for word in words]
