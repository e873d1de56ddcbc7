"""Measure what is promised of files, long fits and determinism.

`python -m reliability.persistence` writes the figures to ``reliability/results/persistence.json``
and into the page ``docs/evidence/reliability/persistence.md``.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

from declip.environment import environment, in_words
from reliability import damage, determinism, files, interrupts, kills

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reliability" / "results" / "persistence.json"
PAGE = ROOT / "docs" / "evidence" / "reliability" / "persistence.md"
BEGIN, END = "<!-- figures: python -m reliability.persistence -->", "<!-- end of figures -->"


def studies(quick):
    """Return the studies by name."""
    return {
        "damaged files": lambda: damage.damaged_files(1_500 if quick else 10_000),
        "damaged tables": lambda: files.damaged_tables(1_800 if quick else 20_000),
        "saves killed": lambda: kills.saves_killed(5 if quick else 50),
        "fits killed": lambda: kills.fits_killed(1 if quick else 3),
        "Ctrl-C": lambda: interrupts.ctrl_c(1 if quick else 5),
        "repeats": lambda: determinism.repeats(3 if quick else 20),
        "processes and threads": determinism.processes_and_threads,
        "shared by 8 threads": lambda: determinism.shared(500 if quick else 10_000),
    }


def rows(figures):
    """Yield lines of a table: what was measured, what was found."""
    for study, found in figures.items():
        for name, value in found.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            text = ", ".join(f"{part} {_shown(figure)}".strip() for part, figure in parts)
            yield f"| {study} | {name} | {text} |"


def _shown(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write(figures):
    """Keep the figures, with those of other studies of earlier runs, and show them on the page."""
    before = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else {}
    known = before | figures
    report = {
        **environment(),
        "figures": {name: known[name] for name in studies(False) if name in known},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    head, rest = PAGE.read_text().split(BEGIN)
    where = f"{in_words(report)}."
    table = ["| study | figure | found |", "|---|---|---|", *rows(report["figures"])]
    PAGE.write_text("\n".join([head + BEGIN, "", where, "", *table, "", END + rest.split(END)[1]]))


def main():
    """Run the studies."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything; nothing is kept")
    parser.add_argument("--only", help="one study; the figures of the others stay as they were")
    options = parser.parse_args()
    for name, study in studies(options.quick).items():
        if options.only in (None, name):
            began = time.monotonic()
            found = {name: study()}
            print("\n".join(rows(found)), f"\n({time.monotonic() - began:.0f} s)", flush=True)
            if not options.quick:
                write(found)


if __name__ == "__main__":
    main()
