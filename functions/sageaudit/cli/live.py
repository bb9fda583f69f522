"""A live account, with the user's own credentials: the same flow, an in-memory history."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from sageaudit import flow
from sageaudit.adapters import packaged
from sageaudit.adapters.accounts import Accounts
from sageaudit.adapters.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.memory_history import MemoryHistory
from sageaudit.adapters.sagemaker import SageMakerJobs
from sageaudit.domain.document import AuditDocument
from sageaudit.domain.event import JobEnded
from sageaudit.domain.policy import Policy
from sageaudit.domain.ref import JOB_NAME, JobKind, JobRef
from sageaudit.errors import AmbiguousName, BadUsage, JobGone, NoCredentials
from sageaudit.rules import catalogue


class Account:
    """The account behind a profile. Reads only: Describe*, List*, GetMetricData."""

    def __init__(self, profile: str | None, region: str | None) -> None:
        self._profile = profile
        self._region = region

    def audit(self, job: str, kind: JobKind | None, policy: Policy) -> AuditDocument:
        """Audits one job by ARN or name; a tuning job with all of its children."""
        ref = self._ref(job, kind)
        office = self._office(policy)
        children = []
        if ref.kind is JobKind.TUNING:
            children = [self._one(child, office) for child in office.jobs.children(ref)]
        document = self._one(ref, office)
        if ref.kind is JobKind.TUNING:
            document["children"] = children
        return document

    def _one(self, ref: JobRef, office: flow.Office) -> AuditDocument:
        ended = JobEnded(ref, "Unknown", None, datetime.now(UTC), {})
        done = flow.audit_finished_job(ended, office, now=datetime.now(UTC), attempt=None)
        if isinstance(done, flow.Later):
            raise JobGone(done.reason)
        if done.document["unauditable"] is not None:
            raise JobGone(f"{ref.arn}: {done.document['unauditable']}")
        return done.document

    def _office(self, policy: Policy) -> flow.Office:
        accounts = Accounts(self._session, "", {}, time.time)
        return flow.Office(
            jobs=SageMakerJobs(accounts.of("sagemaker")),
            metrics=CloudWatchMetrics(accounts.of("cloudwatch"), packaged.types()),
            history=MemoryHistory(),
            markets=packaged.PackagedMarkets(),
            policy=policy,
            rules=catalogue.load(),
            ruleset=catalogue.version(),
            fingerprint_key=lambda: None,
        )

    @cached_property
    def _session(self) -> Any:
        try:
            return boto3.Session(profile_name=self._profile, region_name=self._region)
        except BotoCoreError as error:
            raise NoCredentials(f"No usable AWS credentials: {error}") from error

    def _ref(self, job: str, kind: JobKind | None) -> JobRef:
        if job.startswith("arn:"):
            ref = JobRef.from_arn(job)
            if ref is None:
                raise BadUsage(f"{job} is not the ARN of a SageMaker job that is audited")
            if kind is not None and ref.kind is not kind:
                raise BadUsage(f"{job} is a {ref.kind.value} job, not a {kind.value} job")
            return ref
        if not JOB_NAME.match(job):
            raise BadUsage(f"{job} is neither an ARN nor a job's name")
        region = self._session.region_name
        if region is None:
            raise BadUsage("which region? give --region, or set one for your AWS profile")
        return self._find(job, [kind] if kind else list(JobKind), region)

    def _find(self, name: str, kinds: list[JobKind], region: str) -> JobRef:
        """The job of this name. Raises JobGone, or AmbiguousName when two kinds use it."""
        jobs = SageMakerJobs(Accounts(self._session, "", {}, time.time).of("sagemaker"))
        found: list[JobRef] = []
        for kind in kinds:
            try:
                answer = jobs.describe(JobRef(kind, name, "", "", region))
            except JobGone:
                continue
            ref = JobRef.from_arn(answer[f"{kind.prefix}JobArn"], name)
            if ref is not None:
                found.append(ref)
        if len(found) > 1:
            named = " and ".join(f"a {ref.kind.value} job" for ref in found)
            raise AmbiguousName(f"{name} is {named}: say which with --kind")
        if not found:
            tried = ", ".join(kind.value for kind in kinds)
            raise JobGone(f"there is no job {name} in {region} (looked for: {tried})")
        return found[0]
