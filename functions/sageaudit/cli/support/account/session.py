"""Opens a boto3 session with the user's own credentials."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from sageaudit.adapters.aws.clients import unanswered
from sageaudit.domain.job.ref import REGION
from sageaudit.errors import BadUsage


def open_session(profile: str | None, region: str | None) -> Any:
    """A session for a profile and region, by default those of the AWS settings.

    Its region may be None. Raises NoCredentials, or BadUsage for an invalid region name.
    """
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
    except BotoCoreError as error:
        raise unanswered(error, "AWS's configuration") from error
    name = session.region_name
    if name is not None and not REGION.fullmatch(name):
        raise BadUsage(f"{name!r} is not a region; a region looks like eu-west-1")
    return session
