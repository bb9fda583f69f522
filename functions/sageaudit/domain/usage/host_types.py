"""Which host of a heterogeneous cluster is of which type, as far as its series prove it.

CloudWatch and SageMaker's log streams name hosts and no groups. But only a host with GPUs has
points of GPUUtilization: where all groups with GPUs are of one type, and all others of one type,
every host's type is known. A missing host or a missing series could be of either type, so that the
hosts of both kinds must be as many as the job asked for.

Source: SageMaker guide, heterogeneous clusters: "log streams … are not grouped by instance groups".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import HOSTS_UNMAPPED, Metric, Missing, RawSeries

_OF_GPUS = frozenset({Metric.GPU.value, Metric.GPU_MEMORY.value})


def hosts_by_type(
    job: Job, series: Iterable[RawSeries], types: Mapping[str, InstanceType], absent: Missing
) -> Mapping[str, frozenset[str]] | Missing:
    """The hosts of each type of a job on several known types, or why they are not known.

    `absent`: why there is no series at all, if there is none.
    """
    known = [item for item in series if any(value is not None for value in item.values)]
    hosts = frozenset(item.host for item in known)
    on_gpus = frozenset(item.host for item in known if item.metric in _OF_GPUS)
    if not hosts:
        return absent
    names = dict.fromkeys(group.instance_type for group in job.groups)
    with_gpus = [name for name in names if types[name].gpus]
    others = [name for name in names if not types[name].gpus]
    alike = _ambiguous(with_gpus, "all with GPUs") or _ambiguous(others, "all without GPUs")
    if alike is not None:
        return alike
    found = {with_gpus[0]: on_gpus, others[0]: hosts - on_gpus}
    for name, of_type in found.items():
        count = sum(group.count for group in job.groups if group.instance_type == name)
        if len(of_type) != count:
            points = "points" if name in with_gpus else "other points and none"
            why = f"{len(of_type)} hosts have {points} of GPUUtilization, and {count} are {name}"
            return Missing(HOSTS_UNMAPPED.code, f"{HOSTS_UNMAPPED.reason}: {why}")
    return found


def _ambiguous(names: Collection[str], kind: str) -> Missing | None:
    """Why hosts of these types, which have the same metrics, cannot be told apart, or None."""
    if len(names) <= 1:
        return None
    why = f"{' and '.join(names)} are {kind}"
    return Missing(HOSTS_UNMAPPED.code, f"{HOSTS_UNMAPPED.reason}: {why}")
