from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, Points, market, phases, ran, series, usage
from tests.fakes.judging import together, usd
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, later, row

RULE = "serial-code"
RUN = ran(3600, "ml.m5.4xlarge")


@later
def cores(run: Job, *hosts: Points, memory: float | None = 5) -> Measurements:
    """Busy cores of each host, minute by minute."""
    raw = []
    for n, of in enumerate(hosts, start=1):
        host = f"train/algo-{n}"
        raw.append(series(Metric.CPU, [100 * (c or 0) for c in of], host=host))
        if memory is not None:
            raw.append(series(Metric.MEMORY, [memory] * len(of), host=host))
    return usage(run, *raw)


test_cases = cases(
    RULE,
    "One core of sixteen is found.",
    # 1.2 vCPU and 3.8 GiB with headroom: ml.m5.large, $0.92 - $0.115.
    row(finds("The code used 1.0 of 16 vCPUs over 1 h on 1 x ml.m5.4xlarge.", builder="derived",
        fix=[("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.m5.large")], usd="0.805000",
        evidence={"cpu_mean_cores": 1.0}), RUN, cores([1.0] * 60)),
    "A long step on one core is a range: a smaller type, or the step apart.",
    # 40 of 60 minutes; ten cores with headroom on 8 vCPUs for the others: 1.17 times as long.
    row(finds("For 40 min of 1 h on 1 x ml.m5.4xlarge no host used more than 1.2 of 16 vCPUs.",
        fix=["ml.m5.2xlarge"], usd="0.382377", span=("0.382377", "0.539960")), RUN,
        cores([1.0] * 40 + [10.0] * 20)),
    "Without a smaller type nothing is counted of a long step.",
    row(finds(fix=[], usd="0.000000", caution="…a job of its own…"), RUN,
        cores([1.0] * 40 + [16.0] * 20)),
    "Half an hour and a fifth of the run are long.",
    row(CLEAR, RUN, cores([1.0] * 29 + [16.0] * 31)),
    row(FOUND, RUN, cores([1.0] * 30 + [16.0] * 30)),
    row(CLEAR, RUN, cores([16.0] * 20 + [0.1] * 20 + [16.0] * 20)),
    "One core is 085 to 12.",
    # Jobstats' 0.85 to 1.01 of the job, and up to 0.19 of the host's system.
    row(FOUND, RUN, cores([0.85] * 60)),
    row(CLEAR, RUN, cores([0.84] * 60)),
    row(FOUND, RUN, cores([1.2] * 60)),
    row(CLEAR, RUN, cores([1.21] * 60)),
    row(CLEAR, RUN, cores([2.0] * 60)),
    "Several cores by turns are not one.",
    # The mean is one core: eight for an eighth of the minutes.
    row(CLEAR, RUN, cores([8.0, 0.3, 0, 0, 0, 0, 0, 0.3] * 8)),
    "Exactly one and a half cores are not steadily one. At P95.",
    row(FOUND, RUN, cores([0.95] * 54 + [1.49] * 6)),
    row(CLEAR, RUN, cores([0.95] * 54 + [1.5] * 6)),
    "Idle head and tail are cut first. 20 busy minutes of 60 on one core.",
    row(finds(evidence={"active_minutes": 20}), RUN, cores([0] * 20 + [1.0] * 20 + [0] * 20)),
    "Two vCPUs are the smallest and four are many.",
    # One core of two is no waste that a type could save.
    row(CLEAR, ran(3600, "ml.m5.large"), cores([1.0] * 60)),
    row(FOUND, ran(3600, "ml.m5.xlarge"), cores([1.0] * 60)),
    "Every host must sit at one core. An idle one, or one with eight, is another story.",
    row(finds("…vCPUs on each host over…"), ran(3600, "ml.m5.4xlarge", 2), cores([1.0] * 60,
        [1.0] * 60)),
    row(CLEAR, ran(3600, "ml.m5.4xlarge", 2), cores([1.0] * 60, [0.1] * 60)),
    row(CLEAR, ran(3600, "ml.m5.4xlarge", 2), cores([1.0] * 60, [8.0] * 60)),
    "No older generation is advised to a current type.",
    # However cheap it is; a type that is old itself may move within its time.
    row(finds(fix=["ml.m5.xlarge"]), RUN, cores([1.0] * 60), on=replace(market(), types={**TYPES,
        "ml.m5.large": replace(TYPES["ml.m5.large"], legacy=True)})),
    row(finds(fix=["ml.m5.large"]), RUN, cores([1.0] * 60), on=replace(market(), types={**TYPES,
        "ml.m5.large": replace(TYPES["ml.m5.large"], legacy=True),
        "ml.m5.4xlarge": replace(TYPES["ml.m5.4xlarge"], legacy=True)})),
    "The advised type gets no advice back. One core of two, and 40% of 8 GiB.",
    row(CLEAR, ran(3600, "ml.m5.large"), cores([1.0] * 60, memory=40)),
    row(CLEAR, ran(3600, "ml.m5.large"), cores([1.0] * 60, memory=40), rule="cpu-underused"),
    "Each kind has its own parameter. The same rule for three kinds.",
    row(finds(paths=["ProcessingResources.ClusterConfig.InstanceType"]), ran(3600, "ml.m5.4xlarge",
        kind=JobKind.PROCESSING, phases=phases(("Processing", 3600))), cores([1.0] * 60)),
    row(finds(paths=["TransformResources.InstanceType"]), ran(3600, "ml.m5.4xlarge",
        kind=JobKind.TRANSFORM, phases=phases(("Transform", 3600))), cores([1.0] * 60)),
    "Other jobs are not its concern. On a GPU job one core feeds the GPU; a mix has no one type.",
    row("not applicable: …GPU…", ran(3600, "ml.g4dn.2xlarge"), even(60, cpu=12.5, memory=5,
        gpu=90)),
    row("not applicable: …several groups…", ran(3600, groups=(InstanceGroup("ml.m5.xlarge", 1),
        InstanceGroup("ml.m5.large", 1)))),
    "Without a smaller type that holds it there are no dollars: the cores can still be used.",
    row(finds(bucket="none", fix=[], usd=None,
        caution="Nothing is counted: …memory used is not known…threads and workers…"), RUN,
        cores([1.0] * 60, memory=None)),
    row(finds(bucket="none", fix=[], usd=None, caution="Nothing is counted: …threads and workers…",
        without="memory used is not known"), RUN, cores([1.0] * 60, memory=95)),
)  # fmt: skip


def test_it_tells_the_story_of_the_little_used_cpu() -> None:
    """Both advise ml.m5.large: one gets the dollars, the other says by whom it is told."""
    settled = together((RULE, "cpu-underused"), RUN, cores([1.0] * 60))
    told = {one.rule.name: one for one in settled.findings}
    assert told["cpu-underused"].subsumed_by == RULE
    assert usd(settled.avoidable_usd) == "0.805000"
