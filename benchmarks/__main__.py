"""Run the benchmarks: `python -m benchmarks [--quick] [study ...]`, then write RESULTS.md."""

from __future__ import annotations

import argparse

from threadpoolctl import threadpool_limits

from benchmarks.report import write_report
from benchmarks.runner import keep
from benchmarks.studies import STUDIES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small shapes; under three minutes")
    parser.add_argument("--report", action="store_true", help="only write RESULTS.md anew")
    parser.add_argument("study", nargs="*", help=f"some of {', '.join(STUDIES)} (all by default)")
    args = parser.parse_args()
    if unknown := set(args.study) - set(STUDIES):
        parser.error(f"no such study: {', '.join(sorted(unknown))}")
    for name in [] if args.report else args.study or STUDIES:
        print(f"-- {name}", flush=True)
        with threadpool_limits(1):
            found = STUDIES[name](args.quick)
        keep(f"quick-{name}" if args.quick else name, found)
        print(found, flush=True)
    if not args.quick:
        write_report()


if __name__ == "__main__":
    main()
