"""Hydra's and OmegaConf's complaints about a composition, each in one line that names the key and what is allowed."""

from hydra.errors import ConfigCompositionException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from fkl.composing.names import no_such_key, not_known
from fkl.errors import shown


def in_one_line(error: Exception, sweep: bool = False) -> str:
    """One line for an error that Hydra raised before a job began, or before the first job of a sweep."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return not_known(str(error.missing_cfg_file), error.options or [])
    if isinstance(error, OverrideParseException):
        return f"{shown(error.override)}: not understood; write KEY=VALUE"
    cause = error.__cause__
    if isinstance(error, ConfigCompositionException) and isinstance(cause, OmegaConfBaseException):
        parent = cause.parent_node
        if not isinstance(cause, ConfigKeyError | ConfigAttributeError):
            return f"{cause.full_key}: {str(cause).splitlines()[0]}"
        if isinstance(parent, DictConfig) and cause.full_key:
            hint = f"; in a sweep that chooses its group, write ++{cause.full_key}" if sweep else ""
            return no_such_key(cause.full_key, parent) + hint
    return " ".join(str(error).split())
