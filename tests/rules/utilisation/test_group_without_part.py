from typing import Any

from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import Points, phases, ran, series
from tests.fakes.rule_cases import CLEAR, cases, finds, lines, row

RULE = "group-without-part"
GPUS, CPUS = "ml.g4dn.2xlarge", "ml.m5.xlarge"
MIXED = (InstanceGroup(GPUS, 1, "train"), InstanceGroup(CPUS, 2, "feed"))
RUN = ran(3600, groups=MIXED)
BUSY, ASLEEP = 2.0, 0.1


def hosts(*of: tuple[float | None, float], minutes: int = 60, period_s: int = 60) -> Any:
    """GPU in percent (None: the host has no GPU) and busy cores of each host, all the time."""
    raw = []
    for number, (gpu, cores) in enumerate(of, start=1):
        host, points = f"train/algo-{number}", minutes * 60 // period_s
        raw.append(series(Metric.CPU, [100 * cores] * points, host=host, period_s=period_s))
        if gpu is not None:
            raw.append(series(Metric.GPU, [gpu] * points, host=host, period_s=period_s))
    return lines(*raw)


def started(cores: Points) -> Any:
    """One host trains; two others use so many cores, minute by minute."""
    percent = [None if value is None else 100 * value for value in cores]
    return lines(
        series(Metric.CPU, [300.0] * 60),
        series(Metric.GPU, [90.0] * 60),
        series(Metric.CPU, percent, host="train/algo-2"),
        series(Metric.CPU, percent, host="train/algo-3"),
    )


test_cases = cases(
    RULE,
    "Idle CPU hosts beside a busy GPU are left out. 2 x ($0.23 and a volume) for an hour.",
    row(finds("2 x ml.m5.xlarge did no work in 1 h, while the GPU of the ml.g4dn.2xlarge averaged "
        "90%.", builder="derived", usd="0.471290", fix=[], first_step="Leave the group feed out "
        "of ResourceConfig.InstanceGroups…", caution="Assumes that the other hosts need nothing…"),
        RUN, hosts((90, 3), (None, ASLEEP), (None, ASLEEP))),
    "Idle GPUs beside busy CPU hosts are left out. $0.94 for an hour, asleep or with one core.",
    row(finds("1 x ml.g4dn.2xlarge did no work in 1 h, while the CPU of the ml.m5.xlarge averaged "
        "50%.", usd="0.940000", first_step="Leave the group train out…"), RUN,
        hosts((0, ASLEEP), (None, BUSY), (None, BUSY))),
    row(finds(usd="0.940000"), RUN, hosts((1, 1.2), (None, BUSY), (None, BUSY))),
    row(CLEAR, RUN, hosts((1, 1.3), (None, BUSY), (None, BUSY))),
    row(CLEAR, RUN, hosts((1.1, 0.1), (None, BUSY), (None, BUSY))),
    "Some idle hosts of a group are fewer instances.",
    row(finds("1 x ml.m5.xlarge did no work…", usd="0.235645",
        fix=[("ResourceConfig.InstanceGroups[feed].InstanceCount", 2, 1)], first_step=""), RUN,
        hosts((90, 3), (None, BUSY), (None, ASLEEP))),
    "A host under 0.2 cores is idle; at 0.2 it works. All hosts use the CPU in the first minutes.",
    row(finds(usd="0.471290"), RUN, started([4.0] * 6 + [0.19] * 54)),
    row(CLEAR, RUN, started([4.0] * 6 + [0.2] * 54)),
    row(CLEAR, RUN, started([4.0] * 7 + [0.19] * 53)),
    row(CLEAR, RUN, started([0.19] * 59 + [4.0])),
    "Where nothing works it says nothing. 5% of a GPU is work, 4.9% is not; one core, not less.",
    row(finds(), RUN, hosts((5, ASLEEP), (None, ASLEEP), (None, ASLEEP))),
    row(CLEAR, RUN, hosts((4.9, ASLEEP), (None, ASLEEP), (None, ASLEEP))),
    row(finds(), RUN, hosts((0, ASLEEP), (None, 1), (None, BUSY / 4))),
    row(CLEAR, RUN, hosts((0, ASLEEP), (None, 0.99), (None, BUSY / 4))),
    "Two groups of one type are left out together, and none of them in part.",
    row(finds(usd="0.471290", first_step="Leave the group feed, read out of…"), ran(3600,
        groups=(MIXED[0], InstanceGroup(CPUS, 1, "feed"), InstanceGroup(CPUS, 1, "read"))),
        hosts((90, 3), (None, ASLEEP), (None, ASLEEP))),
    row("unknown: hosts_unmapped: 1 hosts of ml.m5.xlarge…unknown one of its groups", ran(3600,
        groups=(MIXED[0], InstanceGroup(CPUS, 1, "feed"), InstanceGroup(CPUS, 1, "read"))),
        hosts((90, 3), (None, BUSY), (None, ASLEEP))),
    "Hosts with the same metrics are not told apart. Two GPU types, or two CPU types.",
    row("unknown: hosts_unmapped: …ml.g4dn.2xlarge and ml.g4dn.12xlarge are all with GPUs",
        ran(3600, groups=(MIXED[0], InstanceGroup("ml.g4dn.12xlarge", 1))),
        hosts((90, 3), (0, 0))),
    row("unknown: hosts_unmapped", ran(3600, groups=(MIXED[0], InstanceGroup("ml.g5.2xlarge", 1))),
        hosts((90, 3), (0, 0))),
    row("unknown: hosts_unmapped: …ml.m5.xlarge and ml.m5.2xlarge are all without GPUs", ran(3600,
        groups=(MIXED[0], InstanceGroup(CPUS, 1), InstanceGroup("ml.m5.2xlarge", 1))),
        hosts((90, 3), (None, ASLEEP), (None, ASLEEP))),
    "A host or a series that is missing could be of either type.",
    row("unknown: hosts_unmapped: …1 hosts have other points and none of GPUUtilization, and 2…",
        RUN, hosts((90, 3), (None, ASLEEP))),
    row("unknown: hosts_unmapped: …0 hosts have points of GPUUtilization, and 1 are…", RUN,
        hosts((None, 3), (None, ASLEEP), (None, ASLEEP))),
    row("unknown: metric_missing: no points", RUN, lines()),
    "Points that are too few or too coarse say nothing.",
    row("unknown: too_short", ran(840, groups=MIXED), hosts((90, 3), (None, ASLEEP),
        (None, ASLEEP), minutes=14)),
    row("unknown: period_too_coarse", ran(7200, groups=MIXED), hosts((90, 3), (None, ASLEEP),
        (None, ASLEEP), minutes=120, period_s=600)),
    row("unknown: coverage_low", RUN, hosts((90, 3), (None, ASLEEP), (None, ASLEEP), minutes=40)),
    "Jobs of one type, and those without a bill, are not its concern.",
    row("not applicable: …one type…", ran(3600, instances=3), hosts((None, 3), (None, ASLEEP))),
    row("not applicable: …one type…", ran(3600, groups=(InstanceGroup(CPUS, 1, "a"),
        InstanceGroup(CPUS, 1, "b"))), hosts((None, 3), (None, ASLEEP))),
    row("not applicable: not for processing jobs", ran(3600, groups=MIXED,
        kind=JobKind.PROCESSING, phases=phases(("Processing", 3600))), hosts()),
    "A prepaid run has no dollars to save.",
    row(finds(usd="0.000000"), ran(3600, groups=MIXED, purchase=Purchase.TRAINING_PLAN),
        hosts((90, 3), (None, ASLEEP), (None, ASLEEP))),
)  # fmt: skip
