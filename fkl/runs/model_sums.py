"""Merge the models of two runs, or forget a client in one, from their sums; the commands for it."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fkl.algorithms.sums import why_no_sums
from fkl.basics.errors import BadValue, FklError, count_of, in_one_line, require
from fkl.basics.files import report_write_errors, sha256_of, write_text
from fkl.config.choices import CONDITIONS
from fkl.config.loading import Run, make_object
from fkl.engines.base import Experiment
from fkl.runs.folder import DERIVED, LAST_FILE, MODEL, SUMS, create_folder, hidden_neighbour, read_provenance
from fkl.runs.model import SavedModel, load_model, merge_models
from fkl.runs.saved_sums import BAD_JSON, SavedSums, read_sums

CONSEQUENCE = "anyone who holds the model before and after can compute the client's sums, and of one row the row itself"


def bytes_of_sums(run: Run, experiment: Experiment) -> int:
    """Bytes of the file of sums of a run."""
    kernels, outputs = experiment.dictionary, getattr(experiment.problem, "classes", 1)
    P = kernels.D * (1 if kernels.map == "cosine" else 2)
    clients = experiment.problem.clients if run.settings.save_sums == "clients" else 1
    return 8 * experiment.replicates * clients * kernels.N * (P * (P + 1) // 2 + outputs * P)


def require_sums(run: Run) -> None:
    """Refuse `save_sums` for a run whose model is no function of its clients' sums."""
    if run.settings.save_sums and (why := _why_not(run.algo, run.conditions, run.resolved["network"])):
        raise BadValue("save_sums", run.settings.save_sums, f"false for {run.algo.label}: {why}")


def _why_not(method: Any, conditions: Any, network: Any) -> str:
    """Why a run's model is no function of its clients' sums; empty if it is one."""
    others = [name for name in CONDITIONS if name in conditions and name != "participation"]
    others += [f"network.{key}" for key in ("deadline_s", "loss") if (network or {}).get(key)]
    if (why := why_no_sums(method)) or not others:
        return why
    return f"with {others[0]}, the server learns from other sums than those of the clients' rows"


def require_model_of_sums(folder: Path, what: str, apart: bool) -> tuple[SavedModel, SavedSums]:
    """A folder's model and sums; refuse with the reason why it cannot be merged, or cannot forget a client."""
    facts = read_provenance(folder)
    if not facts:
        raise FklError(f"{folder}: not the folder of a run")
    saved = read_sums(folder)
    if saved is not None and (saved.apart or not apart):
        return load_model(folder), saved
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        node, label = config["algo"], str(facts["algorithm"])
        own = not str(node["_target_"]).startswith("fkl.")
        given = [name for name in CONDITIONS if config.get(name) is not None]
        why = "its class declares no sums" if own else _why_not(make_object(node, "algo"), given, config.get("network"))
    except (OSError, yaml.YAMLError, *BAD_JSON):
        raise FklError(f"{folder}: its config.yaml or provenance.json is missing or damaged") from None
    if why:
        raise FklError(
            f"{folder}: {label} cannot {what} exactly: {why}", help=["run it again with the rows that shall count"]
        )
    kind = "clients" if apart else "total"
    has = "only a total of its sums" if saved else f"no {SUMS}"
    raise FklError(f"{folder}: has {has}; the same command with save_sums={kind} adds {'them' if apart else 'it'}")


def merge_command(first: Path, second: Path, out: Path) -> list[str]:
    """Merge two runs into a new folder; return lines about it."""
    _require_new(out)
    pair = [require_model_of_sums(folder, "be merged", apart=False) for folder in (first, second)]
    model = merge_models(pair[0][0], pair[1][0], (str(first), str(second)))
    merged = model.sums
    assert merged is not None
    _write_folder(out, first, model, merged, {"parents": [_digest_of(first), _digest_of(second)]})
    rows = [sum(one.rows for one in saved.clients) for _, saved in pair]
    twice = {one.name for one in pair[0][1].clients if one.rows} & {one.name for one in pair[1][1].clients if one.rows}
    note = (
        f"{count_of(len(twice), 'site')} in both, with rows of different files: {in_one_line(', '.join(sorted(twice)))}"
    )
    lines = [
        f"{model.about.algorithm} on {model.about.dataset}",
        f"  rows      {sum(rows)}: {rows[0]} of {first} and {rows[1]} of {second}, as one run on all of them",
        f"  clients   {'each with its own sums' if merged.apart else 'only their total, so none can be forgotten'}",
        *([f"  note      {note}"] if twice - {"all"} else []),
        "  privacy   the merged model without one part gives the sums of the other part",
        f"  run       {out}",
    ]
    return lines


