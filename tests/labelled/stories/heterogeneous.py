"""Heterogeneous clusters: hosts with GPUs that train, and CPU hosts that feed them or do not."""

from sageaudit.structs import replace
from tests.labelled.machine import PYTORCH, Doing, Host, Json, Plot, alike, idle, training
from tests.labelled.story import Story

RULE = "group-without-part"
GPUS, CPUS = "ml.g5.12xlarge", "ml.c5.9xlarge"
TRAINS = Doing(150, cores=20, gpus=(0.93,) * 4, gib=90, gpu_gib=(17.0,) * 4)
FEEDS = Doing(150, cores=31, gib=40)
WAITS = Doing(150, cores=1.01, gpus=(0.0,) * 4, gib=60, gpu_gib=(1.0,) * 4, jitter=0.003)
"""One thread asks in a loop whether data has come."""


def cluster(
    name: str, gpu_hosts: tuple[Host, ...], cpu_hosts: tuple[Host, ...], *wasteful: str
) -> Story:
    """A job on both types, in whose story a host took part or not; hosts are numbered through."""
    on_gpus = Plot(GPUS, gpu_hosts, image=PYTORCH, name=name, missing_share=0.02)
    on_cpus = replace(on_gpus, instance=CPUS, hosts=cpu_hosts)

    def tell(seed: int) -> list[Json]:
        told, beside = training(on_gpus, seed), training(on_cpus, seed)
        for line in beside["metrics"]["series"]:
            job, _, number = line["host"].rpartition("-")
            line["host"] = f"{job}-{int(number) + len(gpu_hosts)}"
        told["metrics"]["series"] += beside["metrics"]["series"]
        told["describe"]["ResourceConfig"] = {
            "VolumeSizeInGB": 30,
            "InstanceGroups": [
                _group("train", GPUS, len(gpu_hosts)),
                _group("feed", CPUS, len(cpu_hosts)),
            ],
        }
        return [told]

    fine = frozenset({RULE}).difference(wasteful)
    return Story(name, tell, frozenset(wasteful), fine=fine)


def _group(name: str, instance: str, count: int) -> Json:
    return {"InstanceGroupName": name, "InstanceType": instance, "InstanceCount": count}


STORIES = (
    cluster("two-feeding-hosts-that-nobody-asks", alike(1, TRAINS), alike(2, idle(150)),
        RULE),
    cluster("one-feeding-host-of-three-that-nobody-asks", alike(1, TRAINS),
        (*alike(2, FEEDS), *alike(1, idle(150))), RULE),
    cluster("the-training-runs-on-the-feeding-hosts", alike(1, WAITS), alike(2, FEEDS),
        RULE),
    cluster("feeding-hosts-at-work", alike(2, TRAINS), alike(2, FEEDS)),
    cluster("a-feeding-host-with-little-to-do", alike(1, TRAINS),
        alike(1, replace(FEEDS, cores=1.6))),
    cluster("feeding-hosts-that-are-done-after-an-hour", alike(1, TRAINS),
        alike(2, replace(FEEDS, minutes=60), idle(90))),
)  # fmt: skip
