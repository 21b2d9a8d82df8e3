"""Data sets with their own class until 1.0.0rc1, now described by a YAML; saved configurations still load."""

from typing import Any

from fkl.data import registry
from fkl.data.table_set import deciding

CLASSES = {
    "fkl.data.a9a.A9a": "a9a",
    "fkl.data.air.Air": "air",
    "fkl.data.airfoil.Airfoil": "airfoil",
    "fkl.data.airquality.AirQuality": "airquality",
    "fkl.data.bias.Bias": "bias",
    "fkl.data.cod_rna.CodRna": "cod_rna",
    "fkl.data.concrete.Concrete": "concrete",
    "fkl.data.default_credit.DefaultCredit": "default_credit",
    "fkl.data.energy.Energy": "energy",
    "fkl.data.epsilon.Epsilon": "epsilon",
    "fkl.data.gisette.Gisette": "gisette",
    "fkl.data.give_me_credit.GiveMeCredit": "give_me_credit",
    "fkl.data.ijcnn1.Ijcnn1": "ijcnn1",
    "fkl.data.naval.Naval": "naval",
    "fkl.data.phishing.Phishing": "phishing",
    "fkl.data.real_sim.RealSim": "real_sim",
    "fkl.data.toms_hardware.TomsHardware": "toms_hardware",
    "fkl.data.twitter.Twitter": "twitter",
    "fkl.data.uji.Uji": "uji",
    "fkl.data.w8a.W8a": "w8a",
    "fkl.data.wec.Wec": "wec",
}
"""The class in a `_target_`, and the data set that replaced it."""


def as_today(node: dict[str, Any]) -> dict[str, Any]:
    """The current node of a data set: the YAML of the set, overridden by the node's own keys."""
    name = CLASSES.get(str(node.get("_target_")))
    return node if name is None else registry.node(name) | {key: node[key] for key in node if key != "_target_"}


def identifying(node: dict[str, Any]) -> dict[str, Any]:
    """A form that is equal for nodes with the same samples, from any version."""
    node = as_today(node)
    return deciding(node) if isinstance(node.get("table"), dict) else node


def for_display(node: dict[str, Any]) -> dict[str, Any]:
    """The node for display: the data set's name instead of its class, and its keys without those for reading."""
    node = as_today(node)
    if not isinstance(node.get("table"), dict):
        return node
    keys = {key: value for key, value in node.items() if key != "table"}
    return keys | {"_target_": f"{node['_target_']}.{node['table']['name']}"}
