"""Remarks on comparisons of clients alone with others on rows in file order."""

from fkl.report.compare.cells import ComparedCells


def about_alone(dataset: str, order: str) -> str:
    """A sentence on clients alone beside others, where the rows are in this order."""
    return (
        f"{dataset}: {order}; alone against federated is a question about this order, and "
        "partition=iid, which deals rows at random, may turn the answer."
    )


def about_row_order(cells: ComparedCells) -> list[str]:
    """A sentence for each data set on which clients alone stand beside others, on rows whose order matters."""
    lines = []
    for dataset in cells.datasets:
        runs = [run for cell, of_cell in cells.runs.items() if cell.dataset == dataset for run in of_cell]
        orders = [str(run.provenance["row_order"]) for run in runs if "row_order" in run.provenance]
        # Only if both kinds of learners were run on rows in such an order
        if orders and len({run.config.get("learners") == "alone" for run in runs}) > 1:
            lines.append(about_alone(dataset, orders[0]))
    return lines
