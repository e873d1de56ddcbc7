"""Studies run one after the other, their figures kept and shown on a page of the evidence."""

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from typing import Any

from declip.environment import environment, in_words
from reliability.children import ROOT

_END = "<!-- end of figures -->"


@dataclass(frozen=True)
class Page:
    """A page of the evidence, ``docs/evidence/reliability/NAME.md``, and its studies.

    ``studies(share, resume)`` maps the name of each study to a call that runs that share of its
    cases, or what is left of them.
    """

    name: str
    studies: Any

    def write(self, figures):
        """Keep the figures, with those of other studies of earlier runs, and show them."""
        results = ROOT / "reliability" / "results" / f"{self.name}.json"
        page = ROOT / "docs" / "evidence" / "reliability" / f"{self.name}.md"
        begin = f"<!-- figures: python -m reliability.{self.name} -->"
        before = json.loads(results.read_text())["figures"] if results.exists() else {}
        known = before | figures
        shown = {name: known[name] for name in self.studies() if name in known}
        report = {**environment(), "figures": shown}
        results.parent.mkdir(exist_ok=True)
        results.write_text(json.dumps(report, indent=1) + "\n")
        head, rest = page.read_text().split(begin)
        table = ["| study | figure | found |", "|---|---|---|", *rows(shown)]
        lines = [head + begin, "", f"{in_words(report)}.", "", *table, "", _END]
        page.write_text("\n".join(lines) + rest.split(_END)[1])

    def run(self):
        """Run the studies that are asked for."""
        warnings.simplefilter("ignore")
        parser = argparse.ArgumentParser()
        parser.add_argument("--quick", action="store_true", help="few cases; nothing is kept")
        parser.add_argument("--share", type=float, default=1.0, help="of the cases, such as 0.5")
        parser.add_argument("--resume", action="store_true", help="go on with a broken-off run")
        parser.add_argument("--only", help="one study; the figures of the others stay")
        options = parser.parse_args()
        share = 0.001 if options.quick else options.share
        for name, study in self.studies(share, options.resume).items():
            if options.only in (None, name):
                began = time.monotonic()
                found = {name: study()}
                print("\n".join(rows(found)), f"\n({time.monotonic() - began:.0f} s)", flush=True)
                if not options.quick:
                    self.write(found)


def part(count, share):
    """Return a share of a number of cases, at least one."""
    return max(1, round(count * share))


def rows(figures):
    """Yield lines of a table: what was measured, what was found."""
    for study, found in figures.items():
        for name, value in found.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            text = ", ".join(f"{part} {_shown(figure)}".strip() for part, figure in parts)
            yield f"| {study} | {name} | {text} |"


def _shown(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)
