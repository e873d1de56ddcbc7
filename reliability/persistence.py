"""Measure what is promised of files, long fits and determinism.

`python -m reliability.persistence` writes the figures to ``reliability/results/persistence.json``
and into the page ``docs/evidence/reliability/persistence.md``.
"""

from reliability import damage, determinism, interrupts, kills, load
from reliability.figures import Page, part


def studies(share=1.0, resume=False):
    """Return the studies by name."""
    return {
        "damaged files": lambda: damage.damaged_files(part(10_000, share)),
        "saves killed": lambda: kills.saves_killed(part(50, share)),
        "fits killed": lambda: kills.fits_killed(part(3, share)),
        "Ctrl-C": lambda: interrupts.ctrl_c(part(5, share)),
        "repeats": lambda: determinism.repeats(part(20, share)),
        "processes and threads": determinism.processes_and_threads,
        "restored under load": lambda: load.restored(part(10, share)),
        "shared by 8 threads": lambda: determinism.shared(part(10_000, share)),
    }


if __name__ == "__main__":
    Page("persistence", studies).run()
