"""Measure what is promised against hostile files, bad luck and Ctrl-C.

`python -m reliability.hostile` writes the figures to ``reliability/results/hostile.json`` and into
the page ``docs/evidence/reliability/hostile.md``.
"""

from reliability import endings, files, forgeries, tables
from reliability.figures import Page, part
from reliability.given_back import files_given_back


def studies(share=1.0, resume=False):
    """Return the studies by name."""
    return {
        "damaged tables": lambda: files.damaged_tables(part(20_000, share), resume),
        "files given back": lambda: files_given_back(part(1_000, share)),
        "forged models": lambda: forgeries.forged_models(part(2_000, share), resume),
        "random tables": lambda: tables.random_tables(part(10_000, share), resume),
        "Ctrl-C": lambda: endings.ctrl_c(part(100, share)),
        "page ended": lambda: endings.page_ended(part(100, share), resume),
    }


if __name__ == "__main__":
    Page("hostile", studies).run()
