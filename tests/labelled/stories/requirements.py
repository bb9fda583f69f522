"""Settings that an organisation requires; the policy of all stories forbids one."""

from sageaudit.structs import replace
from tests.labelled.machine import identical_hosts
from tests.labelled.made_up_job import Plot
from tests.labelled.story import BUSY_A10G, story

_ENCRYPTED = {"EnableInterContainerTrafficEncryption": True}
_PLAIN = {"EnableInterContainerTrafficEncryption": False}

STORIES = (
    story(
        "two-hosts-encrypt-every-gradient",
        Plot(
            instance="ml.g5.xlarge",
            hosts=identical_hosts(2, replace(BUSY_A10G, minutes=90)),
            describe=_ENCRYPTED,
        ),
        must_find=("requirement-not-met",),
    ),
    story(
        "two-hosts-send-their-gradients-as-they-are",
        Plot(
            instance="ml.g5.xlarge",
            hosts=identical_hosts(2, replace(BUSY_A10G, minutes=90)),
            describe=_PLAIN,
        ),
        must_not_find=("requirement-not-met",),
    ),
)
