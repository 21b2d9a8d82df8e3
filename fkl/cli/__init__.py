"""The `fkl` command.

`commands` has every command and its options; each calls a function of another package. `describe`, `listing`, `show`
and `schema` print the contents of docstrings, YAML files and sources. Begin with `commands.run`.
"""

from fkl.cli.commands import main

__all__ = ["main"]
