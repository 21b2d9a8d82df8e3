"""Registration of a study: its plan, code and data before the first run, and deviations from them."""

import hashlib
import json
import time
from typing import Any

from fkl import __version__
from fkl.basics.errors import FklError
from fkl.basics.files import write_text
from fkl.config import digest
from fkl.runs.finished_runs import folder_entries
from fkl.runs.folder import find_damage, read_provenance
from fkl.study.jobs import StudyJob, judged_jobs, words_to_try
from fkl.study.plan import Plan

REGISTERED = "registered.json"
JUDGEMENTS = "judgements.txt"
"""One line for each finished judged run, in order; lines are only added."""


def registered_facts(plan: Plan) -> dict[str, str]:
    """Digests of the plan, of the code that affects numbers, and of each data set's files."""
    facts_now = {
        "plan": hashlib.sha256(plan.file.read_bytes()).hexdigest(),
        "code": hashlib.sha256(f"{digest.of_fkl()} {digest.of_files('study/*.py')}".encode()).hexdigest(),
    }
    for dataset in plan.datasets:
        run = plan.checked_run(words_to_try(plan, dataset))
        facts_now[f"data {dataset.name}"] = run.parts["data"]
    return facts_now


def register_study(plan: Plan) -> list[str]:
    """Register a study before its first run, and return lines about the registration.

    Raises
    ------
    fkl.basics.errors.FklError
        If a run has ended already.
    """
    # Registered once, and before anything is known
    if (plan.folder / REGISTERED).exists():
        raise FklError(f"{plan.folder / REGISTERED}: the study is registered already")
    begun = [job for dataset in plan.datasets for job in judged_jobs(plan, dataset) if job.file.exists()]
    if begun:
        raise FklError(f"{plan.file}: cannot be registered after its first judged run; {len(begun)} have ended")
    # The date, the code, the data and the plan's text
    record: dict[str, Any] = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "fkl": __version__}
    record |= {"facts": registered_facts(plan), "text": plan.file.read_text(encoding="utf-8")}
    write_text(plan.folder / REGISTERED, json.dumps(record, indent=1) + "\n")
    lines = [f"{name:20} {sha[:16]}" for name, sha in record["facts"].items()]
    return [f"registered in {plan.folder / REGISTERED}", *lines, f"next  fkl study {plan.file}"]


def read_registration(plan: Plan) -> dict[str, Any] | None:
    """The registration; None if the study is not registered."""
    file = plan.folder / REGISTERED
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return {"date": str(record["date"]), "facts": dict(record["facts"]), "text": str(record["text"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise FklError(f"{file}: damaged; a registered study needs it to continue") from None


def require_unchanged(plan: Plan) -> None:
    """Refuse to continue a registered study whose plan, code or data have changed.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the change, and suggests continuing under another name.
    """
    # Nothing to compare if the study is not registered
    record = read_registration(plan)
    if record is None:
        return
    # Facts that differ now: the plan, the code or the data
    now = registered_facts(plan)
    changed = [name for name in {**record["facts"], **now} if record["facts"].get(name) != now.get(name)]
    if changed:
        raise FklError(
            f"{plan.file}: registered on {record['date']}, and changed since: {', '.join(changed)}",
            help=[
                f"undo the change; {plan.folder / REGISTERED} has the registered plan",
                "or copy the file to another name, which makes it another study",
            ],
        )


def registration_stamp(plan: Plan) -> str:
    """Note below every table, with the date and the digests of the registration."""
    record = read_registration(plan)
    if record is None:
        return "Not registered."
    digests = ", ".join(f"{name} {sha[:12]}" for name, sha in record["facts"].items())
    return f"Registered on {record['date']}: {digests}."


def note_judgement(plan: Plan, job: StudyJob) -> None:
    """Add a line about a judged run of a registered study."""
    note = job.note
    if read_registration(plan) is None or note is None:
        return
    line = f"{job.file.name} {_note_text(note)}\n"
    with (plan.folder / JUDGEMENTS).open("a", encoding="utf-8") as stream:
        stream.write(line)


def plan_deviations(plan: Plan) -> list[str]:
    """Runs of a registered study that deviate from its plan: judged twice, edited later, or outside the plan."""
    # Only a registered study has a plan to deviate from
    if read_registration(plan) is None:
        return []
    said: list[str] = []
    # Judgements are noted in a file when they are made
    file = plan.folder / JUDGEMENTS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    judged: dict[str, list[str]] = {}
    for line in lines:
        name, _, rest = line.partition(" ")
        judged.setdefault(name, []).append(rest)
    said += [f"{name} was judged {len(several)} times" for name, several in judged.items() if len(several) > 1]
    # Notes and folders must still be those that were judged
    planned = set()
    for job in (job for dataset in plan.datasets for job in judged_jobs(plan, dataset)):
        note = job.note
        if note is None:
            continue
        last = judged.get(job.file.name, [""])[-1]
        if last != _note_text(note):
            said.append(f"{job.file.name} has changed since it was judged")
        if "folder" in note:
            planned.add(note["folder"])
            folder = plan.folder / "runs" / note["folder"]
            if (why := find_damage(folder)) is not None:
                said.append(f"runs/{note['folder']}: {why}")
    # Other finished runs in the folder are outside the plan
    outside = [folder.name for folder in folder_entries(plan.folder / "runs") if folder.name not in planned]
    said += [f"runs/{name} is outside the plan" for name in outside if read_provenance(plan.folder / "runs" / name)]
    return said


def _note_text(note: dict[str, Any]) -> str:
    return f"{note.get('digest', '-')} {note['error']} {note['state']}"
