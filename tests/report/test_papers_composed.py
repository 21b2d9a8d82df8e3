"""Every job of every paper's experiment is composed as ever: the hashes beside this file say to what.

A line is PAPER/NAME, how many jobs it has, and the SHA-256 of their words, configurations and cells as sorted JSON.
Who changes a configuration on purpose writes the file anew: ``python tests/report/test_papers_composed.py``.
"""

import hashlib
import json
from pathlib import Path

from fkl.config import experiments
from fkl.papers import jobs as grid

FILE = Path(__file__).with_name("composed_jobs.txt")


def line_of(experiment: str, jobs: tuple[grid.PaperJob, ...]) -> str:
    plain = json.dumps([[job.words, job.config, job.cell] for job in jobs], sort_keys=True)
    return f"{experiment} {len(jobs)} {hashlib.sha256(plain.encode()).hexdigest()}"


def all_lines() -> list[str]:
    names = [name for paper in experiments.paper_files() for name in sorted(experiments.paper_experiments(paper))]
    return [line_of(name, grid.experiment_jobs(name)) for name in names]


def test_all_jobs_of_all_papers_are_composed_as_ever() -> None:
    assert all_lines() == FILE.read_text().splitlines()


if __name__ == "__main__":
    FILE.write_text("\n".join(all_lines()) + "\n")
