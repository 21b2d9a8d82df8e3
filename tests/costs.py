"""A plugin of pytest that tells what each file of tests costs, in seconds of processors: `make test-costs`."""

import os
from collections import Counter
from typing import Any

import pytest

BEGAN, NAME = pytest.StashKey[float](), "core seconds"
COSTS, ITEMS = Counter[str](), Counter[str]()


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
    file = report.nodeid.partition("::")[0].removeprefix("tests/")
    for name, seconds in report.user_properties if report.when == "teardown" else ():
        if name == NAME:
            COSTS[file] += float(seconds)  # type: ignore[assignment,arg-type]
            ITEMS[file] += 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    dear = {f"`{file}`": [file] for file, seconds in COSTS.most_common() if seconds >= 4}
    rest = [file for file in COSTS if f"`{file}`" not in dear]
    terminalreporter.write_line("| file | core seconds | tests |\n|---|---|---|")
    for label, files in (dear | {f"{len(rest)} others": rest, "all": list(COSTS)}).items():
        cost, items = (sum(count[file] for file in files) for count in (COSTS, ITEMS))
        terminalreporter.write_line(f"| {label} | {cost:.0f} | {items} |")
