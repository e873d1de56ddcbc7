"""Run the experiments of the paper and write their page: `python -m experiments.paper`.

What has been run is not run again; an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

from experiments.paper import page, whole
from experiments.paper.page import STUDIES
from experiments.paper.runner import FULL, QUICK, Job, is_new, run_again, run_all, to_do


def all_jobs(studies: list[str] | tuple[str, ...], quick: bool) -> list[Job]:
    modules = (importlib.import_module(f"experiments.paper.{study}") for study in studies)
    return [job for module in modules for job in module.jobs(quick)]


def again(jobs: list[Job], folder: Path, n: int, workers: int) -> bool:
    """Run some jobs again and print what is other than before; return whether anything is."""
    changed = [tell(*found) for found in run_again(jobs, folder, n, workers)]
    return any(changed)


def tell(job: Job, changed: dict[str, tuple[Any, Any]]) -> bool:
    figures = "".join(f"\n    {name}: {a} before, {b} now" for name, (a, b) in changed.items())
    print(
        f"{job.study} {job.name}: {'OTHER' if changed else 'the same'} numbers{figures}", flush=True
    )
    return bool(changed)


def made(jobs: list[Job], folder: Path, args: argparse.Namespace) -> list[tuple[Job, str]]:
    """Run what has no result, or everything; return what failed."""
    if args.fresh:
        for study in args.study or STUDIES:
            (folder / f"{study}.jsonl").unlink(missing_ok=True)
    left = to_do(jobs, folder)
    if not left:
        return []
    fresh = len(left) == len(jobs) and not args.study
    adds = not args.fresh and all(is_new(job, folder) for job in left)
    work = partial(run_all, jobs, folder, args.workers)
    return whole.recorded(work, folder, len(jobs), args.workers, fresh=fresh, adds=adds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small and few; under ten minutes")
    parser.add_argument("--page", action="store_true", help="only write the page, of what is there")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results first")
    parser.add_argument("--again", type=int, metavar="N", help="run N runs again, and compare")
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("study", nargs="*", help=f"some of {', '.join(STUDIES)} (all by default)")
    args = parser.parse_args()
    if unknown := set(args.study) - set(STUDIES):
        parser.error(f"no such study: {', '.join(sorted(unknown))}")
    folder = QUICK if args.quick else FULL
    studies = args.study or STUDIES
    if args.again:
        sys.exit(again(all_jobs(studies, args.quick), folder, args.again, args.workers))
    failed = [] if args.page else made(all_jobs(studies, args.quick), folder, args)
    print(page.write(folder, args.quick))
    for job, error in failed:
        print(f"{job.study} {job.name}\n{error}", file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
