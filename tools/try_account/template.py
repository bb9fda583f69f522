"""Prints the template of a try: `python -m tools.try_account.template`."""

from __future__ import annotations

import sys

from infra.release_template import released_template, to_text
from sageaudit import __version__
from tools.try_account.policy import POLICY


def make_template() -> str:
    """Returns the released template without schedules.

    The sweep would audit all jobs of the account's last day.
    """
    template = released_template(POLICY.channels, __version__)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Scheduler::Schedule":
            resource["Properties"]["State"] = "DISABLED"
    return to_text(template)


if __name__ == "__main__":
    sys.stdout.write(make_template())
