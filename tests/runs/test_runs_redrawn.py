"""Participants that are drawn are drawn anew in every replicate of a method with splits of its own."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from fkl.data.wisdm import SECOND


def test_every_replicate_has_participants_of_its_own(fkl: Callable, tmp_path: Path) -> None:
    """Each participant has another number of windows, so that the numbers of samples tell who was drawn."""
    folder = tmp_path / "files" / "wisdm"
    folder.mkdir(parents=True)
    for participant in range(1641, 1647):
        lines = []
        for letter in "AB":
            for number in range(20 * 5 * (participant - 1635)):
                lines.append(
                    f"{participant},{letter},{10**14 + number * SECOND // 20},{number % 7},1.0,{letter == 'A'};"
                )
        text = "\n".join(lines).replace("True", "1.0").replace("False", "0.0")
        (folder / f"data_{participant}_accel_phone.txt").write_text(text + "\n")
    words = ("dataset=wisdm", "dataset.participants=2", "algo=cascade_svm", "scaling=none", "replicates=6")
    answer = fkl("run", *words, f"paths.data={folder.parent}", "out=here")
    assert answer.code == 0, answer.err
    assert answer.out.count("participants of the 6 available") == 1, "what was found is told once"
    samples = pd.read_csv("here/clients.csv").groupby("replicate")["test_samples"].sum()
    assert samples.nunique() > 1
    assert set(pd.read_csv("here/clients.csv")["site"]) == {"drawn1", "drawn2"}
