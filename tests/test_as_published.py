"""Named variants: each is its method with other values of keys that the method has."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from fkl import conf_folder
from fkl.cli import about

VARIANTS = sorted((conf_folder() / "as_published").glob("*.yaml"))


@pytest.mark.parametrize("file", VARIANTS, ids=lambda file: file.stem)
def test_a_variant_is_its_method_with_other_values(file: Path) -> None:
    """The same keys, and not the same values: one that the text has by now would be no variant."""
    name = file.stem
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        stated, published = (_nodes(word) for word in (f"algo={name}", f"+as_published={name}"))
    assert stated["algo"]["_target_"] == published["algo"]["_target_"]
    assert {key: set(node) for key, node in stated.items()} == {key: set(node) for key, node in published.items()}
    assert stated != published
    assert about(file)


def _nodes(word: str) -> dict[str, Any]:
    config: Any = OmegaConf.to_container(compose("config", [word]))
    return {key: config[key] for key in ("algo", "kernels")}
