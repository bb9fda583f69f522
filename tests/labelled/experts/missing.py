"""Recordings with holes: what could not be judged is said, and nothing is invented."""

from tests.labelled.expert import NEURON, expert, job
from tests.labelled.machine import Series, Shown

MEASURED = (
    *("gpu-idle", "gpu-underused", "some-gpus-unused", "gpu-starved", "gpu-too-big"),
    *("cpu-bottleneck", "cpu-underused", "serial-code", "idle-start", "idle-tail", "uneven-hosts"),
    *("poor-scaling", "memory-oversized", "failed-spend"),
)


def none_at_all(series: Series) -> Series:
    """No series."""
    return []


def lacks_host_six(series: Series) -> Series:
    """All but one host of eight."""
    return [entry for entry in series if not entry["host"].endswith("/algo-6")]


def ends_after_three_hours(series: Series) -> Series:
    """What was recorded in the first three hours."""
    return [{**entry, "values": entry["values"][:180]} for entry in series]


def nulls_in_the_middle(series: Series) -> Series:
    """Points lost in the middle of the run."""
    out: Series = []
    for entry in series:
        values = list(entry["values"])
        values[60:420] = [None] * 360
        out.append({**entry, "values": values})
    return out


def only_cpu(series: Series) -> Series:
    """The CPU series alone."""
    return [entry for entry in series if entry["metric"] == "CPUUtilization"]


def other_hosts(series: Series) -> Series:
    """The hosts of a job whose name begins like ours; its GPUs happened to stand still."""
    out: Series = []
    for entry in series:
        name, host = entry["host"].split("/")
        still = [0.0] * len(entry["values"]) if "GPU" in entry["metric"] else entry["values"]
        out.append({**entry, "host": f"{name}-retry/{host}", "values": still})
    return out


_SMALL = 0.03
"""The healthy truth behind every hole: download, warm-up, upload."""

_LACKS = job(
    "eight-hosts-2026-05-09-12-00-48-199",
    "ml.p4d.24xlarge",
    Shown(4, 0, 260, 6, 8),
    Shown(446, 760, 1900, 30, 696),
    hosts=8,
    edit=lacks_host_six,
)
SCENARIOS = (
    expert(
        "no-metrics-at-all-p3dn",
        "Two busy p3dn whose metrics were never collected; the type has no packaged rate either.",
        job("legacy-bert-2026-05-06-11-00-25-458", "ml.p3dn.24xlarge",
            Shown(500, 752, 1800, 20, 690), hosts=2, edit=none_at_all),
        lost=None, judged="no", idle=None, must_not=MEASURED,
        says="Neither use nor price is known: say so and claim nothing.",
    ),
    expert(
        "one-host-of-eight-lacks-series", "Eight busy p4d; GetMetricData gave nothing for algo-6.",
        _LACKS, share=(0, _SMALL), judged="partly",
        # host 6 may be left out of it, or wrongly be taken as idle: not beyond its 8 GPUs
        idle=_LACKS.idle(low_less=4, high_more=4), must_not=MEASURED,
        says="Seven hosts are well used; of algo-6 nothing is known, least of all that it idled.",
    ),
    expert(
        "series-end-early-g5",
        "A busy eight-hour run whose metrics stop after three hours.",
        job("series-end-early-2026-05-11-15-00-03-677", "ml.g5.48xlarge", Shown(4, 0, 700, 8, 8),
            Shown(476, 752, 11500, 35, 696), edit=ends_after_three_hours),
        share=(0, 0.05), judged="partly", idle=None, must_not=MEASURED,
        says="Three hours are well used; missing points are not an idle tail.",
    ),
    expert(
        "null-points-p4de", "A busy run with six hours of null points in the middle.",
        job("null-points-2026-05-13-16-00-57-014", "ml.p4de.24xlarge", Shown(4, 0, 260, 6, 8),
            Shown(496, 760, 1900, 30, 690), edit=nulls_in_the_middle),
        share=(0, _SMALL), judged="partly", idle=None, must_not=MEASURED,
        says="What was recorded is busy; nulls are unknown, not zero.",
    ),
    expert(
        "only-cpu-series-for-a-gpu-job",
        "Two g5.12xlarge trained at 93 % GPU, but only CPUUtilization was collected.",
        job("no-gpu-series-2026-05-15-17-00-34-826", "ml.g5.12xlarge",
            Shown(420, 372, 236, 30, 352), hosts=2, edit=only_cpu),
        share=(0, _SMALL), judged="partly", idle=None, must_not=MEASURED,
        says="Low CPU on a GPU host says nothing: the GPUs are what is paid for and not seen.",
    ),
    expert(
        "metrics-of-another-jobs-hosts",
        "A busy p5 run; the series belong to a job with a longer name whose GPUs stood still.",
        job("ppo-walker-2026-05-17-18-00-19-391", "ml.p5.48xlarge", Shown(300, 748, 3000, 24, 690),
            edit=other_hosts),
        share=(0, 0.03), judged="no", idle=None, must_not=MEASURED,
        says="Those hosts are not this job's: no metrics, no verdict.",
    ),
    expert(
        "trainium-has-no-accelerator-metric",
        "Four trn1 trained for ten hours; CloudWatch has no Neuron metric.",
        job("gpt-neox-trn-2026-05-19-19-00-42-765", "ml.trn1.32xlarge", Shown(600, 0, 1700, 24, 0),
            hosts=4, image=NEURON),
        share=(0, 0.03), judged="partly", idle=None, must_not=MEASURED,
        says="The accelerators cannot be seen; low CPU or memory there is no waste.",
    ),
)  # fmt: skip
