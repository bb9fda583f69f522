"""Where advice on another type must know what the image, the network or the price list allows.

`must_not_say` names the advice that the facts forbid, not the finding beneath it.
"""

from tests.labelled.expert import (
    CKPT,
    CPU_OK,
    GPU_OK,
    HUGGING,
    LOSS_OK,
    MOVE_OK,
    SKLEARN,
    about,
    expert,
    healthy,
    hyper,
    job,
)
from tests.labelled.machine import Shown

AWS = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
CU102 = f"{AWS}/tensorflow-training:2.3.1-gpu-py37-cu102-ubuntu18.04"
CU111 = f"{AWS}/pytorch-training:1.9.1-gpu-py38-cu111-ubuntu20.04"
CU113 = f"{AWS}/pytorch-training:1.10.2-gpu-py38-cu113-ubuntu20.04"
NEURON2 = f"{AWS}/pytorch-training-neuronx:2.5.1-neuronx-py310-sdk2.21.0-ubuntu22.04"
ENDS = ("idle-start", "idle-middle", "idle-tail", "gpu-idle")
NOT = (*ENDS, *LOSS_OK, *MOVE_OK, "trainium-candidate")
LOW = frozenset({"gpu-underused", "gpu-starved"})
_BF16 = "query-rewrite-2026-05-06-13-25-57-382"

