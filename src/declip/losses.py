r"""Losses of a censored cell: each an object, and everything that depends on which one it is.

An exact cell costs half its squared residual under every loss. A cell that is known to lie in
[lower, upper] costs, at a prediction x,

- `Hinge`: half the squared distance of x to the interval;
- `Tobit`: :math:`-\sigma^2 \log P(lower \le x + \sigma N(0, 1) \le upper)`, the censored normal
  likelihood; as :math:`\sigma` goes to 0 it becomes the hinge.

All are convex with a curvature between 0 and 1. The words of ``clipped=`` are mapped to a loss, and
to what becomes of the cells, by `CLIPPED_MODES` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.censoring import ranged
from declip.kernels import CellLoss, CompiledLoss

__all__ = ["CLIPPED_MODES", "CensoredSums", "Hinge", "Loss", "Residuals", "Tobit"]

_EM_STEPS = 3


class CensoredSums(NamedTuple):
    """Sums over the censored cells: of their loss, and of their expected squared residuals."""

    loss: float
    squares: float


class Residuals(Protocol):
    """What a noise scale is estimated from: the cells of a fit."""

    @property
    def n_cells(self) -> float:
        """Number of observed cells, or their weight."""

    @property
    def largest(self) -> float:
        """Largest size of a value or a limit; the scale stays below, and above a millionth."""

    def censored(self, loss: Loss) -> CensoredSums:
        """Return the sums over the censored cells under a loss."""


class Loss(ABC):
    """A loss of censored cells.

    A subclass has a ``scale`` of the noise (0 if it does without), a ``compiled`` struct, and how
    objective, unit, conjugate and estimate follow from them.
    """

    scale: float
    has_scale: ClassVar[bool] = False  # whether there is one to estimate

    @property
    @abstractmethod
    def compiled(self) -> CompiledLoss:
        """The compiled struct that serves it."""

    @abstractmethod
    def objective(self, loss: float, penalty: float, n_exact: float) -> float:
        """Return the objective from the loss of all cells and the penalty."""

    @abstractmethod
    def unit(self, n_cells: float, first: float, now: float) -> float:
        """Return what a fall of the objective is measured by, given where it began and is."""

    @abstractmethod
    def conjugate(
        self, x: NDArray, y: NDArray, shrink: float, lower: NDArray, upper: NDArray
    ) -> float:
        """Return the sum of f*(shrink * y), or more, for the gradient y at the predictions x."""

    @abstractmethod
    def estimated(self, fit: Residuals, loss: float, penalty: float) -> tuple[Loss, float]:
        """Return the loss with a better noise scale, and the loss of all cells under it.

        Parameters
        ----------
        fit : Residuals
            The cells.
        loss, penalty : float
            Loss of all cells so far, and the penalty of the fit in its unit.
        """

    @staticmethod
    def fitted(clipped: str, scale: float) -> Loss:
        """Return the loss that a fit ended with, by its word and its ``scale_``."""
        return CLIPPED_MODES[clipped].loss(lambda: float(scale))

    @staticmethod
    def to_fit(clipped: str, n_censored: int, scale: Callable[[], float]) -> Loss:
        """Return the loss that a fit begins with; ``scale`` gives a guess at the noise."""
        return CLIPPED_MODES[clipped].loss(scale) if n_censored else Hinge()

    def cells(self, x: NDArray, lower: NDArray, upper: NDArray, threads: int = 1) -> CellLoss:
        """Return value, gradient and curvature of the loss of cells predicted as ``x``.

        Examples
        --------
        >>> import numpy as np
        >>> from declip.losses import Hinge
        >>> Hinge().cells(np.array([4.0, 6.0]), np.full(2, 5.0), np.full(2, np.inf)).value
        array([0.5, 0. ])
        """
        return kernels.interval_loss(x, lower, upper, self.compiled, threads=threads)

    def expected(self, x: NDArray, lower: NDArray, upper: NDArray, threads: int = 1) -> NDArray:
        """Return the expected value of each cell given its interval: for the hinge the nearest."""
        gradient = self.cells(x, lower, upper, threads).gradient
        return np.clip(x - gradient, lower, upper)

    def expected_squares(self, x: NDArray, lower: NDArray, upper: NDArray) -> NDArray[np.float64]:
        """Return the expected squared residual of each cell given its interval."""
        return self._squares(self.cells(x, lower, upper))

    def sums(
        self,
        x: NDArray,
        lower: NDArray,
        upper: NDArray,
        threads: int = 1,
        weight: NDArray | None = None,
    ) -> CensoredSums:
        """Return what the noise scale needs to know of censored cells predicted as ``x``."""
        cell = self.cells(x, lower, upper, threads)
        value, squares = cell.value, self._squares(cell)
        if weight is not None:
            value, squares = weight * value, weight * squares
        return CensoredSums(float(value.sum()), float(squares.sum()))

    def _squares(self, cell: CellLoss) -> NDArray[np.float64]:
        # variance + squared mean of the residual given the interval
        return self.scale**2 * (1 - cell.curvature) + cell.gradient**2


@dataclass(frozen=True)
class Hinge(Loss):
    """Half the squared distance to the interval."""

    scale: ClassVar[float] = 0.0  # type: ignore[misc]

    @property
    def compiled(self) -> CompiledLoss:
        """The compiled hinge."""
        return kernels.compiled_loss("hinge")

    def objective(self, loss: float, penalty: float, n_exact: float) -> float:
        """Return loss + penalty."""
        return loss + penalty

    def unit(self, n_cells: float, first: float, now: float) -> float:
        """Return the objective itself; if it has all but vanished, a share of where it began."""
        return max(abs(now), 1e-12 * abs(first))

    def conjugate(
        self, x: NDArray, y: NDArray, shrink: float, lower: NDArray, upper: NDArray
    ) -> float:
        """Return the sum of y^2 / 2 and the support function of the interval."""
        y = shrink * y
        # The infinite end never has a weight.
        end = np.where(y > 0, upper, np.where(y < 0, lower, 0.0)).astype(np.float64)
        return float(y @ end + 0.5 * y @ y)

    def estimated(self, fit: Residuals, loss: float, penalty: float) -> tuple[Loss, float]:
        """Return itself: it has no scale."""
        return self, loss


@dataclass(frozen=True)
class Tobit(Loss):
    """The censored normal likelihood, times the squared noise scale.

    Attributes
    ----------
    scale : float
        Standard deviation of the noise.
    known : bool
        Whether it is known, and not to be estimated.
    """

    scale: float
    known: bool = False
    has_scale: ClassVar[bool] = True

    @staticmethod
    def at(scale: float) -> Loss:
        """Return the likelihood at a noise scale; at 0, where nothing was censored, its limit."""
        return Tobit(scale) if scale else Hinge()

    @property
    def compiled(self) -> CompiledLoss:
        """The compiled likelihood at this scale."""
        return kernels.compiled_loss("tobit", self.scale)

    def objective(self, loss: float, penalty: float, n_exact: float) -> float:
        """Return a negative log-likelihood plus the penalty in its unit."""
        value = loss + penalty
        return value / self.scale**2 + n_exact * np.log(np.sqrt(2 * np.pi) * self.scale)

    def unit(self, n_cells: float, first: float, now: float) -> float:
        """Return the number of cells: a log-likelihood has no zero to compare it with."""
        return float(n_cells)

    def conjugate(
        self, x: NDArray, y: NDArray, shrink: float, lower: NDArray, upper: NDArray
    ) -> float:
        """Return an upper bound: it is convex, and known at 0 and at the gradient."""
        # f*(t y) <= t f*(y) + (1 - t) f*(0), and f*(loss'(x)) = x loss'(x) - loss(x).
        at_gradient = x @ y - self.cells(x, lower, upper).value.sum()
        both = ranged(lower, upper)
        low, high = lower[both], upper[both]
        least = self.cells(0.5 * (low + high), low, high).value.sum()
        return float(shrink * at_gradient - (1 - shrink) * least)

    def estimated(self, fit: Residuals, loss: float, penalty: float) -> tuple[Loss, float]:
        """Return a better scale and the loss of all cells at it, by a few EM steps.

        They lower (loss + penalty) / scale^2 + n_exact log(scale): scale^2 is the mean of the
        squared residuals of exact cells and the expected ones of censored cells, with twice the
        penalty added to the sum, which for a linear model is the maximum of the marginal
        likelihood. It never grows past the largest value or limit: where nearly all is
        censored, the matrix and the scale would drive each other up.
        """
        if self.known:
            return self, loss
        best, now = self, fit.censored(self)
        exact = max(loss - now.loss, 0.0)
        least = 1e-6 * fit.largest or np.finfo(np.float64).tiny
        most = max(fit.largest, self.scale) if fit.largest else np.inf  # not against its descent
        for _ in range(_EM_STEPS):
            last, squares = best, 2 * (exact + penalty) + now.squares
            best = Tobit(float(np.clip(np.sqrt(squares / fit.n_cells), least, most)))
            now = fit.censored(best)
            if abs(best.scale - last.scale) <= 1e-3 * last.scale:
                break
        return best, exact + now.loss


class _Mode(NamedTuple):
    """What a word of ``clipped=`` means.

    Attributes
    ----------
    cells : {"kept", "face value", "left out"}
        What becomes of censored cells.
    loss : callable
        Gives their loss from what gives a guess at the noise scale.
    """

    cells: str
    loss: Callable[[Callable[[], float]], Loss] = lambda _: Hinge()


CLIPPED_MODES = {
    "hinge": _Mode("kept"),
    "tobit": _Mode("kept", lambda scale: Tobit.at(scale())),
    "value": _Mode("face value"),
    "missing": _Mode("left out"),
}
