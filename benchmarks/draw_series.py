"""`python -m benchmarks.draw_series`: draw docs/findings/bench.png, the ratios of `--store docs/findings/bench.csv`."""

from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import series

FINDINGS = Path(__file__).parents[1] / "docs" / "findings"
COLUMNS = 3
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


def main() -> None:
    """One panel for each benchmark, one line for each processor."""
    table = series.read(FINDINGS / "bench.csv")
    table["ratio"] = table["ratio"].astype(float)
    colours = dict(zip(table["processor"].unique(), COLOURS, strict=False))
    commits = {commit: place for place, commit in enumerate(table["commit"].unique())}
    ticks = [f"{commit}\n{table['date'][table['commit'] == commit].iloc[0][5:]}" for commit in commits]
    cases = table["benchmark"].unique()
    figure = Figure(figsize=(9, 2 * -(-len(cases) // COLUMNS)), layout="constrained")
    panels = figure.subplots(-(-len(cases) // COLUMNS), COLUMNS, sharex=True, squeeze=False).flat
    for benchmark, panel in zip(cases, panels, strict=False):
        for processor, colour in colours.items():
            mine = table[(table["benchmark"] == benchmark) & (table["processor"] == processor)]
            panel.plot(mine["commit"].map(commits), mine["ratio"], color=colour, marker="o", ms=4, label=processor)
        name, shape = benchmark.split(", ", 1)
        panel.axhline(1, color="black", lw=0.8, ls=":")
        panel.set_title(f"{name}\n{shape}", fontsize=7)
        panel.set_xticks(range(len(ticks)), ticks, fontsize=6)
        panel.set_ylim(0, 1.15 * table["ratio"][table["benchmark"] == benchmark].max())
        panel.grid(alpha=0.3)
    for panel in panels:  # those without a benchmark
        panel.axis("off")
    figure.supylabel("time / floor")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(FINDINGS / "bench.png", dpi=75)


if __name__ == "__main__":
    main()
