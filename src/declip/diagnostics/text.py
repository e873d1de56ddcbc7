"""A diagnosis in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import numpy as np

from declip.diagnostics.coverage import AxisCounts, Coverage
from declip.diagnostics.determination import Margin, weakest
from declip.diagnostics.fitted import FittedChecks
from declip.diagnostics.limit_checks import Concern
from declip.diagnostics.theory import LIMITS, Range, Theory
from declip.validation import name_some

__all__ = ["advice", "report", "verdict", "worst"]

_WIDTH = 88
_WORST = 5  # rows and columns named as the worst
_CERTIFIED = 1e-3  # relative gap up to which a fit counts as optimal
_RECOVERS = 1e-6  # margin from which noiseless fits recovered
_UNEVEN = 1.5  # ratio of residuals near and far from the limits that is worth a word


def verdict(coverage: Coverage, fit: FittedChecks | None) -> str:
    """Return the verdict in a sentence."""
    if coverage.n_exact == 0:
        return "This table cannot be restored: it has no exact cell."
    return _verdict_before(coverage) if fit is None else _verdict_after(coverage, fit)


def _verdict_before(coverage: Coverage) -> str:
    rank = coverage.largest_rank()
    if rank == 0:
        return "This table has too few exact cells for a model of even one factor."
    if coverage.n_components > 1:
        return (
            f"The exact cells can carry a model of rank {rank} at most, and fall into "
            f"{coverage.n_components} parts that nothing connects."
        )
    return f"The exact cells can carry a model of rank {rank} at most. Fit one, then diagnose it."


def _verdict_after(coverage: Coverage, fit: FittedChecks) -> str:
    found = fit.determination
    n_rows, n_cols = coverage.shape
    if not (found.rows.any() and found.cols.any()):
        return "This fit is not determined by the exact cells: do not rely on the restored values."
    share = float(fit.in_determined.mean()) if len(fit.rows) else 1.0
    if found.margin_determined.best <= _RECOVERS or share < 0.5:
        return (
            f"Most of this table is not determined: only {share:.0%} of the clipped cells lie in "
            "rows and columns that the exact cells determine."
        )
    if found.rows.all() and found.cols.all():
        firm = found.margin.best >= weakest(max(coverage.shape))
        return "The exact cells determine every row and column of this fit" + (
            "." if firm else ", but only weakly: small errors in them may grow large."
        )
    return (
        f"Restored in part: the exact cells determine {found.rows.sum()} of {n_rows} rows and "
        f"{found.cols.sum()} of {n_cols} columns, and with them {share:.0%} of the clipped cells."
    )


def worst(counts: AxisCounts, fit: FittedChecks | None) -> list[dict[str, Any]]:
    """Return the rows (or columns) that are in the most doubt, the worst first."""
    if fit is None:
        doubtful, key = counts.clipped > 0, counts.exact.astype(float)
    else:
        found, by_row = fit.determination, counts.axis == "row"
        doubtful = ~(found.rows if by_row else found.cols)
        key = found.row_eigenvalues if by_row else found.col_eigenvalues
    which = np.flatnonzero(doubtful)
    # those with something to restore come first
    order = np.lexsort((counts.exact[which], key[which], counts.clipped[which] == 0))
    which = which[order][:_WORST]
    return [_line(counts, int(i), None if fit is None else float(key[i])) for i in which]


def _line(counts: AxisCounts, i: int, eigenvalue: float | None) -> dict[str, Any]:
    return {
        "name": i if counts.labels is None else counts.labels[i],
        "exact": int(counts.exact[i]),
        "clipped": int(counts.clipped[i]),
        "missing": int(counts.n_cells - counts.observed[i]),
        "smallest_eigenvalue": eigenvalue,
    }


def advice(coverage: Coverage, concerns: list[Concern], fit: FittedChecks | None) -> list[str]:
    """Return what to do, the most pressing first."""
    found = [concern.text for concern in concerns]
    found += _connections(coverage)
    return found + list(_advice_after(coverage, fit) if fit else _advice_before(coverage))


def _connections(coverage: Coverage) -> list[str]:
    apart = [
        name_some(counts.axis, outside, counts.labels)
        for counts in (coverage.rows, coverage.cols)
        if (outside := np.flatnonzero((counts.component > 0) & (counts.observed > 0))).size
    ]
    if not apart:
        return []
    return [
        f"No exact cell connects {' and '.join(apart)} with the rest: treat them apart, or leave "
        "them out."
    ]


def _advice_before(coverage: Coverage) -> Iterator[str]:
    rank = coverage.largest_rank()
    if rank:
        yield (
            f"Take n_components of at most {rank}, choose it on held-out cells, and run "
            "diagnose(estimator, X) on the fit."
        )


def _advice_after(coverage: Coverage, fit: FittedChecks) -> Iterator[str]:
    yield from _on_determination(coverage, fit)
    yield from _on_optimality(fit)
    yield from _on_residuals(fit)


def _on_determination(coverage: Coverage, fit: FittedChecks) -> Iterator[str]:
    found = fit.determination
    lost = [
        name_some(counts.axis, np.flatnonzero(~good), counts.labels)
        for counts, good in ((coverage.rows, found.rows), (coverage.cols, found.cols))
        if not good.all()
    ]
    if lost:
        yield (
            f"Not determined: {' and '.join(lost)}. Do not rely on what is restored there; fit "
            "fewer factors, raise alpha, or leave them out."
        )
    if fit.clipped == "value":
        yield "Clipped cells were fitted at face value: clipped='hinge' or 'tobit' restores them."


def _on_optimality(fit: FittedChecks) -> Iterator[str]:
    if not fit.optimality.converged:
        yield "The fit had not settled: raise max_iter, and diagnose it again."
    elif fit.optimality.relative_gap > _CERTIFIED and np.isfinite(fit.optimality.norm_ratio):
        yield (
            "The fit is not the best for its penalty over all ranks: more factors would fit "
            "better. That is no fault if the rank was chosen on held-out cells."
        )


def _on_residuals(fit: FittedChecks) -> Iterator[str]:
    checks = fit.residuals
    if checks.share_short > 0.1:
        yield (
            f"{checks.share_short:.0%} of the clipped cells are predicted short of their limit by "
            "more than the noise: the rank may be too small, alpha too large, or a limit wrong."
        )
    if not np.isnan(checks.near_ratio) and not 1 / _UNEVEN < checks.near_ratio < _UNEVEN:
        size = "larger" if checks.near_ratio > 1 else "smaller"
        yield (
            f"Residuals near the limits are {size} than elsewhere ({checks.near_ratio:.2g} times): "
            "try a transformation, such as logarithms, or clipped='tobit'."
        )


def report(
    coverage: Coverage,
    concerns: list[Concern],
    fit: FittedChecks | None,
    theory: Theory | None,
    expert_seconds: float,
) -> str:
    """Return the whole diagnosis in words."""
    blocks = [
        [*wrap(verdict(coverage, fit), _WIDTH)],
        [*_counts(coverage)],
        *([[*_fit_lines(fit)]] if fit else [[*_rank_lines(coverage)]]),
        [*_worst_lines(coverage, fit)],
        [*_advice_lines(advice(coverage, concerns, fit))],
        [*_theory_lines(theory)] if theory else [*_offer(expert_seconds)],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def _counts(coverage: Coverage) -> Iterator[str]:
    n_rows, n_cols = coverage.shape
    total, seen = n_rows * n_cols, max(coverage.n_observed, 1)
    yield f"{n_rows} rows, {n_cols} columns; {coverage.n_observed / total:.1%} of cells observed"
    kinds = [
        ("exact", coverage.n_exact),
        ("at or above a ceiling", int(coverage.rows.ceiling.sum())),
        ("at or below a floor", int(coverage.rows.floor.sum())),
        ("known by a range", int(coverage.rows.ranged.sum())),
    ]
    for kind, count in kinds:
        if count or kind == "exact":
            yield f"{count:10d} {kind} ({count / seen:.1%})"
    if coverage.n_components > 1:
        yield f"{coverage.n_components:10d} parts that no exact cell connects"


def _rank_lines(coverage: Coverage) -> Iterator[str]:
    table = coverage.ranks()
    shown = [k for k in (1, 2, 3, 5, 10, 20, 50) if k <= len(table["rank"])]
    yield "rank   degrees of freedom   rows and columns with fewer exact cells"
    for k in shown:
        freedom, rows, cols = (table[n][k - 1] for n in ("freedom", "short_rows", "short_columns"))
        share = freedom / max(coverage.n_exact, 1)
        yield f"{k:4d} {freedom:10d} ({share:6.1%}) {rows:12d} rows {cols:8d} columns"


def _fit_lines(fit: FittedChecks) -> Iterator[str]:
    found, parts = fit.determination, fit.parts
    yield f"{fit.name}, clipped={fit.clipped!r}, {found.rank} factors in a row"
    yield f"  determined      {found.rows.sum()} rows, {found.cols.sum()} columns"
    yield f"  margin          {_margin(found.margin)}"
    if found.margin_determined is not found.margin:
        yield f"                  {_margin(found.margin_determined)} in the determined part"
    yield f"  optimality      {_optimality(fit)}"
    yield f"  noise           {fit.uncertainty.sigma:.3g}"
    if len(fit.sd):
        median, high = np.quantile(fit.sd, [0.5, 0.9])
        yield f"  sd of restored  at least {median:.3g} in half the cells, {high:.3g} in a tenth"
        yield (
            f"  clipped cells   {fit.residuals.share_beyond:.0%} predicted beyond their limit, "
            f"{fit.residuals.share_short:.0%} short of it by more than 2 noise scales"
        )
    if not np.isnan(fit.residuals.near_ratio):
        yield f"  near a limit    residuals {fit.residuals.near_ratio:.2f} times those elsewhere"
    scope = "" if parts.with_truth else " (B1, B3: plug-in, observed cells)"
    yield f"  error parts     B1 {parts.B1:.3g}, B2 {parts.B2:.3g}, B3 {parts.B3:.3g}{scope}"
    if parts.with_truth:
        yield f"  error           {parts.error:.3g} in root mean square over all cells"


def _margin(margin: Margin) -> str:
    if np.isnan(margin.value):
        return f"between {margin.low:.1e} and {margin.high:.1e}"
    return f"{margin.value:.2e}" if margin.value else "0"


def _optimality(fit: FittedChecks) -> str:
    gap = fit.optimality.relative_gap
    if np.isnan(gap):
        return "no certificate for this method" + (
            "" if fit.optimality.converged else "; not settled"
        )
    if gap <= _CERTIFIED:
        return f"certified: at most {gap:.1e} of the objective above the optimum of any rank"
    return "not certified among all ranks"


def _worst_lines(coverage: Coverage, fit: FittedChecks | None) -> Iterator[str]:
    for counts in (coverage.rows, coverage.cols):
        lines = worst(counts, fit)
        if fit is None:
            lines = [line for line in lines if line["exact"] < max(coverage.largest_rank(), 1)]
        for n, line in enumerate(lines):
            head = f"Weakest {counts.axis}s:" if n == 0 else ""
            name = repr(line["name"]) if isinstance(line["name"], str) else str(line["name"])
            yield (
                f"{head:18s}{name}: {line['exact']} exact, {line['clipped']} clipped, "
                f"{line['missing']} missing"
            )


def _advice_lines(sentences: list[str]) -> Iterator[str]:
    for sentence in sentences:
        yield from wrap(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _offer(seconds: float) -> Iterator[str]:
    yield f"The paper's quantities, with expert=True: about {_duration(seconds)}."


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second at most"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _theory_lines(theory: Theory) -> Iterator[str]:
    source = "the truth" if theory.source == "truth" else "the fit (plug-in)"
    met = {True: "hold", False: "do not hold", None: "may or may not hold"}[theory.holds]
    yield f"Theorem 1 of the paper, at {source}: its conditions {met}."
    yield "Sufficient only: failing it does not mean failure."
    yield f"  rank {theory.rank}, mu_0 {theory.mu_0:.3g}, mu_1 {theory.mu_1:.3g}, k_0 {theory.k_0}"
    yield f"  nu_B     {theory.nu_B:.4f}, to be below {LIMITS['nu_B']}"
    yield f"           {_range(theory.nu_bounds)} from rows and columns alone"
    for name in ("rho_F", "rho_inf", "rho_op"):
        yield f"  {name:8s} {_range(getattr(theory, name))}, to be below {LIMITS[name]}"
    for name, needed in theory.p_min.items():
        yield f"  p_min {name:5s}{_range(needed)}"
    yield f"  p        {theory.p_observed:.3f} observed, {_range(theory.p_needed)} needed"
    yield f"  c_rho    {_range(theory.c_rho)}, so {_range(theory.p_simple)} by the short form"
    yield f"  delta    {theory.delta:.2g} at most, with beta = {theory.beta:g}"
    if theory.sizes is not None:
        beta_1, beta_2, mu = theory.sizes
        yield f"Theorem 2: beta_1 {beta_1:.3g}, beta_2 {beta_2:.3g}, mu of Clip {mu:.3g}"


def _range(r: Range) -> str:
    return f"{r.low:.4g}" if r.low == r.high else f"[{r.low:.4g}, {r.high:.4g}]"
