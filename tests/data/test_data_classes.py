"""Classes and words that only test rows have, for each method of classes and each way to give test rows."""

from pathlib import Path

import pytest

METHODS = {
    "pooled_svm": (), "cascade_svm": (), "parsimonious_federated": (), "parsimonious_centralized": (), "fed3r": (),
    "fedavg": ("algo.loss=softmax", "algo.iterations=3", "kernels=coke"),
    "scaffold": ("algo.loss=one_vs_rest", "algo.iterations=3", "kernels=coke"),
    "coke": ("algo.loss=logistic", "algo.iterations=3"), "fd_svrg": ("partition=vertical",),
    "vertical_nystroem": ("partition=vertical", "algo.loss=squared_hinge"),
}  # fmt: skip
TRAIN, ODD = [n % 2 for n in range(30)], [*[n % 2 for n in range(9)], 7]
REFUSED = "no training row has the class {!r}; correct the label, or give training rows of its class"


def written(name, cells, label=str):
    """A file of these labels, behind two features of which the first is a word."""
    rows = (f"{'pq'[n % 2]},{n * n % 11},{label(cell)}" for n, cell in enumerate(cells))
    Path(name).write_text("\n".join(["w,a,y", *rows, ""]))
    return name


@pytest.fixture
def play(fkl):
    def run(method, *words):
        own = ("dataset=file", "dataset.path=train.csv", "dataset.target=y", "dataset.text=code")
        return fkl("run", f"algo={method}", *own, "replicates=1", "figures=none", *METHODS.get(method, ()), *words)

    return run


@pytest.mark.parametrize("method", METHODS)
def test_a_class_that_only_test_rows_have_is_refused(play, method):
    """In a file of test rows, or in drawn ones; as a number or as a word."""
    written("train.csv", TRAIN)
    answer = play(method, f"dataset.test_path={written('test.csv', ODD)}")
    assert answer.code == 2 and REFUSED.format("7") in answer.err
    words = {0: "<=50K", 1: ">50K", 7: ">50K."}
    written("train.csv", TRAIN, words.get)
    answer = play(method, f"dataset.test_path={written('test.csv', ODD, words.get)}", "dataset.labels=code")
    assert answer.code == 2 and REFUSED.format(">50K.") in answer.err
    vertical = "partition=vertical" in METHODS[method]
    written("train.csv", [0] * 29 + [5] if vertical else [*TRAIN, 5])
    answer = play(method, "partition.test_share=0.9" if vertical else "algo.test_on=last", "scaling=none")
    assert answer.code == 2 and REFUSED.format("5") in answer.err


@pytest.mark.parametrize("method", ["one_shot_ridge", "vertical_ridge", "pooled_svm"])
def test_words_that_only_test_rows_have_are_counted_in_a_note(play, method):
    """Once, with the first of them, if they get no feature."""
    train, test = written("train.csv", TRAIN), Path(written("test.csv", TRAIN))
    test.write_text(test.read_text().replace("q,", "late,").replace("p,0", "zz,0"))
    words = ("partition=vertical",) if "vertical" in method else ()
    answer = play(method, *words, f"dataset.test_path={test}", "dataset.text=one_hot")
    note = f"{train}: 17 test rows with a word that no training row has, which gets no feature: 'zz' in column w"
    assert answer.code == 0 and answer.err.count(note) == 1, answer.err
    answer = play(method, *words, f"dataset.test_path={test}")
    assert (
        answer.code == 2 and "no training row has the word 'zz'; dataset.text=one_hot gives it no feature" in answer.err
    )
    answer = play(method, *words, "dataset.text=one_hot")
    assert answer.code == 0 and "no training row" not in answer.err