def forget_command(folder: Path, site: str | None, client: int | None, out: Path) -> list[str]:
    """Write the model of the other clients into a new folder; return lines about it."""
    if (site is None) == (client is None):
        raise FklError("forget: must be given either --site NAME or --client K")
    _require_new(out)
    model, saved = require_model_of_sums(folder, "forget a client", apart=True)
    K, names = len(saved.clients), [one.name for one in saved.clients]
    if client is not None:
        require(0 <= client < K, "--client", client, f"an integer from 0 to {K - 1}")
    listed = in_one_line(", ".join(dict.fromkeys(names)))
    require(site is None or site in names, "--site", site, f"a site of this run: {listed}")
    keep = np.array([k != client if site is None else one != site for k, one in enumerate(names)])
    gone = [one for one, kept in zip(saved.clients, keep, strict=True) if not kept]
    rows, left = sum(one.rows for one in gone), sum(one.rows for one in saved.clients) - sum(one.rows for one in gone)
    require(left > 0, "--site" if site else "--client", site or client, "one that leaves rows of other clients")
    # Add the others anew, and say what is left
    rest, one_source = saved.without(keep), len({one.source for one in saved.clients}) == 1
    grade, after = "bits" if one_source else "1e-9", model.of_sums(rest)
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    certificate: dict[str, Any] = {
        "forgotten": [asdict(one) for one in gone],
        "rows": rows,
        "grade": grade,
        "before": _digest_of(folder),
        "condition_number": rest.condition_number(),
        "still_known": _what_still_knows(folder, model, config),
        "consequence": CONSEQUENCE,
    }
    _write_folder(out, folder, after, rest, {"parents": [_digest_of(folder)]}, certificate)
    as_what = "bit for bit" if one_source else "to 1e-9"
    who = in_one_line(", ".join(dict.fromkeys(one.name for one in gone))) if site else f"client {client}"
    return [
        f"{model.about.algorithm} on {model.about.dataset} without {who}",
        f"  forgotten {count_of(rows, 'row')} of {count_of(len(gone), 'client')}; {left} rows of others are left",
        f"  grade     {grade}: {as_what} the model of a run in which it is absent and all earlier choices are the same",
        *(f"  {'knows it' if not k else '':9} {one}" for k, one in enumerate(certificate["still_known"])),
        f"  privacy   {CONSEQUENCE}",
        f"  run       {out}, with forgotten.json",
    ]


def _what_still_knows(folder: Path, model: SavedModel, config: dict[str, Any]) -> list[str]:
    """What a forgotten client's rows have still left a trace in."""
    kept = [
        name for name in sorted(read_provenance(folder)["files"]) if name.endswith((".csv", ".npz", ".png", ".pdf"))
    ]
    known = [f"{folder}: {', '.join(kept)}, and all copies of the model that were given out"]
    if config.get("scaling") != "none" and config.get("like") is None:
        known.append(f"scaling={config.get('scaling')}: smallest and largest cells of all rows, its rows included")
    if model.encoder.words or model.encoder.fill:
        known.append("words and values for missing cells, unless dataset.words and dataset.fill gave them")
    if str((config.get("kernels") or {}).get("_target_", "")).endswith("AroundMedian"):
        known.append("kernels around the median distance between rows, its rows included")
    if config.get("logger"):
        known.append(f"loggers: {', '.join(config['logger'])}")
    return [*known, "keys that were chosen with runs on its rows, and checkpoints of such runs"]


def _digest_of(folder: Path) -> str:
    return sha256_of(folder / MODEL)


def _require_new(out: Path) -> None:
    fits = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    require(fits, "--out", out, "a new or empty folder")


def _write_folder(
    out: Path, like: Path, model: SavedModel, sums: SavedSums, notes: dict[str, Any], certificate: Any = None
) -> None:
    """Write a model with its sums into a new folder, completely or not at all."""
    # A name of this process: what a killed one has left is not in the way
    partial_folder = hidden_neighbour(out, f"{os.getpid()}.partial")
    with create_folder(out.parent), report_write_errors(out):
        partial_folder.mkdir()
        try:
            model.save(partial_folder / MODEL)
            sums.save(partial_folder / SUMS)
            shutil.copyfile(like / "config.yaml", partial_folder / "config.yaml")
            if certificate is not None:
                certificate["after"] = _digest_of(partial_folder)
                write_text(partial_folder / "forgotten.json", json.dumps(certificate, indent=2) + "\n")
            files = {file.name: sha256_of(file) for file in sorted(partial_folder.iterdir())}
            named: dict[str, Any] = {
                "dataset": model.about.dataset,
                "algorithm": model.about.algorithm,
                "clients": len(sums.clients),
            }
            if "bandwidths" in (facts := read_provenance(like)):  # for runs that are to be like this one
                named["bandwidths"] = facts["bandwidths"]
            told = {"state": DERIVED, **notes, **named, "fkl": model.about.fkl, "files": files}
            write_text(partial_folder / LAST_FILE, json.dumps(told, indent=2) + "\n")
            partial_folder.replace(out)
        except BaseException:
            shutil.rmtree(partial_folder, ignore_errors=True)
            raise
