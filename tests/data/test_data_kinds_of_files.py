"""Kinds of files and cells that real tables have, and how they are read or refused."""

import numpy as np
import pytest

from fkl.data.encoder import FileFormat
from fkl.data.notation import first_in_other_notation

NAMES = [
    "Week {}", "SCREENING {}", "District {}", "HHS Region {}", "{}th", "1975-{:03}", "{}-100", "{} Jan", "{}-Nov",
    "3 {}. March", "{} Q1", "{}q4", "{}_north", "910.141.{}", "192.168.100.{}", "https://a.b/c?year={}",
]  # fmt: skip
NUMBERS = [
    "{} kg", "{}m2", "EUR {}", "₹{}", "<{}", "{}*", "{} months", "approx. {}.5", "1,{:03}.5 m", "1.{:03},5 m",
    "{}.5-103", "{}.5Q+03", "D +{}.3", "\u2013{}",
]  # fmt: skip


def first(cells: list[str], of_classes: bool = False) -> int | None:
    """Place of the first number in another notation."""
    return first_in_other_notation(cells, np.ones(len(cells), np.int64), np.zeros(len(cells), np.bool_), of_classes)


@pytest.mark.parametrize("written", NAMES)
def test_names_that_end_or_begin_with_a_number_are_words(written):
    assert first([written.format(number) for number in range(20, 60)]) is None


@pytest.mark.parametrize("written", NUMBERS)
def test_a_number_with_signs_or_a_unit_is_a_number(written):
    assert first([written.format(number) for number in range(20, 60)]) == 0


@pytest.mark.parametrize("dash", ["-", *"\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"])
@pytest.mark.parametrize("written", ["{}12.5", "{}12.5 kg", "{}$12.5", "${}12.5", "{} 12.5 m"])
def test_advice_on_a_negative_number_keeps_its_sign_whatever_the_dash(dash, written):
    cell = written.format(dash)
    if FileFormat().number(cell) is None:
        assert "such as -12.5 for this one" in FileFormat().advice_on_cell(cell)
