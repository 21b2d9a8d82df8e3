"""The `fkl` command.

`commands` has every command and its options; each calls a function of another package. `describe`, `listing`, `show`
and `schema` print what docstrings, YAML files and sources say. Begin with `commands.run`.
"""

from fkl.cli.commands import main

__all__ = ["main"]
