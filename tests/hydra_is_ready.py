"""Looks for Hydra's plugins when it is imported, so that a fork server's children need not."""

from hydra.core.plugins import Plugins

Plugins.instance()
