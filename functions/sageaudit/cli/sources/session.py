"""A session with the user's own credentials."""

from __future__ import annotations

import re
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from sageaudit.errors import BadUsage, NoCredentials

_TABLE = re.compile(r"[a-zA-Z0-9_.-]{3,255}\Z")
_REGION = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d+")


def open_session(profile: str | None, region: str | None) -> Any:
    """For a profile and region, by default those of the AWS settings.

    Raises NoCredentials, or BadUsage where the region cannot be one. It may be None.
    """
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
    except BotoCoreError as error:
        raise NoCredentials(f"No usable AWS credentials: {error}") from error
    where = session.region_name
    if where is not None and not _REGION.fullmatch(where):
        raise BadUsage(f"{where!r} is not a region: one reads like eu-west-1")
    return session


def session_of_table(table: str, profile: str | None, region: str | None) -> Any:
    """As `open_session`, for a history's table: its name must be one, and its region known.

    Raises BadUsage where they are not.
    """
    if not _TABLE.match(table):
        raise BadUsage(f"--table {table} cannot be a table's name")
    session = open_session(profile, region)
    if session.region_name is None:
        raise BadUsage("which region is the table in? give --region, or set one for your profile")
    return session
