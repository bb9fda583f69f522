"""GPUs that stood still at the end, in the middle, or that only seemed to: checkpoints, evaluation,
another host at work.
"""

from sageaudit.structs import replace
from tests.labelled.machine import Batchwork, Doing, Plot, alike, idle
from tests.labelled.story import BUSY_A10G, story, swinging

BUSY = replace(BUSY_A10G, gib=24)
"""On ml.g5.2xlarge: its host memory is in use, so that no smaller type holds it."""
SHORT = replace(BUSY, minutes=60)


def spin(minutes: int) -> Doing:
    """One thread asks in a loop whether a peer, a file system or a worker has answered."""
    return Doing(minutes, cores=1.01, gpus=(0.0,), gib=24, gpu_gib=(20.0,), jitter=0.003)


def on_cpu(minutes: int, cores: float) -> Doing:
    """Work without the GPU."""
    return Doing(minutes, cores=cores, gpus=(0.0,), gib=24, gpu_gib=(20.0,))


STORIES = (
    story("a-loader-worker-that-is-never-joined", Plot("ml.g5.2xlarge", alike(1, BUSY, spin(95))),
        "idle-tail"),
    story("an-evaluation-on-all-cores-after-the-training",
        Plot("ml.g5.2xlarge", alike(1, BUSY, on_cpu(60, 7.2))), "idle-tail"),
    story("a-short-evaluation-on-the-cpu", Plot("ml.g5.2xlarge", alike(1, BUSY, on_cpu(12, 7.2)))),
    story("a-mount-that-was-dead-for-an-hour",
        Plot("ml.g5.2xlarge", alike(2, SHORT, spin(70), SHORT)), "idle-middle"),
    story("asleep-until-a-lock-was-freed", Plot("ml.g5.2xlarge", alike(1, SHORT, idle(55), SHORT)),
        "idle-middle"),
    story("the-next-data-set-is-copied-by-hand",
        Plot("ml.g5.2xlarge", alike(1, SHORT, replace(on_cpu(50, 0.7), jitter=0.1), SHORT)),
        "idle-middle"),
    story("two-waits-in-one-run",
        Plot("ml.g5.2xlarge", alike(1, SHORT, spin(45), SHORT, spin(45), SHORT)), "idle-middle"),
    story("an-evaluation-on-one-core-after-each-epoch",
        Plot("ml.g5.2xlarge", alike(1, *swinging(3, SHORT, on_cpu(45, 0.97)), SHORT)),
        "idle-middle"),
    story("an-evaluation-on-one-core-that-also-ends-the-run",
        Plot("ml.g5.2xlarge", alike(1, *swinging(4, SHORT, on_cpu(45, 0.97)))),
        "idle-middle", either=("idle-tail",)),
    story("three-waits-that-come-when-they-like",
        Plot("ml.g5.2xlarge",
            alike(1, SHORT, spin(45), replace(SHORT, minutes=140), spin(70),
                replace(SHORT, minutes=35), spin(50), SHORT)), "idle-middle"),
    story("asleep-for-as-long-after-each-epoch",
        Plot("ml.g5.2xlarge", alike(1, *swinging(3, SHORT, idle(45)), SHORT)), "idle-middle"),
    story("new-training-data-is-simulated-on-all-cores",
        Plot("ml.g5.2xlarge", alike(1, SHORT, on_cpu(60, 7.6), SHORT)), "idle-middle"),
    story("one-of-four-evaluates-and-the-others-wait",
        Plot("ml.g5.2xlarge",
            ((replace(BUSY, minutes=190),),
                *alike(3, SHORT, spin(60), replace(SHORT, minutes=70)))), "idle-middle",
        either=("uneven-hosts",)),
    story("a-wait-of-twenty-minutes", Plot("ml.g5.2xlarge", alike(1, SHORT, spin(20), SHORT))),
    story("a-checkpoint-of-three-minutes-every-forty",
        Plot("ml.g5.2xlarge",
            alike(1, *swinging(5, replace(BUSY, minutes=40), replace(spin(3), cores=0.9))))),
    story("audio-resampled-on-all-cores-before-the-training",
        Plot("ml.g5.2xlarge", alike(1, on_cpu(60, 7.6), BUSY)), "idle-start"),
    story("both-hosts-tokenise-before-the-training",
        Plot("ml.g5.2xlarge", alike(2, on_cpu(80, 6.5), BUSY)), "idle-start"),
    story("ten-minutes-of-tokenising-before-the-training",
        Plot("ml.g5.2xlarge", alike(1, on_cpu(10, 7.6), BUSY))),
    story("a-healthy-saw-tooth",
        Plot("ml.g5.2xlarge",
            alike(1,
                *swinging(30, replace(BUSY, minutes=4), replace(BUSY, minutes=2, gpus=(0.2,)))))),
    story("a-steady-gpu-at-sixty-percent",
        Plot("ml.g5.2xlarge", alike(1, replace(BUSY, gpus=(0.6,))))),
    story("a-gpu-at-three-percent",
        Plot("ml.g5.2xlarge", alike(1, replace(BUSY, gpus=(0.03,), gpu_gib=(20.0,)))), "gpu-idle"),
    story("all-cores-decode-for-a-gpu-at-a-third",
        Plot("ml.g5.2xlarge", alike(1, replace(BUSY, cores=7.85, gpus=(0.33,)))), "cpu-bottleneck",
        either=("gpu-underused",)),
    story("a-processing-job-that-waits-for-a-service",
        Batchwork("Processing", "ml.g5.2xlarge", alike(1, SHORT, spin(60), SHORT)), "idle-middle"),
)  # fmt: skip