_T3 = job(
    "tariff-fit-2026-05-13-11-30-14-097",
    "ml.t3.xlarge",
    Shown(95, 0, 344, 61, 0),
    image=SKLEARN,
    down=110,
    up=15,
    volume_gb=30,
)
_M6I = job(
    "arrivals-sim-2026-05-14-06-50-36-623",
    "ml.m6i.8xlarge",
    Shown(480, 0, 100.5, 7, 0),
    image=SKLEARN,
    down=110,
    up=20,
    volume_gb=30,
)
_R6I = job(
    "graph-walks-2026-05-15-08-40-59-260",
    "ml.r6i.4xlarge",
    Shown(420, 0, 1430, 79, 0),
    image=SKLEARN,
    down=160,
    up=40,
    volume_gb=100,
)
SCENARIOS = (
    expert(
        "image-of-cuda-10-2-on-v100",
        "A TensorFlow 2.3 image (CUDA 10.2) keeps a V100 busy for four hours.",
        job("crop-yield-2026-05-04-12-10-48-276", "ml.p3.2xlarge", Shown(2, 0, 120, 9, 4),
            Shown(238, 92, 390, 31, 93), image=CU102, volume_gb=50),
        # high: CUDA 10 builds for the T4, a quarter of the price at 1.7 times the time at best
        share=(0, 0.62),
        must_not=(*GPU_OK, *LOSS_OK, *MOVE_OK, "old-generation", "gpu-too-big", "memory-oversized"),
        says="This image runs on no Ampere, Ada or Hopper GPU: rebuild it before any such move.",
    ),
    healthy(
        "image-of-cuda-11-1-on-a10g", "A PyTorch 1.9 image (CUDA 11.1) uses an A10G at 72 %.",
        job("defect-maps-2026-05-05-06-35-20-649", "ml.g5.xlarge", Shown(2, 0, 120, 28, 3),
            Shown(358, 72, 250, 62, 80), image=CU111),
        high=0.05, but=("cheaper-type", "gpu-too-big", "old-generation", "memory-oversized"),
        says="An L4 needs CUDA 11.8, a T4 is far slower: the type is right for this image.",
    ),
    expert(
        "bf16-and-flash-attention-at-14-percent-a10g",
        "A bf16 FlashAttention fine-tune with batch size one: an A10G at 14 % for 6.5 hours.",
        job(_BF16, "ml.g5.xlarge", Shown(2, 0, 110, 30, 3), Shown(388, 14, 138, 58, 41),
            image=CU113,
            describe=hyper(_BF16, bf16="true", attention='"flash_attention"', batch_size=1)),
        # high: a batch of eight on the same machine
        share=(0, 0.88), must=(LOW,),
        must_not=(*NOT, "cheaper-type", "gpu-too-big", "cpu-bottleneck"),
        says="Raise the batch. T4 and V100 have no bf16, this image (CUDA 11.3) no L4.",
    ),
    expert(
        "linked-gpus-over-efa-at-35-percent-p4d",
        "Tensor parallel over NVLink, two p4d over EFA, GPUs at 35 % for eight hours.",
        job("chat-13b-2026-05-10-20-10-33-506", "ml.p4d.24xlarge", Shown(5, 0, 300, 5, 8),
            Shown(475, 280, 1800, 24, 700), hosts=2, image=HUGGING,
            describe={**CKPT, **hyper("chat-13b", tensor_parallel_degree=8, bf16="true")}),
        share=(0, 0.7),
        must=(frozenset({"gpu-underused", "gpu-starved", "poor-scaling"}),),
        must_not=(*NOT, "cheaper-type", "gpu-too-big", "some-gpus-unused", "cpu-bottleneck"),
        says="Find what the GPUs wait for; a g5 has neither NVLink nor the network for this.",
    ),
    expert(
        "p5e-at-19-percent-without-price",
        "Eight H200 at 19 % for seven hours; AWS lists no on-demand price.",
        job("video-gen-2026-05-11-04-00-52-318", "ml.p5e.48xlarge", Shown(6, 0, 400, 4, 8),
            Shown(414, 150, 1600, 14, 610), image=HUGGING),
        lost=None,
        must=(frozenset({"gpu-underused", "gpu-starved", "gpu-too-big", "cheaper-type"}),),
        must_not=(*NOT, "some-gpus-unused", "old-generation"),
        says="Forty-odd H200-hours idle; in dollars nobody can say, least of all zero.",
    ),
    expert(
        "trn2-without-price-and-metrics",
        "A Trainium2 run; AWS has no metric of its chips and no on-demand price.",
        job("neuron-7b-2026-05-12-03-45-27-841", "ml.trn2.48xlarge", Shown(600, 0, 2600, 21, 0),
            image=NEURON2),
        lost=None, judged="partly", idle=None,
        must_not=(*CPU_OK, *LOSS_OK, *MOVE_OK, "gpu-starved", "trainium-candidate", "cheaper-type"),
        says="The idle cores say nothing about the chips; neither waste nor bill is known.",
    ),
    expert(
        "t3-with-an-estimated-price",
        "A small fit uses 3.4 of 4 burstable cores for an hour and a half.",
        _T3, wasted=about("ml.t3.xlarge", _T3.hours(), 0, 0.06),
        must_not=(*CPU_OK, *LOSS_OK, *MOVE_OK, "cheaper-type", "old-generation", "spot-not-used"),
        says="Thirty cents, by an estimate; nothing to say and the bill is not complete.",
    ),
    expert(
        "m6i-with-an-estimated-price-one-core",
        "A single-threaded simulation sits on 32 cores for eight hours.",
        _M6I,
        # low: an xlarge of the family, an eighth, less a margin
        wasted=about("ml.m6i.8xlarge", _M6I.hours(), 0.8, 0.97),
        must=(frozenset({"serial-code", "cpu-underused", "memory-oversized", "cheaper-type"}),),
        must_not=(*LOSS_OK, *MOVE_OK, "gpu-idle", "idle-start", "idle-tail", "uneven-hosts"),
        says="One core of 32: an m6i.xlarge, seven eighths less by the estimated rates.",
    ),
    expert(
        "r6i-with-an-estimated-price-busy",
        "Random walks on a large graph: 89 % of sixteen cores, 79 % of the memory.",
        _R6I, wasted=about("ml.r6i.4xlarge", _R6I.hours(), 0, 0.05),
        must_not=(*CPU_OK, *LOSS_OK, *MOVE_OK, "cheaper-type", "old-generation"),
        says="Well used; the rate is an estimate, the bill not complete; nothing to say.",
    ),
)  # fmt: skip
