"""Run the experiments of the paper and write their page: `python -m experiments.paper`.

What has been run is not run again; an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from experiments.paper import page
from experiments.paper.page import STUDIES
from experiments.paper.runner import FULL, QUICK, Job, run_again, run_all


def all_jobs(studies: list[str] | tuple[str, ...], quick: bool) -> list[Job]:
    modules = (importlib.import_module(f"experiments.paper.{study}") for study in studies)
    return [job for module in modules for job in module.jobs(quick)]


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
        jobs, same = all_jobs(studies, args.quick), []
        for job, is_same in run_again(jobs, folder, args.again, args.workers):
            print(
                f"{job.study} {job.name}: {'the same' if is_same else 'OTHER'} numbers", flush=True
            )
            same.append(is_same)
        sys.exit(not all(same))
    if args.fresh:
        for study in studies:
            (folder / f"{study}.jsonl").unlink(missing_ok=True)
    failed = [] if args.page else run_all(all_jobs(studies, args.quick), folder, args.workers)
    print(page.write(folder, args.quick))
    for job, error in failed:
        print(f"{job.study} {job.name}\n{error}", file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
