"""Named variants: each is its method with other values of keys that the method has."""

from typing import Any

import pytest

from fkl.config.compose import compose
from fkl.config.experiments import abouts

VARIANTS = abouts("as_published")


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_is_its_method_with_other_values(name: str) -> None:
    """The same keys, and not the same values: one that the text has by now would be no variant."""
    stated, published = (_nodes(word) for word in (f"algo={name}", f"+as_published={name}"))
    assert stated["algo"]["_target_"] == published["algo"]["_target_"]
    assert {key: set(node) for key, node in stated.items()} == {key: set(node) for key, node in published.items()}
    assert stated != published
    assert VARIANTS[name]


def _nodes(word: str) -> dict[str, Any]:
    config: Any = compose(word)
    return {key: config.get(key) or {} for key in ("algo", "kernels")}  # some methods use no kernels
