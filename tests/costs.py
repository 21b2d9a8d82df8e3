"""A plugin of pytest that prints what tests cost, in seconds of processors: `make test-costs`."""

import os
from collections import Counter
from typing import Any

import pytest

BEGAN, NAME = pytest.StashKey[float](), "core seconds"
COSTS, MOST = Counter[str](), 20


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    item.stash[BEGAN] = sum(os.times()[:4])  # of this process, and of those that it started and that have ended
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((NAME, sum(os.times()[:4]) - item.stash[BEGAN]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, seconds in report.user_properties if report.when == "teardown" else ():
        if name == NAME:
            COSTS[report.nodeid.removeprefix("tests/")] += float(seconds)  # type: ignore[assignment,arg-type]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The most expensive tests, and each folder."""
    folders, tests = Counter[str](), Counter[str]()
    for test, seconds in COSTS.items():
        folders[test.partition("/")[0].partition("::")[0]] += seconds
        tests[test.partition("/")[0].partition("::")[0]] += 1
    rows = [f"| `{test}` | {seconds:.1f} | 1 |" for test, seconds in COSTS.most_common(MOST)]
    rows += [f"| `{folder}` | {seconds:.0f} | {tests[folder]} |" for folder, seconds in folders.most_common()]
    head = "| test, or folder | core seconds | tests |\n|---|---|---|"
    terminalreporter.write_line("\n".join([head, *rows, f"| all | {COSTS.total():.0f} | {len(COSTS)} |"]))
