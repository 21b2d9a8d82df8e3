"""What interpolations in a configuration can call besides OmegaConf's own resolvers."""

from typing import Any

from omegaconf import OmegaConf

from fkl.environment import variable


def _full_or_half(number: int, *, _root_: Any) -> int:
    """The number for rows=all, and half of it for the rows that rows=even and rows=odd choose."""
    return number if _root_.get("rows", "all") == "all" else number // 2


OmegaConf.register_new_resolver("full_or_half", _full_or_half, replace=True)
OmegaConf.register_new_resolver("variable", variable, replace=True)
