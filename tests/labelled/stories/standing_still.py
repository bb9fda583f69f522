"""GPUs that were idle at the end or in the middle, or seemed so.

Harmless causes are checkpoints, evaluation, or another host at work.
"""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, identical_hosts, idle, one_host
from tests.labelled.made_up_job import Batchwork, Plot
from tests.labelled.story import BUSY_A10G, repeated, story

BUSY = replace(BUSY_A10G, gib=24)
"""On ml.g5.2xlarge its host memory is in use, so that no smaller type fits."""
SHORT = replace(BUSY, minutes=60)


def spin(minutes: int) -> Doing:
    """Returns one thread that polls a peer, a file system or a worker in a loop."""
    return Doing(minutes=minutes, cores=1.01, gpus=(0.0,), gib=24, gpu_gib=(20.0,), jitter=0.003)


def on_cpu(minutes: int, cores: float) -> Doing:
    """Returns work without the GPU."""
    return Doing(minutes=minutes, cores=cores, gpus=(0.0,), gib=24, gpu_gib=(20.0,))


STORIES = (
    story(
        "a-loader-worker-that-is-never-joined",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(BUSY, spin(minutes=95))),
        must_find=("idle-tail",),
    ),
    story(
        "an-evaluation-on-all-cores-after-the-training",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(BUSY, on_cpu(minutes=60, cores=7.2))),
        must_find=("idle-tail",),
    ),
    story(
        "a-short-evaluation-on-the-cpu",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(BUSY, on_cpu(minutes=12, cores=7.2))),
    ),
    story(
        "a-mount-that-was-dead-for-an-hour",
        Plot(instance="ml.g5.2xlarge", hosts=identical_hosts(2, SHORT, spin(minutes=70), SHORT)),
        must_find=("idle-middle",),
    ),
    story(
        "asleep-until-a-lock-was-freed",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(SHORT, idle(minutes=55), SHORT)),
        must_find=("idle-middle",),
    ),
    story(
        "the-next-data-set-is-copied-by-hand",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(SHORT, replace(on_cpu(minutes=50, cores=0.7), jitter=0.1), SHORT),
        ),
        must_find=("idle-middle",),
    ),
    story(
        "two-waits-in-one-run",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(SHORT, spin(minutes=45), SHORT, spin(minutes=45), SHORT),
        ),
        must_find=("idle-middle",),
    ),
    story(
        "an-evaluation-on-one-core-after-each-epoch",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(*repeated(3, SHORT, on_cpu(minutes=45, cores=0.97)), SHORT),
        ),
        must_find=("idle-middle",),
    ),
    story(
        "an-evaluation-on-one-core-that-also-ends-the-run",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(*repeated(4, SHORT, on_cpu(minutes=45, cores=0.97))),
        ),
        must_find=("idle-middle",),
        may_find=("idle-tail",),
    ),
    story(
        "three-waits-that-come-when-they-like",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(
                SHORT,
                spin(minutes=45),
                replace(SHORT, minutes=140),
                spin(minutes=70),
                replace(SHORT, minutes=35),
                spin(minutes=50),
                SHORT,
            ),
        ),
        must_find=("idle-middle",),
    ),
    story(
        "asleep-for-as-long-after-each-epoch",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(*repeated(3, SHORT, idle(minutes=45)), SHORT),
        ),
        must_find=("idle-middle",),
    ),
    story(
        "new-training-data-is-simulated-on-all-cores",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(SHORT, on_cpu(minutes=60, cores=7.6), SHORT),
        ),
        must_find=("idle-middle",),
    ),
    story(
        "one-of-four-evaluates-and-the-others-wait",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=(
                (replace(BUSY, minutes=190),),
                *identical_hosts(3, SHORT, spin(minutes=60), replace(SHORT, minutes=70)),
            ),
        ),
        must_find=("idle-middle",),
        may_find=("uneven-hosts",),
    ),
    story(
        "a-wait-of-twenty-minutes",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(SHORT, spin(minutes=20), SHORT)),
    ),
    story(
        "a-checkpoint-of-three-minutes-every-forty",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(
                *repeated(5, replace(BUSY, minutes=40), replace(spin(minutes=3), cores=0.9))
            ),
        ),
    ),
    story(
        "audio-resampled-on-all-cores-before-the-training",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(on_cpu(minutes=60, cores=7.6), BUSY)),
        must_find=("idle-start",),
    ),
    story(
        "both-hosts-tokenise-before-the-training",
        Plot(
            instance="ml.g5.2xlarge", hosts=identical_hosts(2, on_cpu(minutes=80, cores=6.5), BUSY)
        ),
        must_find=("idle-start",),
    ),
    story(
        "ten-minutes-of-tokenising-before-the-training",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(on_cpu(minutes=10, cores=7.6), BUSY)),
    ),
    story(
        "a-healthy-saw-tooth",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(
                *repeated(30, replace(BUSY, minutes=4), replace(BUSY, minutes=2, gpus=(0.2,)))
            ),
        ),
    ),
    story(
        "a-steady-gpu-at-sixty-percent",
        Plot(instance="ml.g5.2xlarge", hosts=one_host(replace(BUSY, gpus=(0.6,)))),
    ),
    story(
        "a-gpu-at-three-percent",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(replace(BUSY, gpus=(0.03,), gpu_gib=(20.0,))),
        ),
        must_find=("gpu-idle",),
    ),
    story(
        "all-cores-decode-for-a-gpu-at-a-third",
        Plot(
            instance="ml.g5.2xlarge",
            hosts=one_host(replace(BUSY, cores=7.85, gpus=(0.33,))),
        ),
        must_find=("cpu-bottleneck",),
        may_find=("gpu-underused",),
    ),
    story(
        "a-processing-job-that-waits-for-a-service",
        Batchwork(
            kind="Processing",
            instance="ml.g5.2xlarge",
            hosts=one_host(SHORT, spin(minutes=60), SHORT),
        ),
        must_find=("idle-middle",),
    ),
)
