"""Runs the cells whose names contain a text, and prints how each ended and what is wrong.

For example: python -m tests.faults.cell "audit/sagemaker.ListTags#1/denied".
"""

import sys

import tests.conftest  # noqa: F401 - no test reaches AWS
from tests.faults.channels import channel_cells
from tests.faults.crashes import crash_cells
from tests.faults.matrix import cells
from tests.faults.poison import poisoned_cells
from tests.faults.verdict import judge


def main(part: str) -> int:
    """Returns exit code 1 if something is wrong."""
    failed = 0
    for cell in (*cells(), *channel_cells(), *crash_cells(), *poisoned_cells()):
        if part in cell.name:
            verdict = judge(cell)
            failed += bool(verdict.wrong)
            print(f"{cell.name}: {verdict.ended or 'the fault was not met'}")  # noqa: T201
            for wrong in verdict.wrong:
                print(f"  {wrong}")  # noqa: T201
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
