"""No label lies about what runs: a method that is named after its kernel refuses any other dictionary."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken.pairs import PAIRS
from broken.refusal import require_refused
from conftest import Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.mark.parametrize("words", PAIRS)
def test_a_dictionary_that_the_method_is_not_named_after_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, words: str
) -> None:
    call = ["dataset=diabetes", "replicates=1", *words.split(" ")]
    if "partition=" not in words:
        call.append("partition=stream")
    require_refused(fkl("run", *call), tmp_path, PAIRS[words])


@pytest.mark.parametrize(
    "words",
    [
        "algo=rbf_1 kernels.bandwidth_convention=variance kernels.smallest=0.5 kernels.largest=0.5",
        "algo=omkr kernels=poly_2 kernels.N=3 kernels.smallest=1 kernels.largest=4",
    ],
)
def test_the_same_kernel_in_other_words_runs(fkl: Callable[..., Answer], words: str) -> None:
    answer = fkl("run", "dataset=diabetes", "replicates=1", "partition=stream", *words.split(" "))
    assert answer.code == 0, answer.err
