"""The `fkl` command."""

from fkl.cli.commands import main

__all__ = ["main"]
