"""Which job: kind, name, ARN, account and region."""

from __future__ import annotations

import re

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind

JOB_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}\Z")
"""botocore's pattern of TrainingJobName; processing, transform and tuning use the same letters."""

REGION = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}")
"""A region's code in any partition, such as us-gov-west-1 or eusc-de-east-1."""

_ARN = re.compile(
    rf"arn:(?P<partition>aws[a-z-]*):sagemaker:(?P<region>{REGION.pattern}):"
    r"(?P<account>\d{12}):(?P<word>[a-z-]+)/(?P<name>[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62})\Z"
)
_ACCOUNT_ID = re.compile(r"\d{12}\Z", re.ASCII)
_KIND_OF_WORD = {kind.row.arn_word: kind for kind in JobKind}
_PARTITIONS = {
    "cn": "aws-cn",
    "us-gov": "aws-us-gov",
    "us-iso": "aws-iso",
    "us-isob": "aws-iso-b",
    "us-isof": "aws-iso-f",
    "eu-isoe": "aws-iso-e",
    "eusc": "aws-eusc",
}


def is_account_id(text: str) -> bool:
    """Whether a text is an AWS account id: 12 digits."""
    return _ACCOUNT_ID.match(text) is not None


def partition_of(region: str) -> str:
    """The partition of a region: one job has one ARN."""
    words = region.split("-")
    return _PARTITIONS.get("-".join(words[:2])) or _PARTITIONS.get(words[0], "aws")


def rollup_of(arn: str | None) -> JobRef | None:
    """The roll-up that an ARN names; None where it names none."""
    ref = JobRef.from_arn(arn) if arn else None
    return ref if ref is not None and ref.kind.row.rollup else None


class JobRef(Struct, frozen=True):
    """Identifies a job. `name` keeps its case; the name inside the ARN is in lower case."""

    kind: JobKind
    name: str
    arn: str
    account: str
    region: str

    @classmethod
    def from_arn(cls, arn: str, name: str | None = None) -> JobRef | None:
        """Reads a job's ARN; None when it is not one, or when `name` disagrees with it.

        The comparison ignores case: real ARNs carry the name in lower case.
        """
        match = _ARN.match(arn)
        if match is None or match["word"] not in _KIND_OF_WORD:
            return None
        if name is not None and name.lower() != match["name"].lower():
            return None
        if match["partition"] != partition_of(match["region"]):
            return None
        return cls(
            kind=_KIND_OF_WORD[match["word"]],
            name=name or match["name"],
            arn=arn,
            account=match["account"],
            region=match["region"],
        )
