"""The published studies of choosing views and of ordering updates, on plain graphs: tables and plots.

    python bench/graphs [--out bench-results/graphs] [--instances 8] [--expand 50000] [--only choosing,hard,proved,walking,updating,speed]

No Spark. Counts and ratios are what to compare with the papers; seconds are of this machine. Each table says its protocol.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from choosing import choosing, hard_budgets
from proved import proved
from report import Report
from speed import speed
from updating import updating
from walking import walking


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench-results/graphs"))
    parser.add_argument("--instances", type=int, default=8, help="graphs per shape and size")
    parser.add_argument("--expand", type=int, default=50_000, help="nodes that A* may expand")
    parser.add_argument("--only", default="choosing,hard,proved,walking,updating,speed")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = Report(arguments.out)
    for part in arguments.only.split(","):
        match part:
            case "choosing":
                choosing(report, arguments.instances, arguments.expand)
            case "hard":
                hard_budgets(report, arguments.instances)
            case "proved":
                proved(report, arguments.instances)
            case "walking":
                walking(report)
            case "updating":
                updating(report)
            case "speed":
                speed(report)
            case _:
                parser.error(f"there is no part {part}")
        report.write()
    print(f"written: {arguments.out / 'results.md'}")


if __name__ == "__main__":
    main()
