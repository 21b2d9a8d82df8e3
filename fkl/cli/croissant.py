"""Metadata of a data set in MLCommons' format Croissant: `fkl describe NAME --format=croissant`.

It holds everything that fkl knows about the data set. Nothing is fetched and no data file is read.
"""

from typing import Any

from fkl.basics.errors import FklError
from fkl.data import registry
from fkl.data.store import DataFile
from fkl.data.table_layout import NAMED_COLUMNS, Layout

Node = dict[str, Any]
OF_CROISSANT = """
citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField
transform
"""
CONTEXT: Node = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in OF_CROISSANT.split()},
}
"""The context of Croissant 1.0."""
LICENCES = {"CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/"}
KINDS = {".zip": "application/zip", ".xz": "application/x-xz", ".gz": "application/gzip", ".bz2": "application/x-bzip2"}
KINDS |= {".csv": "text/csv", ".xls": "application/vnd.ms-excel", ".mat": "application/x-matlab-data"}
"""Types of files by the end of their names; others are plain text."""


def croissant(name: str) -> Node:
    """Title, licence, files with their addresses and hashes, and columns of a data set, as JSON-LD.

    The hashes are those of unpacked files. If fkl knows no hash for an address, the data set is marked as live, because
    Croissant requires a hash otherwise.

    Raises
    ------
    fkl.basics.errors.FklError
        If there is no data set of this name, or it has no published file.
    """
    found = registry.dataset(name.removeprefix("dataset="))
    if not found.files:
        raise FklError(
            f"describe {name} --format=croissant: no published file, which Croissant describes ({found.licence})"
        )
    layout = getattr(found, "layout", None)
    addresses = [file.url for file in found.files if file.url]
    distribution = [node for file in found.files for node in _file(file)]
    made: Node = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": found.name,
        "description": f"{found.title[:1].upper()}{found.title[1:]}; rows x features: {found.shape}",
        "license": LICENCES.get(found.licence, found.licence),
        "distribution": list({node["@id"]: node for node in distribution}.values()),
    }
    made |= {"url": addresses[0]} if addresses else {}
    if not all("sha256" in node or "containedIn" in node for node in distribution):
        made["isLiveDataset"] = True
    if layout is not None and layout.format in NAMED_COLUMNS:
        made["recordSet"] = [_rows(layout)]
    return made


def _file(file: DataFile) -> list[Node]:
    """A file, preceded by the archive that holds it."""
    node: Node = {"@type": "cr:FileObject", "@id": file.name, "name": file.name, "encodingFormat": _kind(file.name)}
    node |= {"contentSize": f"{file.size} B"} if file.size is not None else {}
    if file.sha256 is not None:
        node["sha256"] = file.sha256
    if file.archive in ("", file.name):
        return [node | {"contentUrl": file.url or file.name}]
    served: Node = {"@type": "cr:FileObject", "@id": file.archive, "name": file.archive, "contentUrl": file.url}
    return [
        served | {"encodingFormat": _kind(file.archive)},
        node | {"containedIn": {"@id": file.archive}, "contentUrl": file.name},
    ]


def _kind(name: str) -> str:
    return next((kind for end, kind in KINDS.items() if name.lower().endswith(end)), "text/plain")


def _rows(layout: Layout) -> Node:
    """The columns of the files that are read; a text without a header has them in this order."""
    [first, *_] = layout.used
    named = enumerate(filter(None, layout.all_columns), 1)  # a column of row numbers may have no name
    return {
        "@type": "cr:RecordSet",
        "@id": "rows",
        "name": "rows",
        "description": f"One row a sample; the target is {layout.target}."
        + " Every file has these columns." * (len(layout.used) > 1)
        + " The files have no header: the columns are in this order." * (not layout.header),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"rows/{number}",
                "name": column,
                "dataType": "sc:Text" if column in layout.text else "sc:Float",
                "source": {"fileObject": {"@id": first["name"]}, "extract": {"column": column}},
            }
            for number, column in named
        ],
    }
