from __future__ import annotations

from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import job
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "volume-ignored"
NVME, EBS = InstanceGroup("ml.g5.2xlarge", 2), InstanceGroup("ml.m5.xlarge", 1)


test_cases = cases(
    RULE,
    "A size that does nothing is found. The parameter goes, and no dollars with it.",
    row(finds("VolumeSizeInGB is 500 and has no effect on 2 x ml.g5.2xlarge: the storage is "
        "local NVMe.", bucket="none", caution="No volume is provisioned…",
        fix=[("ResourceConfig.VolumeSizeInGB", 500, None)]), job(groups=(NVME,), volume_gb=500)),
    "It saves nothing. No volume is billed there.",
    row(finds(usd=None, alone=None, severity="info"), job(groups=(NVME,), volume_gb=500)),
    "Exactly the default is nobody's choice. 30 GB; one more or less was set by somebody.",
    row(CLEAR, job(groups=(NVME,), volume_gb=30)),
    row(FOUND, job(groups=(NVME,), volume_gb=29)),
    row(FOUND, job(groups=(NVME,), volume_gb=31)),
    "Other jobs are not its concern.",
    # The advised job among them; processing jobs must give a size.
    row("not applicable: …get a volume…", job(groups=(EBS,), volume_gb=500)),
    row("not applicable: …no VolumeSizeInGB…", job(groups=(NVME,), volume_gb=None)),
    row("not applicable: …no VolumeSizeInGB…", job(groups=(NVME,), volume_gb=0)),
    row("not applicable: …serverless…", job(groups=(NVME,), volume_gb=500,
        purchase=Purchase.SERVERLESS)),
    row("not applicable: …processing…", job(groups=(NVME,), volume_gb=500,
        kind=JobKind.PROCESSING)),
    "Instances of unknown or both kinds are unknown. Some of them may use the size.",
    row("unknown: storage_unknown", job(groups=(), volume_gb=500)),
    row("unknown: storage_unknown", job(groups=(NVME, EBS), volume_gb=500)),
    row("unknown: storage_unknown", job(groups=(InstanceGroup("ml.odd.xlarge", 1),),
        volume_gb=500)),
    row("unknown: storage_unknown", job(groups=(InstanceGroup("ml.new.xlarge", 1),),
        volume_gb=500)),
    "A part of the cluster that is not known may have a volume.",
    row("unknown: storage_unknown", job(groups=(NVME,),
        groups_unknown=("instance group b: its type is not known",))),
)  # fmt: skip
