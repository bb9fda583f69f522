"""Downloads, image pulls and uploads around the work."""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, identical_hosts, one_host
from tests.labelled.made_up_job import Plot, channel
from tests.labelled.story import BUSY_A10G, story

EIGHT_BUSY_A100 = Doing(minutes=420, cores=40, gpus=(0.94,) * 8, gib=400, gpu_gib=(34.0,) * 8)
STORIES = (
    story(
        "copies-an-hour-of-files-first",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
            downloading_s=3600,
            channels=(channel(mode="File"),),
        ),
        must_find=("download-dominates",),
    ),
    story(
        "four-hosts-copy-all-of-it",
        Plot(
            instance="ml.g5.xlarge",
            hosts=identical_hosts(4, BUSY_A10G),
            downloading_s=3600,
            channels=(channel(mode="File"),),
        ),
        must_find=("replicated-input",),
        may_find=("download-dominates",),
    ),
    story(
        "an-image-of-thirty-gigabytes",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(replace(BUSY_A10G, minutes=60)),
            downloading_s=1500,
        ),
        must_find=("image-pull-heavy",),
    ),
    story(
        "writes-every-checkpoint-into-the-model",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(replace(BUSY_A10G, minutes=60)),
            uploading_s=2700,
        ),
        must_find=("upload-dominates",),
    ),
    story(
        "twenty-five-minutes-of-copying-on-sixteen-a100",
        Plot(
            instance="ml.p4d.24xlarge",
            hosts=identical_hosts(2, EIGHT_BUSY_A100),
            downloading_s=1500,
            channels=(channel("data", mode="File"),),
        ),
        must_find=("download-dominates",),
    ),
    story(
        "one-core-packs-a-model-while-sixteen-a100-wait",
        Plot(
            instance="ml.p4d.24xlarge", hosts=identical_hosts(2, EIGHT_BUSY_A100), uploading_s=1500
        ),
        must_find=("upload-dominates",),
    ),
    story(
        "four-minutes-around-the-work-of-sixteen-a100",
        Plot(
            instance="ml.p4d.24xlarge",
            hosts=identical_hosts(2, EIGHT_BUSY_A100),
            downloading_s=240,
            uploading_s=100,
            channels=(channel(mode="File"),),
        ),
    ),
)
