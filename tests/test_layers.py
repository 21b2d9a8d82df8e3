"""No module imports one of a layer above its own; an import inside a function counts, and one for types alone, too."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import fkl

ROOT = Path(fkl.__file__).parent
LAYERS = {
    "basics": ("fkl", "fkl.basics", "fkl.screen"),
    "data": ("fkl.data",),
    "config": ("fkl.config",),
    "kernels": ("fkl.kernels",),
    "network": ("fkl.network",),
    "wire": ("fkl.wire",),
    "contract": ("fkl.contract",),
    "tasks": ("fkl.tasks",),
    "conditions": ("fkl.conditions",),
    "algorithms": ("fkl.algorithms",),
    "engines": ("fkl.engines",),
    "runs": ("fkl.runs",),
    "statistics": ("fkl.statistics",),
    "report": ("fkl.report",),
    "sweeps": ("fkl.sweeps",),
    "study": ("fkl.study",),
    "papers": ("fkl.papers",),
    "conformance": ("fkl.conformance",),
    "theory": ("fkl.theory",),
    "sites": ("fkl.sites",),
    "estimators": ("fkl.estimators",),
    "commands": ("fkl.cli", "fkl.__main__"),
}
"""From low to high: every module of a package belongs to its layer. All may print, so `fkl.screen` is at the bottom."""
NAMES = list(LAYERS)
LAYER_OF = {module: number for number, modules in enumerate(LAYERS.values()) for module in modules}


def modules() -> dict[str, Path]:
    """Every module of fkl by its name."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(("fkl", *(part for part in parts if part != "__init__")))] = file
    return found


MODULES = modules()


def layer(module: str) -> int:
    """Number of a module's layer: its own, or that of the nearest package that has one, fkl itself aside."""
    name = module
    while name not in LAYER_OF and name.count(".") > 1:
        name = name.rpartition(".")[0]
    assert name in LAYER_OF, f"say in LAYERS where {module} belongs"
    return LAYER_OF[name]


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each module of fkl that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: no relative imports"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else str(node.module) for name in whole]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.partition(".")[0] == "fkl")


def test_no_module_imports_a_higher_one() -> None:
    above = [
        f"{module}, line {line}: {NAMES[layer(module)]} imports {other} of {NAMES[layer(other)]}"
        for module, file in MODULES.items()
        for line, other in imported(file)
        if layer(other) > layer(module)
    ]
    assert not above
    assert all(name in MODULES for name in LAYER_OF)  # none is left of a module that has gone


def test_no_imports_go_in_a_circle() -> None:
    graph = TopologicalSorter(
        {module: {other for _, other in imported(file)} - {module} for module, file in MODULES.items()}
    )
    graph.prepare()  # raises CycleError, which names the circle


def test_nothing_private_of_hydra_is_used() -> None:
    assert [name for name, file in MODULES.items() if "hydra._internal" in file.read_text()] == []
