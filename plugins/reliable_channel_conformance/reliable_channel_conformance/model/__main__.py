"""`python -m reliable_channel_conformance.model`: check all groups, and find all defects."""

import sys

from .catalogue import DEFECTS, SOUND
from .checker import check


def main() -> int:
    """Print a line for each group and each defect, and return the exit status."""
    failed = 0
    for name, group in SOUND.items():
        report = check(group)
        failed += not report.complete or report.broken is not None
        result = report.broken or "every promise holds"
        sys.stdout.write(f"{name}: {report.states} states, {result}\n")
    for number, defect in DEFECTS.items():
        report = check(defect.group)
        found = report.broken is not None and report.broken.promise == defect.promise
        failed += not found
        sys.stdout.write(f"{number}: {defect.title}\n")
        if report.broken is not None:
            trace = ", ".join(" ".join(action) for action in report.broken.trace)
            sys.stdout.write(f"    {report.broken.promise}: {report.broken.detail}\n    {trace}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
