"""Columns of a file that are known but not restored: covariates and groups of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from declip.options import Reading, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from declip.io import TableFile

__all__ = ["Knowing"]

_PANEL = "What else is known of a row"


@dataclass(frozen=True, kw_only=True)
class Knowing:
    """What is known besides the table."""

    covariates: list[str] | None = option(
        "Columns that are known and not restored, numbers or categories: age,sex,site.",
        panel=_PANEL,
        shown="NAME[,NAME]",
    )
    groups: str | None = option(
        "Column that names plates, batches or conditions, each with offsets of its own.",
        panel=_PANEL,
        shown="NAME",
    )

    @property
    def features(self) -> list[str]:
        """The names of the covariates."""
        return [name.strip() for text in self.covariates or [] for name in text.split(",")]

    def besides(self, reading: Reading) -> Reading:
        """Return how the file is read, with these columns left out of the table."""
        names = [*self.features, *([self.groups] if self.groups else [])]
        return replace(reading, ignore=[*(reading.ignore or []), *names]) if names else reading

    def read(self, table: TableFile) -> dict[str, Any]:
        """Return them as arguments of `declip.restore`."""
        import numpy as np

        from declip.io.listing import groups_of_rows

        known: dict[str, Any] = {}
        if self.features:
            columns = {name: groups_of_rows(table, name) for name in self.features}
            known["row_features"] = {name: _numbers(texts) for name, texts in columns.items()}
        if self.groups:
            known["groups"] = np.array(groups_of_rows(table, self.groups), object)
        return known


def _numbers(texts: list[str]) -> NDArray[Any]:
    """Return numbers if all that is there are some, else the texts."""
    import numpy as np

    try:
        return np.array([float(text) if text.strip() else np.nan for text in texts])
    except ValueError:
        return np.array(texts, object)
