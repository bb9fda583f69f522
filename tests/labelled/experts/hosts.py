"""Many hosts: communication, a straggler, and hosts that never joined."""

from tests.labelled.expert import HUGGING, cents, expert, job, usd
from tests.labelled.machine import Shown

_SLOW = (Shown(4, 0, 260, 6, 8), Shown(536, 768, 1500, 28, 640))
_WAIT = (Shown(4, 0, 260, 6, 8), Shown(536, 376, 1300, 28, 640, wobble=0.05))
_IN = (Shown(4, 0, 260, 6, 8), Shown(416, 756, 1900, 30, 680))
_OUT = (Shown(420, 0, 22, 1.4, 0),)

SCENARIOS = (
    expert(
        "communication-bound-32-hosts",
        "FSDP over 32 g5.12xlarge without fast links: GPUs 46 % busy, 86 % full.",
        job("fsdp-30b-ethernet-2026-05-17-06-00-44-339", "ml.g5.12xlarge", Shown(6, 0, 140, 8, 4),
            Shown(534, 184, 520, 41, 344, wobble=0.07), hosts=32, image=HUGGING),
        # low: sharded memory forbids fewer GPUs; high: 8 A100 hosts' worth of better links
        share=(0, 0.5), must=(frozenset({"gpu-underused", "poor-scaling", "gpu-starved"}),),
        must_not=("gpu-idle", "uneven-hosts", "some-gpus-unused", "idle-start", "failed-spend"),
        says="Half of 128 GPUs' time is waiting, likely for the network: test 16 or 8 hosts.",
    ),
    expert(
        "one-straggler-of-eight",
        "One of eight p4d got the largest graph partition; seven wait for it half the time.",
        job("graph-net-2026-05-18-04-00-29-876", "ml.p4d.24xlarge",
            hosts=(_WAIT, _WAIT, _WAIT, _WAIT, _SLOW, _WAIT, _WAIT, _WAIT)),
        # low: nobody can take its work away without new partitions; high: perfect balance
        share=(0, 0.47), must=("uneven-hosts",),
        must_not=("gpu-idle", "some-gpus-unused", "idle-start", "idle-tail", "failed-spend"),
        says="algo-5 sets the pace: rebalance the partitions and the job halves.",
    ),
    expert(
        "half-of-the-hosts-idle",
        "Eight p4d were hired; the launcher started ranks on four, the rest slept.",
        job("ddp-world-4-2026-05-20-03-00-51-095", "ml.p4d.24xlarge",
            hosts=(_IN, _IN, _IN, _IN, _OUT, _OUT, _OUT, _OUT)),
        wasted=cents(usd("ml.p4d.24xlarge", 6.8, 4), usd("ml.p4d.24xlarge", 7.1, 4)),
        must=(frozenset({"uneven-hosts", "gpu-idle"}),),
        must_not=("gpu-too-big", "idle-start", "idle-tail", "failed-spend", "cpu-bottleneck"),
        says="Four hosts did nothing for seven hours: InstanceCount 4, exactly half the bill.",
    ),
)  # fmt: skip
