"""What authors know from 1.0.0rc1 by another name."""

from importlib import import_module

import pytest

from fkl.basics.errors import BadValue
from fkl.basics.renamed_modules import NAMES, RENAMED
from fkl.config import instantiate
from fkl.config.loading import RENAMED_FACTS


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_import_path_has_what_is_in_the_module_of_today(old: str) -> None:
    today, module = import_module(RENAMED[old]), import_module(old)
    public = [name for name in vars(today) if not name.startswith("_")]
    assert public and all(getattr(module, name) is getattr(today, name) for name in public)
    assert all(getattr(module, name) is getattr(today, now) for name, now in NAMES.get(old, {}).items())


@pytest.mark.parametrize("old", RENAMED_FACTS)
def test_an_old_fact_of_a_method_is_refused_by_its_name_of_today(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since it would be passed over: a method that says nothing of its choices tells a smaller epsilon."""
    from fkl.algorithms.federated.ofskl import Ofskl

    monkeypatch.setattr(Ofskl, old, True, raising=False)
    with pytest.raises(BadValue, match=f"whose {old} is called {RENAMED_FACTS[old]}"):
        instantiate({"_target_": "fkl.algorithms.federated.ofskl.Ofskl"}, "algo")
