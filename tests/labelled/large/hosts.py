"""Many hosts: communication, a straggler, and hosts that never joined."""

from .form import HUGGING, Expert, Job, Scenario, day, run_phases, same
from .load import Seg
from .machines import cents, usd

_COMM = Job(
    "fsdp-30b-ethernet-2026-05-17-06-00-44-339",
    "ml.g5.12xlarge",
    day(17, 6),
    run_phases(540),
    same(32, Seg(6, 0, 140, 8, 4), Seg(534, 184, 520, 41, 344, wobble=0.07)),
    image=HUGGING,
)
_SLOW = (Seg(4, 0, 260, 6, 8), Seg(536, 768, 1500, 28, 640))
_WAIT = (Seg(4, 0, 260, 6, 8), Seg(536, 376, 1300, 28, 640, wobble=0.05))
_STRAGGLER = Job(
    "graph-net-2026-05-18-04-00-29-876",
    "ml.p4d.24xlarge",
    day(18, 4),
    run_phases(540),
    (_WAIT, _WAIT, _WAIT, _WAIT, _SLOW, _WAIT, _WAIT, _WAIT),
)
_IN = (Seg(4, 0, 260, 6, 8), Seg(416, 756, 1900, 30, 680))
_OUT = (Seg(420, 0, 22, 1.4, 0),)
_HALF = Job(
    "ddp-world-4-2026-05-20-03-00-51-095",
    "ml.p4d.24xlarge",
    day(20, 3),
    run_phases(420),
    (_IN, _IN, _IN, _IN, _OUT, _OUT, _OUT, _OUT),
)

HOSTS: tuple[Scenario, ...] = (
    _COMM.scenario(
        "communication-bound-32-hosts",
        "FSDP over 32 g5.12xlarge without fast links: GPUs 46 % busy, 86 % full.",
        Expert(
            "yes",
            # low: sharded memory forbids fewer GPUs; high: 8 A100 hosts' worth of better links
            _COMM.share(0, 0.5),
            _COMM.share(0, 0),
            _COMM.idle(),
            (frozenset({"gpu-underused", "poor-scaling", "gpu-starved"}),),
            ("gpu-idle", "uneven-hosts", "some-gpus-unused", "idle-start", "failed-spend"),
            "Half of 128 GPUs' time is waiting, likely for the network: test 16 or 8 hosts.",
        ),
    ),
    _STRAGGLER.scenario(
        "one-straggler-of-eight",
        "One of eight p4d got the largest graph partition; seven wait for it half the time.",
        Expert(
            "yes",
            # low: nobody can take its work away without new partitions; high: perfect balance
            _STRAGGLER.share(0, 0.47),
            _STRAGGLER.share(0, 0),
            _STRAGGLER.idle(),
            ("uneven-hosts",),
            ("gpu-idle", "some-gpus-unused", "idle-start", "idle-tail", "failed-spend"),
            "algo-5 sets the pace: rebalance the partitions and the job halves.",
        ),
    ),
    _HALF.scenario(
        "half-of-the-hosts-idle",
        "Eight p4d were hired; the launcher started ranks on four, the rest slept.",
        Expert(
            "yes",
            cents(usd("ml.p4d.24xlarge", 6.8, 4), usd("ml.p4d.24xlarge", 7.1, 4)),
            _HALF.share(0, 0),
            _HALF.idle(),
            (frozenset({"uneven-hosts", "gpu-idle"}),),
            ("gpu-too-big", "idle-start", "idle-tail", "failed-spend", "cpu-bottleneck"),
            "Four hosts did nothing for seven hours: InstanceCount 4, exactly half the bill.",
        ),
    ),
)
