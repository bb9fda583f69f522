"""Replaces the names in a recording by pseudonyms.

The same name and salt always give the same pseudonym. A pseudonym keeps only what audits read from
a name: the family, a version of the data, an image's toolkit. Its letters form no words or
hexadecimal digits, so it cannot be mistaken for anything else.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable

from sageaudit.domain.job.addresses import (
    AWS_REGISTRIES,
    AWS_REPOSITORIES,
    CODE_INPUTS,
    bucket_name,
    cuda,
    pytorch,
    repository,
)
from sageaudit.domain.job.family import script, stem
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.objective import meaningful_words

_LETTERS = "ghjkmnpqrstvwxyz"
"""The letters of a pseudonym: no vowels and no hexadecimal digits."""
_ARN = re.compile(
    rf"arn:(?P<partition>aws[a-z-]{{0,10}}):sagemaker:(?P<region>{REGION.pattern}):"
    r"(?P<account>[^:]*):(?P<word>[a-z-]+)/(?P<name>.+)\Z",
    re.DOTALL,
)
_RESOURCES = frozenset(kind.spec.arn_word for kind in JobKind) | {
    "labeling-job", "monitoring-schedule", "pipeline", "user-profile",
    "training-plan",
}  # fmt: skip
_EXECUTION = re.compile(r"(?P<pipeline>[^/]+)/execution/(?P<id>.+)\Z", re.DOTALL)
_ECR = re.compile(
    rf"(?P<account>\d{{12}})\.dkr\.ecr\.(?P<region>{REGION.pattern})"
    r"\.amazonaws\.com(?P<china>\.cn)?\Z"
)
_IMAGE = re.compile(r"[a-z0-9][\w./:@-]{1,250}\Z", re.ASCII)
_INPUTS = CODE_INPUTS | {
    "train", "training", "validation", "valid", "val", "test", "eval", "model", "data", "channel",
    "input", "output", "config", "checkpoint", "checkpoints",
}  # fmt: skip
"""Common names of channels, inputs and outputs, which identify no job."""
_NUMBERED_HOST = re.compile(r"algo-[0-9]{1,6}\Z")
_RULES = """
AllZero BatchSize CheckInputImages ClassImbalance Confusion CPUBottleneck CreateXgboostReport
Dataloader DeadRelu ExplodingTensor FeatureImportanceOverweight GPUMemoryIncrease IOBottleneck
LoadBalancing LossNotDecreasing LowGPUUtilization MaxInitializationTime NLPSequenceRatio
OverallFrameworkMetrics OverallSystemUsage Overfit Overtraining PoorWeightInitialization
ProfilerReport SaturatedActivation SimilarAcrossRuns StalledTrainingRule StepOutlier TensorVariance
TreeDepth UnchangedTensor VanishingGradient WeightUpdateRatio
"""
_BUILTIN_RULES = frozenset(_RULES.split())
"""Debugger's built-in rules. Source: Amazon SageMaker AI guide, "List of Debugger built-in
rules"."""
_RULE_NUMBER = re.compile(r"(?:-[0-9]{1,14})?\Z")


