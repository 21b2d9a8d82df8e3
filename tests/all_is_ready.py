"""Done when this is imported: what a process of `fkl` begins with, so that a fork server's children need not do it."""

import blank
import click  # noqa: F401
import sklearn.datasets  # noqa: F401
from hydra.core.plugins import Plugins

from fkl.config.compose import compose_config

Plugins.instance()
compose_config("algo=pof_mkl", "dataset=diabetes")
for kind in ("png", "pdf"):
    blank.made(kind)
