"""Checks files and Python mappings with the installed SDK's model and the packaged prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.aws.service_model import api_model
from sageaudit.adapters.files import request_file, text_file
from sageaudit.adapters.files.git_revision import GitRevision
from sageaudit.adapters.prices import sources
from sageaudit.domain.job.ref import REGION, is_account_id
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import FileFormat, reject_non_request
from sageaudit.errors import BadUsage, MalformedData
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.check.comparison import FileCheck
from sageaudit.workflows.check.document import CheckedFile
from sageaudit.workflows.check.run import RequestChecker, read_family

_NAME_OF_MAPPING = "the request"


def make_checker(
    policy: Policy,
    history: History | None,
    *,
    form: FileFormat | None = None,
    pipeline: str | None = None,
    region: str | None = None,
    account: str | None = None,
    profile: str | None = None,
    with_guides: bool = False,
) -> RequestChecker:
    """Returns a checker for the current time. Raises BadUsage for an invalid region or account.

    `profile`: the AWS profile whose region is used if nothing else names one.
    """
    if region is not None and not REGION.fullmatch(region):
        raise BadUsage(f"{region} is not a region; a region looks like eu-west-1")
    if account is not None and not is_account_id(account):
        raise BadUsage(f"{account} is not an account id, which has 12 digits")
    return RequestChecker(
        policy=policy,
        now=datetime.now(UTC),
        form=form,
        pipeline=pipeline,
        model=api_model(),
        markets=sources.offline_markets(),
        region=region,
        account=account,
        default_region=lambda: open_session(profile, None).region_name,
        read_family=partial(read_family, history) if history else None,
        with_guides=with_guides,
    )


def check_file(checker: RequestChecker, path: str, content: bytes | None = None) -> CheckedFile:
    """Checks all requests of a file. Raises BadUsage if it has none or cannot be read.

    `content`: the file's content at another time; None reads the file.
    """
    with _naming_bad_requests(text_file.display_name(path)):
        request = (
            request_file.read(path, reject_non_request)
            if content is None
            else request_file.parse(path, content, reject_non_request)
        )
        return checker.check_file(request.name, request.document, request.line_numbers)


def check_with_base(checker: RequestChecker, path: str, base: GitRevision | None) -> FileCheck:
    """Checks a file, and compares it with its version in `base`.

    A file that exists only there was removed. Raises HistoryFileError, with which every file would
    fail.
    """
    content = base.content(path) if base and path != text_file.STDIN else None
    name = text_file.display_name(path)
    earlier_document, base_error = None, None
    if base and content is not None:
        try:
            earlier_document = check_file(checker, path, content)
        except BadUsage as error:
            base_error = f"at {base.name}: {str(error).removeprefix(f'{name}: ')}"
    result = FileCheck(
        name, base=earlier_document, base_error=base_error, is_compared=base is not None
    )
    if content is not None and not Path(path).exists():
        return result
    return replace(result, checked=check_file(checker, path))


def check_mapping(checker: RequestChecker, request: Mapping[str, Any]) -> CheckedFile:
    """Checks the requests of a parsed document. Raises BadUsage if it has none."""
    with _naming_bad_requests(_NAME_OF_MAPPING):
        return checker.check_file(_NAME_OF_MAPPING, request, lambda: ({}, ()))


@contextmanager
def _naming_bad_requests(name: str) -> Iterator[None]:
    """Turns what is wrong with a document into BadUsage that names it."""
    try:
        yield
    except MalformedData as error:
        raise BadUsage(f"{name}: {error}") from error
    except RecursionError as error:
        raise BadUsage(f"{name}: {text_file.TOO_DEEPLY_NESTED}") from error
