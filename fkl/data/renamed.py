"""Data sets that had a class of their own until 1.0.0rc1 and are a YAML now: saved configurations go on to load."""

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
"""The class that a `_target_` names, and the data set that took its place."""


def as_today(node: dict[str, Any]) -> dict[str, Any]:
    """The node of a data set as it is written today: the YAML of the set, with the node's own keys laid over it."""
    name = CLASSES.get(str(node.get("_target_")))
    return node if name is None else registry.node(name) | {key: node[key] for key in node if key != "_target_"}


def identifying(node: dict[str, Any]) -> dict[str, Any]:
    """What two nodes have in common that give the same samples, whichever version wrote them."""
    node = as_today(node)
    return deciding(node) if isinstance(node.get("table"), dict) else node


def for_display(node: dict[str, Any]) -> dict[str, Any]:
    """The node as people are told of it: the data set's name for its class, and its keys without how it is read."""
    node = as_today(node)
    if not isinstance(node.get("table"), dict):
        return node
    keys = {key: value for key, value in node.items() if key != "table"}
    return keys | {"_target_": f"{node['_target_']}.{node['table']['name']}"}
