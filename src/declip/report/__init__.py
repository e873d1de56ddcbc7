"""Restorations to look at: a self-contained page, a list of cells, a view in a notebook."""

from declip.extras import needs

with needs("report"):
    from declip.report.cell_list import write_cells
    from declip.report.imputations import write_imputations
    from declip.report.page import notebook_html, render, write_report
    from declip.report.view import View

__all__ = ["View", "notebook_html", "render", "write_cells", "write_imputations", "write_report"]
