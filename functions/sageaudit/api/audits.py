"""Audits of recordings, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.recording import parsed
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, Malformed
from sageaudit.workflows.recordings.run import audit_recorded, audit_recording

_Path = str | os.PathLike[str]


def audit(
    recording: _Path | Mapping[str, Any], *, policy: _Path | Policy | None = None
) -> AuditDocument:
    """Audits a recorded job, without a call to AWS.

    `recording` is a file that `sageaudit record` wrote, a Describe* response as the AWS CLI prints
    it, or the parsed JSON of either. `policy` is a policy file; by default that of a new
    installation. Raises BadRecording or BadPolicy, each a SageauditError.
    """
    chosen = policy if isinstance(policy, Policy) else _policy_of(policy)
    if not isinstance(recording, Mapping):
        return audit_recording(Path(recording), chosen)
    try:
        return audit_recorded(parsed(recording), chosen)
    except Malformed as error:
        raise BadRecording(str(error)) from error


def _policy_of(path: _Path | None) -> Policy:
    return Policy() if path is None else policy_file.load(Path(path))
