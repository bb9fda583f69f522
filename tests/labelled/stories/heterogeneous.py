"""Heterogeneous clusters: GPU hosts that train, and CPU hosts that may feed them."""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, Host, Json, identical_hosts, idle, one_host
from tests.labelled.made_up_job import PYTORCH, Plot, training
from tests.labelled.story import Story

GROUP_WITHOUT_PART = "group-without-part"
GPU_TYPE = "ml.g5.12xlarge"
CPU_TYPE = "ml.c5.9xlarge"
TRAINS = Doing(minutes=150, cores=20, gpus=(0.93,) * 4, gib=90, gpu_gib=(17.0,) * 4)
FEEDS = Doing(minutes=150, cores=31, gib=40)
WAITS = Doing(minutes=150, cores=1.01, gpus=(0.0,) * 4, gib=60, gpu_gib=(1.0,) * 4, jitter=0.003)
"""One thread polls for data in a loop."""


def cluster(
    name: str,
    *,
    gpu_hosts: tuple[Host, ...],
    cpu_hosts: tuple[Host, ...],
    a_group_takes_no_part: bool = False,
) -> Story:
    """Returns a job on both types; the CPU hosts are numbered after the GPU hosts."""
    on_gpus = Plot(instance=GPU_TYPE, hosts=gpu_hosts, image=PYTORCH, name=name, missing_share=0.02)
    on_cpus = replace(on_gpus, instance=CPU_TYPE, hosts=cpu_hosts)

    def recordings(seed: int) -> list[Json]:
        job, feeding = training(on_gpus, seed), training(on_cpus, seed)
        for line in feeding["metrics"]["series"]:
            job_name, _, number = line["host"].rpartition("-")
            line["host"] = f"{job_name}-{int(number) + len(gpu_hosts)}"
        job["metrics"]["series"] += feeding["metrics"]["series"]
        job["describe"]["ResourceConfig"] = {
            "VolumeSizeInGB": 30,
            "InstanceGroups": [
                _group("train", GPU_TYPE, len(gpu_hosts)),
                _group("feed", CPU_TYPE, len(cpu_hosts)),
            ],
        }
        return [job]

    rule = frozenset({GROUP_WITHOUT_PART})
    if a_group_takes_no_part:
        return Story(name, recordings, must_find=rule)
    return Story(name, recordings, must_not_find=rule)


def _group(name: str, instance: str, count: int) -> Json:
    return {"InstanceGroupName": name, "InstanceType": instance, "InstanceCount": count}


STORIES = (
    cluster(
        "two-feeding-hosts-that-nobody-asks",
        gpu_hosts=one_host(TRAINS),
        cpu_hosts=identical_hosts(2, idle(minutes=150)),
        a_group_takes_no_part=True,
    ),
    cluster(
        "one-feeding-host-of-three-that-nobody-asks",
        gpu_hosts=one_host(TRAINS),
        cpu_hosts=(*identical_hosts(2, FEEDS), *one_host(idle(minutes=150))),
        a_group_takes_no_part=True,
    ),
    cluster(
        "the-training-runs-on-the-feeding-hosts",
        gpu_hosts=one_host(WAITS),
        cpu_hosts=identical_hosts(2, FEEDS),
        a_group_takes_no_part=True,
    ),
    cluster(
        "feeding-hosts-at-work",
        gpu_hosts=identical_hosts(2, TRAINS),
        cpu_hosts=identical_hosts(2, FEEDS),
    ),
    cluster(
        "a-feeding-host-with-little-to-do",
        gpu_hosts=one_host(TRAINS),
        cpu_hosts=one_host(replace(FEEDS, cores=1.6)),
    ),
    cluster(
        "feeding-hosts-that-are-done-after-an-hour",
        gpu_hosts=one_host(TRAINS),
        cpu_hosts=identical_hosts(2, replace(FEEDS, minutes=60), idle(minutes=90)),
    ),
)
