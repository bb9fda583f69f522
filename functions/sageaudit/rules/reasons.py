"""Named reasons why a rule does not apply to a job, and what is often unknown.

A rule lists its reasons on its card, the most informative first: the first one that returns a
sentence is the answer, and the rule is not called. Each takes a case and returns a sentence, or
None.
"""

from __future__ import annotations

from sageaudit.domain.bill.finding import Unknown
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.usage import measurements
from sageaudit.domain.usage.measurements import Missing
from sageaudit.rules.card import JobCase, RequestCase

TIMES_MISSING = Unknown("times_missing", "how long the run took is not known")
HISTORY_UNREAD = Unknown("history_unread", "the earlier runs of its family were not read")
PHASES_MISSING = Unknown("phases_missing", "the answer does not split the run into phases")
BILL_UNKNOWN = Unknown("bill_unknown", "the cost of this run is not known")
HOSTS_UNMAPPED = Unknown(measurements.HOSTS_UNMAPPED.code, measurements.HOSTS_UNMAPPED.reason)


def unknown(missing: Missing) -> Unknown:
    """A rule's answer where a measurement that it needs is missing."""
    return Unknown(missing.code, missing.reason)


def serverless(case: JobCase | RequestCase) -> str | None:
    """Serverless training has no instance to choose, to fill or to leave idle."""
    return "it is serverless" if case.job.purchase is Purchase.SERVERLESS else None


def prepaid(case: JobCase) -> str | None:
    """Capacity of a training plan is paid in advance."""
    prepaid = case.job.purchase is Purchase.TRAINING_PLAN
    return "its training plan is prepaid" if prepaid else None


def on_demand(case: JobCase) -> str | None:
    """For rules about managed spot: the job did not use it."""
    spot = case.job.purchase is Purchase.SPOT
    return None if spot else "it did not run on managed spot"


def accelerated(case: JobCase) -> str | None:
    """For rules on CPU types: the CPUs of other types have another purpose."""
    if any(found is not None and found.accelerator for found in case.types):
        return "it runs on GPUs or Trainium, and its CPUs are there to feed them"
    return None


def free(case: JobCase) -> str | None:
    """AWS does not bill it: the sentence says why."""
    return case.job.free


def never_started(case: JobCase) -> str | None:
    """Nothing was billed."""
    return "it never started" if case.job.never_started else None


def not_completed(case: JobCase) -> str | None:
    """A run that failed or was stopped says nothing of one that completes."""
    return None if case.job.status == "Completed" else "the run did not complete"


def search_trial(case: JobCase) -> str | None:
    """For rules that compare the runs of a family."""
    parent = case.job.parent
    trial = parent is not None and parent.rollup is not None
    return "the trials of one search are meant to differ" if trial else None


def one_instance(case: JobCase) -> str | None:
    """For rules that compare hosts or advise on their number."""
    return "it ran on one instance" if case.job.instance_count == 1 else None


def mixed_types(case: JobCase) -> str | None:
    """For rules that need one type: instance groups mostly have several."""
    return "its instances are in several groups" if len(case.job.groups) > 1 else None


def one_type(case: JobCase) -> str | None:
    """For rules on clusters of several types."""
    names = {group.instance_type for group in case.job.groups}
    return None if len(names) > 1 else "its instances are of one type"


def on_ebs(case: JobCase) -> bool | None:
    """Do all instances get an EBS volume (True), or none of them? None: unknown, or some do."""
    if case.job.groups_unknown:
        return None
    answers = {None if found is None else found.ebs_billed for found in case.types}
    return answers.pop() if len(answers) == 1 else None


def has_local_storage(case: JobCase) -> str | None:
    """For rules about volumes."""
    local = on_ebs(case) is False
    return "its instances have local NVMe storage: no volume is provisioned" if local else None
