"""What `declip check` finds: how the file is read, what can be restored, and what to type next."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.detect import detect_limits, spreads_widely
from declip.detect.proposal import LimitProposal
from declip.diagnostics import Diagnosis, diagnose
from declip.intervals import Intervals
from declip.io import TableFile
from declip.options import Reading, as_option, in_own_words

__all__ = ["Checked"]

_WIDTH = 96
_FEW = 5  # exact values without which a column has nothing to be restored from
_LISTED = 12  # columns that are listed


@dataclass(frozen=True, eq=False)
class Checked:
    """A file that was looked at.

    Attributes
    ----------
    table : TableFile
        The file.
    reading : Reading
        What was said about it.
    diagnosis : Diagnosis
        What its exact cells can carry.
    proposal : LimitProposal
        Limits that its values seem to have.
    cannot : dict
        Columns with clipped cells that cannot be restored, and why.
    can : list of str
        Those that can.
    """

    table: TableFile
    reading: Reading
    diagnosis: Diagnosis
    proposal: LimitProposal
    cannot: dict[str, str]
    can: list[str]

    @classmethod
    def of(cls, table: TableFile, reading: Reading) -> Checked:
        """Look at a file."""
        cells = table.intervals
        diagnosis = diagnose(cells)
        counts = diagnosis.coverage.cols
        names = _names(cells)
        cannot = {
            names[j]: why
            for j in np.flatnonzero(counts.clipped > 0).tolist()
            if (why := _why_not(counts, j))
        }
        clipped = [names[j] for j in np.flatnonzero(counts.clipped > 0).tolist()]
        can = [name for name in clipped if name not in cannot]
        return cls(table, reading, diagnosis, detect_limits(cells), cannot, can)

    @property
    def verdict(self) -> str:
        """Whether what is clipped can be restored, in a sentence."""
        n = len(self.can) + len(self.cannot)
        if n == 0:
            return "Nothing is marked as beyond a limit."
        if self._is_alone:
            return "Nothing can be restored: it needs values of two columns beside each other."
        if not self.can:
            return "None of the columns with clipped cells can be restored."
        if not self.cannot:
            what = {1: "The column", 2: "Both columns"}.get(n, f"All {n} columns")
            return f"{what} with clipped cells can be restored."
        return f"{len(self.can)} of {n} columns with clipped cells can be restored."

    @property
    def _is_alone(self) -> bool:
        """Whether fewer than two columns have values, so that none tells of another."""
        return int((self.diagnosis.coverage.cols.exact >= _FEW).sum()) < 2

    @property
    def command(self) -> str:
        """The command to type next."""
        return self._said("restore")

    def _said(self, command: str) -> str:
        words = ["declip", command, str(self.table.path), *self.reading.spelled()]
        if self._kept_below and not self.table.intervals.n_censored:
            words += ["--format", self._export] if self._export else ["--below-limit", "censored"]
        words += [*self._proposed(), *(["--log"] if spreads_widely(self.table.intervals) else [])]
        if self._why_missing != "random":
            words += ["--missing-means", self._why_missing]
            words += ["--fill"] if command == "restore" else []
        return " ".join(map(shlex.quote, words))

    @property
    def _export(self) -> str | None:
        """The export whose columns these are, if it was not said."""
        return self._remedy("format")

    def _remedy(self, option: str) -> str | None:
        """Return what a note on the reading says could be given as an option."""
        notes = () if self.table.plan is None else self.table.plan.notes
        remedies = (remedy for note in notes for remedy in note.remedies)
        return next((remedy.value for remedy in remedies if remedy.option == option), None)

    @property
    def _kept_below(self) -> int:
        """Number of values below their limits that count as they were measured."""
        plan = self.table.plan
        return 0 if plan is None else plan.counts.get("kept_below", 0)

    @property
    def _why_missing(self) -> str:
        return "random" if self.proposal.missing is None else self.proposal.missing.word

    def _proposed(self) -> Iterator[str]:
        """Yield the proposed limits as options, where nothing else is known of limits."""
        if self.table.intervals.n_censored:
            return
        names = _names(self.table.intervals)
        for side in ("ceiling", "floor"):
            limit = getattr(self.proposal, side)
            if limit is None:
                continue
            if np.ndim(limit) == 0:
                yield from (f"--{side}", f"{limit:g}")
                continue
            for name, number in zip(names, limit, strict=True):
                if np.isfinite(number):
                    yield from (f"--{side}", f"{name}={number:g}")

    def __str__(self) -> str:
        parts = [self._understood(), self._columns(), self._verdict(), self._limits()]
        parts += [in_own_words(str(self.proposal.missing or "")), self._next()]
        return "\n\n".join(part for part in parts if part)

    def _understood(self) -> str:
        if self.table.plan is None:
            rows, cols = self.table.intervals.shape
            return f"A table of {rows:,} rows and {cols:,} columns."
        plan = self.table.plan
        lines = [textwrap.fill(plan.said(as_option), _WIDTH)]
        for example in plan.examples:
            lines += [f"  {example.place}: {example.text}", f"      {example.understood}"]
        return "\n".join(lines)

    def _columns(self) -> str:
        counts = self.diagnosis.coverage.cols
        order = np.argsort(-counts.clipped, kind="stable")
        shown = [int(j) for j in order if counts.clipped[j]][:_LISTED]
        if not shown:
            return ""
        names = [" ".join(name.split()) for name in _names(self.table.intervals)]
        width = max([len(names[j]) for j in shown] + [6])
        lines = [f"{'column':<{width}} {'exact':>8} {'below':>8} {'above':>8} {'missing':>8}"]
        for j in shown:
            missing = counts.n_cells - counts.observed[j]
            figures = (counts.exact[j], counts.floor[j], counts.ceiling[j], missing)
            lines.append(f"{names[j]:<{width}} " + " ".join(f"{int(n):>8,}" for n in figures))
        more = int((counts.clipped > 0).sum()) - len(shown)
        if more:
            lines.append(f"and {more} more column{'s' * (more > 1)} with clipped cells")
        return "\n".join(lines)

    def _verdict(self) -> str:
        lines = [self.verdict]
        some = list(self.cannot.items())
        lines += [f"  not {name!r}: {why}" for name, why in some[:_LISTED]]
        if len(some) > _LISTED:
            lines.append(f"  and not {len(some) - _LISTED} more")
        return "\n".join(lines)

    def _limits(self) -> str:
        nothing = self.proposal.ceiling is None and self.proposal.floor is None
        if nothing or self._remedy("missing") is not None:
            return ""
        head = (
            "Values also pile up at ends"
            if self.table.intervals.n_censored
            else "Values pile up at ends"
        )
        limits = in_own_words(self.proposal.limits).partition("Nothing was applied")[0].rstrip()
        return f"{head}, as they do at limits:\n{textwrap.indent(limits, '  ')}"

    def _next(self) -> str:
        clipped = self.table.intervals.n_censored
        found = self.proposal.ceiling is not None or self.proposal.floor is not None
        if not clipped and self._kept_below:
            return f"Next, if what is below its limit counts as censored: {self.command}"
        if clipped and (self._is_alone or not self.can):
            return f"Next, for what can be said of columns alone: {self._said('summary')}"
        code = self._remedy("missing")
        if code is not None:
            words = ["declip", "check", str(self.table.path), *self.reading.spelled()]
            means = "means that nothing was found" if code == "0" else "stands for a missing value"
            return f"Next, if {code} {means}: {shlex.join(words)} --missing {code}"
        if not clipped and not found and self._why_missing == "random":
            return f"Next, if it has limits: {self.command} --ceiling NUMBER"
        return f"Next: {self.command}"

    def facts(self) -> dict[str, Any]:
        """Return everything for a program."""
        plan, form = self.table.plan, self.table.format
        return {
            "file": self.table.path,
            "understood": None if plan is None else plan.said(as_option),
            "options": None if plan is None else plan.as_options(),
            "examples": [] if plan is None else [vars(example) for example in plan.examples],
            "format": {n: getattr(form, n) for n in ("kind", "layout", "separator", "decimal")},
            "diagnosis": self.diagnosis.as_dict(),
            "verdict": self.verdict,
            "can": self.can,
            "cannot": self.cannot,
            "proposed": {"ceiling": self.proposal.ceiling, "floor": self.proposal.floor},
            "missing_means": self._why_missing,
            "next": self.command,
        }


def _names(cells: Intervals) -> list[str]:
    labels: NDArray | None = cells.col_labels
    return [str(name) for name in (range(cells.shape[1]) if labels is None else labels.tolist())]


def _why_not(counts: Any, j: int) -> str:
    """Return why a column cannot be restored; empty if it can."""
    if counts.exact[j] == 0:
        return "it has no exact value, so that nothing is known beyond its limits"
    if counts.exact[j] < _FEW:
        return f"it has only {int(counts.exact[j])} exact values"
    return "no exact value connects it with other columns" if counts.component[j] > 0 else ""