class Pseudonyms:
    """Replaces names by pseudonyms.

    `salt`: a secret; without it, nobody can test whether a guessed name is right. `names`: the
    jobs' names in their original case.
    """

    def __init__(self, salt: bytes, names: Iterable[str] = ()) -> None:
        self._salt = salt
        self._written = {name.lower(): name for name in names}

    def word(self, prefix: str, original: str, letters: int = 10) -> str:
        """Returns a pseudonym for any name, such as `grp-kwzmtgqhrp`."""
        digest = self._digest(prefix, original)
        return f"{prefix}-{''.join(_LETTERS[byte & 15] for byte in digest[:letters])}"

    def job(self, name: str) -> str:
        """Returns a pseudonym for a job's name.

        Names that differ only in a time or number get pseudonyms that differ only in a number.
        """
        name = self._written.get(name.lower(), name)
        name_stem = stem(name)
        if name_stem == name:
            return self.word("job", name_stem)
        number = int.from_bytes(self._digest("job run", name)[:8]) % 10**9
        return f"{self.word('job', name_stem)}-{number:09}"

    def account(self, account: str) -> str:
        """Returns twelve digits in place of an account id.

        They are never the id of an account in which AWS publishes its own images.
        """
        number = int.from_bytes(self._digest("account", account)[:8]) % 10**9
        return f"900{number:09}"  # no account of AWS begins so

    def arn(self, arn: str) -> str:
        """Returns an ARN with pseudonyms for its account and names."""
        match = _ARN.match(arn)
        if match is None or match["word"] not in _RESOURCES:
            return self.word("arn", arn)
        account = self.account(match["account"])
        place = f"arn:{match['partition']}:sagemaker:{match['region']}:{account}:{match['word']}"
        if match["word"].endswith("-job"):
            return f"{place}/{self.job(match['name'])}"
        if execution := _EXECUTION.match(match["name"]):
            pipeline = self.word("pip", execution["pipeline"])
            return f"{place}/{pipeline}/execution/{self.word('exe', execution['id'])}"
        return f"{place}/{self.word('res', match['name'])}"

    def bucket(self, name: str) -> str:
        """Returns a pseudonym that is a valid bucket name."""
        return self.word("bkt", name)

    def address(self, address: str) -> str:
        """Returns an S3 address with a pseudonym for its bucket."""
        bucket = bucket_name(address)
        return address.replace(bucket, self.bucket(bucket), 1) if bucket else address

    def image(self, image: str, own_account: str | None) -> str:
        """Returns a pseudonym for an image's address. Addresses of AWS's own images are unchanged.

        The pseudonym of any other image keeps the framework and toolkit. `own_account`: the job's
        account, whose images are not AWS's.
        """
        registry, slash, _ = image.partition("/")
        ecr = _ECR.match(registry) if slash else None
        if ecr and ecr["account"] in AWS_REGISTRIES - {own_account} and _IMAGE.match(image):
            return image
        host = f"{self.word('reg', registry)}.invalid"
        if ecr:
            china = ecr["china"] or ""
            account = self.account(ecr["account"])
            host = f"{account}.dkr.ecr.{ecr['region']}.amazonaws.com{china}"
        return f"{host}/{self._repository(image)}{self._tag(image)}"

    def _repository(self, image: str) -> str:
        name = repository(image) or ""
        if name in AWS_REPOSITORIES:
            return name
        prefix = "huggingface-" if name.startswith("huggingface-") else ""
        return f"{prefix}{self.word('img', name)}{'-pytorch' if 'pytorch' in name else ''}"

    @staticmethod
    def _tag(image: str) -> str:
        framework, toolkit = pytorch(image), cuda(image)
        words = [f"{framework[0]}.{framework[1]}"] if framework else []
        words += [f"cu{toolkit[0]}{toolkit[1]}"] if toolkit else []
        return f":{'-'.join(words)}" if words else ""

    def script(self, name: str) -> str:
        """Returns a pseudonym for a script's name, with the script's extension."""
        file = script(name)
        return f"{self.word('run', name)}.{file.rpartition('.')[2]}" if file else "-"

    def channel(self, name: str) -> str:
        """Returns a pseudonym for a channel, input or output, which keeps "train" in the name."""
        if name in _INPUTS:
            return name
        return f"{self.word('chn', name)}{'-train' if 'train' in name.lower() else ''}"

    def metric(self, name: str) -> str:
        """Returns a pseudonym for a metric of the user's code, which keeps words such as "loss"."""
        if name in {metric.value for metric in Metric}:
            return name
        return "-".join((self.word("met", name, 6), *meaningful_words(name)))

    def debugger_rule(self, name: str) -> str:
        """Returns a pseudonym for a Debugger rule; built-in rules keep their names."""
        number = _RULE_NUMBER.search(name)
        rule = name[: number.start()] if number else name
        return rule if rule in _BUILTIN_RULES else self.word("rul", name)

    def host(self, host: str, job_hosts: Iterable[str]) -> str:
        """Returns a pseudonym for a host's name in metrics, with the host's number in the job.

        A name without a slash is a job's name.
        """
        job, slash, name = host.partition("/")
        if not slash:
            return self.job(job)
        if _NUMBERED_HOST.match(name):
            return f"{self.job(job)}/{name}"
        number = sorted({(len(other), other) for other in job_hosts}).index((len(host), host))
        return f"{self.job(job)}/host-{number:04}"

    def _digest(self, kind: str, original: str) -> bytes:
        text = f"{kind}\0{original}".encode("utf-8", "surrogatepass")
        return hmac.new(self._salt, text, hashlib.sha256).digest()
