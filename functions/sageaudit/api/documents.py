"""Audits of recordings and checks of requests from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sageaudit.adapters.files.recording import find_recordings, only_recording
from sageaudit.api.history import (
    AuditHistory,
    parse_enum,
    require_open_history,
    require_path,
    require_text,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import FileFormat
from sageaudit.errors import BadRecording, MalformedData
from sageaudit.structs import replace
from sageaudit.workflows.check.document import CheckedFile
from sageaudit.workflows.check.run import RequestChecker

_Path = str | os.PathLike[str]
PolicyOrPath = _Path | Policy | None
"""A policy or its file. None is the policy of a new installation."""


def audit(recording: _Path | Mapping[str, Any], *, policy: PolicyOrPath = None) -> AuditDocument:
    """Audits a recorded job, without a call to AWS.

    `recording` is a file that `sageaudit record` wrote, a Describe* response as the AWS CLI prints
    it, or the parsed JSON of either. `policy` is a policy or its file; None means a new
    installation's policy. Raises BadRecording or BadPolicy, each a SageauditError.
    """
    from sageaudit.workflows.recordings.run import (  # noqa: PLC0415 - it imports every rule
        audit_parsed_recording,
        audit_recording,
    )

    chosen_policy = choose_policy(policy)
    if not isinstance(recording, Mapping):
        require_path("recording", recording, "a recording")
        return audit_recording(Path(recording), chosen_policy)
    try:
        recordings = find_recordings(recording, "the recording")
        return audit_parsed_recording(only_recording(recordings, "the recording"), chosen_policy)
    except MalformedData as error:
        raise BadRecording(str(error)) from error


def check(
    request: _Path | Mapping[str, Any],
    *,
    history: AuditHistory | None = None,
    policy: PolicyOrPath = None,
    region: str | None = None,
    account: str | None = None,
    form: str | None = None,
    pipeline: str | None = None,
    guides: bool = False,
) -> CheckedFile:
    """Checks a request before its job runs, as `sageaudit check --output json` does.

    `request` is the mapping that a boto3 call such as `create_training_job` takes, any other
    document that the command reads, or its file. `history` adds what earlier runs cost. `form` is
    one of the words of `--as`; None recognises it. `region` and `account` are used if the request
    names none; without a region, that of the AWS settings is used. Calls AWS only to read a
    history's table. Raises BadUsage if there is no request in it, BadPolicy, or AwsError if the
    table does not answer.
    """
    from sageaudit.workflows import check_files  # noqa: PLC0415 - it imports every rule, botocore

    checker = make_checker(
        choose_policy(policy),
        history,
        form=None if form is None else parse_enum(FileFormat, form, "form"),
        pipeline=pipeline,
        region=region,
        account=account,
        with_guides=guides,
    )
    if isinstance(request, Mapping):
        return check_files.check_mapping(checker, request)
    require_path("request", request, "a request")
    return check_files.check_file(checker, os.fspath(request))


def make_checker(
    policy: Policy,
    history: AuditHistory | None,
    *,
    account: str | None,
    region: str | None,
    pipeline: str | None = None,
    **options: Any,
) -> RequestChecker:
    """Returns a checker whose notes name arguments of Python. Raises BadUsage."""
    from sageaudit.workflows import check_files  # noqa: PLC0415 - it imports every rule, botocore

    for name, value, example in (
        ("account", account, "111122223333"),
        ("region", region, "eu-west-1"),
        ("pipeline", pipeline, "weekly"),
    ):
        if value is not None:
            require_text(name, value, example)
    require_open_history(history)
    checker = check_files.make_checker(
        policy,
        history.source.history if history else None,
        account=account,
        region=region,
        pipeline=pipeline,
        **options,
    )
    return replace(checker, option_format="{}=...", form_option="form=...")


def choose_policy(policy: PolicyOrPath) -> Policy:
    """Returns the policy, or loads it from its file. Raises BadPolicy or BadUsage."""
    if policy is None or isinstance(policy, Policy):
        return policy or Policy()
    require_path("policy", policy, "a policy")
    from sageaudit.adapters.files import policy_file  # noqa: PLC0415 - it needs boto3

    return policy_file.load_policy(Path(policy))
