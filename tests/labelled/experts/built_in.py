"""Built-in algorithms: the guide names the GPU families of each, and no newer one.

Low, where a move is documented: T4 instead of V100 at its worst ratio, less a margin.
"""

from tests.labelled.expert import LOSS_OK, MOVE_OK, expert, healthy, job, part
from tests.labelled.machine import Shown

BUILT_IN_IMAGES = "811284229777.dkr.ecr.us-east-1.amazonaws.com"
XGBOOST_12 = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.2-1"
ENDS = ("idle-start", "idle-middle", "idle-tail", "gpu-idle")
NOT = (*ENDS, *LOSS_OK, *MOVE_OK, "trainium-candidate")
SMALLER = frozenset({"cheaper-type", "gpu-too-big", "old-generation", "gpu-underused"})

SCENARIOS = (
    healthy(
        "built-in-object-detection-on-a10g", "The built-in detector at 58 % of an A10G.",
        job("shelf-items-2026-05-07-07-05-09-914", "ml.g5.xlarge", Shown(3, 0, 150, 25, 3),
            Shown(267, 58, 300, 56, 66), image=f"{BUILT_IN_IMAGES}/object-detection:1",
            describe={
                "HyperParameters": {"num_classes": "24", "mini_batch_size": "16", "epochs": "40"}}),
        high=0.05,
        but=("cheaper-type", "gpu-too-big", "memory-oversized"),
        says="Documented for P2, P3, G4dn and G5 alone: the cheaper G6 is no offer.",
    ),
    expert(
        "built-in-blazingtext-at-8-percent-v100", "BlazingText uses 8 % of a V100 for two hours.",
        job("review-words-2026-05-08-12-55-41-187", "ml.p3.2xlarge", Shown(130, 8, 160, 11, 6),
            image=f"{BUILT_IN_IMAGES}/blazingtext:1", volume_gb=30,
            describe={
                "HyperParameters": {"mode": "skipgram", "epochs": "15", "vector_dim": "100"}}),
        # low: g4dn.xlarge (documented), at T4's worst ratio; high: a CPU machine
        share=(part("ml.p3.2xlarge", "ml.g4dn.xlarge", 1.2) - 0.12, 0.97),
        must=(frozenset({"cheaper-type", "gpu-too-big", "old-generation", "gpu-underused"}),),
        must_not=(*NOT, "cpu-bottleneck", "some-gpus-unused"),
        says="A g4dn.xlarge does this for a quarter; skip-gram on one GPU is documented there.",
    ),
    expert(
        "built-in-xgboost-1-2-on-v100", "XGBoost 1.2-1 with gpu_hist uses 47 % of a V100.",
        job("bid-price-2026-05-09-09-20-18-755", "ml.p3.2xlarge", Shown(190, 47, 310, 33, 61),
            image=XGBOOST_12, volume_gb=40,
            describe={"HyperParameters": {"tree_method": "gpu_hist", "num_round": "4000"}}),
        # high: version 1.7 on a g4dn would take more than half off
        share=(0, 0.8),
        must_not=(*NOT, "cheaper-type", "gpu-too-big", "old-generation"),
        says="1.2-1 is documented for P2 and P3 alone: raise the version first, then the type.",
    ),
    expert(
        "built-in-image-classification-at-35-percent-v100",
        "The built-in classifier uses 35 % of a V100 for five and a half hours.",
        job("dish-classes-2026-05-10-06-10-24-437", "ml.p3.2xlarge", Shown(3, 0, 140, 9, 3),
            Shown(327, 35, 250, 12, 44), image=f"{BUILT_IN_IMAGES}/image-classification:1",
            volume_gb=50,
            describe={
                "HyperParameters": {"num_classes": "101", "num_layers": "50", "epochs": "30"}}),
        # high: a g4dn at T4's best ratio, and a larger batch
        share=(part("ml.p3.2xlarge", "ml.g4dn.xlarge", 1.8) - 0.15, 0.92), must=(SMALLER,),
        must_not=(*NOT, "some-gpus-unused", "cpu-bottleneck"),
        says="g4dn and g5 are documented for it and far cheaper; g6 is not documented.",
    ),
    healthy(
        "built-in-semantic-segmentation-on-a10g",
        "The built-in segmentation at 61 % of an A10G, six of eight cores busy.",
        job("road-regions-2026-05-11-15-20-47-969", "ml.g5.2xlarge", Shown(3, 0, 160, 25, 3),
            Shown(237, 61, 560, 58, 72), image=f"{BUILT_IN_IMAGES}/semantic-segmentation:1",
            describe={"HyperParameters": {"backbone": "resnet-50", "algorithm": "deeplab"}}),
        high=0.05,
        but=("cheaper-type", "gpu-too-big", "memory-oversized"),
        says="Documented for P2, P3, G4dn and G5 on one machine: the type is right.",
    ),
)  # fmt: skip
