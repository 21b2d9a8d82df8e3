"""Tables as CSV, Markdown and LaTeX from one data frame."""

from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fkl.results.folder import replacing_file


def write_table(table: pd.DataFrame, path: Path, title: str, notes: str = "") -> list[Path]:
    """Write `path`.csv, .md and .tex.

    Parameters
    ----------
    table : DataFrame
    path : Path
        Without a suffix.
    title : str
        Heading in Markdown, caption in LaTeX.
    notes : str
        Markdown that follows the Markdown table.

    Returns
    -------
    list of Path
    """
    words = table.map(_word)
    alignment = ["right" if pd.api.types.is_numeric_dtype(column) else "left" for _, column in table.items()]
    rows = words.to_numpy().tolist()

    def rendered(style: str) -> str:
        return tabulate(rows, headers=list(words), tablefmt=style, colalign=alignment, disable_numparse=True)

    tex = f"% {title}\n\\begin{{table}}\n\\caption{{{title}}}\n{rendered('latex_booktabs')}\n\\end{{table}}\n"
    texts = {
        ".csv": table.to_csv(index=False, float_format="%.6g"),
        ".md": f"# {title}\n\n{rendered('pipe')}\n\n{notes}".rstrip() + "\n",
        ".tex": tex,
    }
    files = []
    for suffix, text in texts.items():
        files.append(path.with_suffix(suffix))
        replacing_file(files[-1], text)
    return files


def _word(value: object) -> str:
    """A cell as people read it: four significant digits, nothing where nothing is known."""
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.4g}"
    return str(value)
