"""Writes the report of the GitHub Action (`action.yml`) as one comment, and updates it later.

Needs only the standard library. A token that may not write, as in a pull request from a fork, is
a notice and no failure.

    REPORT=report.md TITLE="SageMaker cost check" PULL_REQUEST=7 GITHUB_TOKEN=... \
        GITHUB_REPOSITORY=owner/name python tools/pull_request_comment.py
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

_PER_PAGE = 100
_MAX_PAGES = 100
_TIMEOUT_S = 30
_MAX_CHARACTERS = 65_536
"""The most characters of a comment. The report is shorter, but a title may be long."""


def main() -> None:
    """Updates the comment, or writes a new one if there are files to report on."""
    title, number = os.environ["TITLE"], int(os.environ["PULL_REQUEST"])
    digest = hashlib.sha256(title.encode()).hexdigest()[:12]
    marker = f"<!-- sageaudit {digest} -->"
    report = Path(os.environ["REPORT"]).read_text(encoding="utf-8")
    body = f"{marker}\n## {title}\n\n{report}"[:_MAX_CHARACTERS]
    comments_path = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{number}/comments"
    try:
        own_login = _own_login()
        comment = next(
            (row for row in _comments(comments_path) if _is_own(row, marker, own_login)), None
        )
        if comment is not None:
            path = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{comment['id']}"
            _call("PATCH", path, {"body": body})
            print("The comment has been updated.")
        elif os.environ.get("FILES") != "0":
            _call("POST", comments_path, {"body": body})
            print("A comment has been written.")
    except urllib.error.HTTPError as error:
        reason = f"GitHub answered {error.code} ({error.reason})"
        if error.code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            reason = (
                f"the token may not do it ({error.code}): the workflow needs the permission"
                " pull-requests: write, which a pull request from a fork does not have"
            )
        _print_not_written(reason)
    except (HTTPException, OSError, ValueError) as error:
        _print_not_written(str(error))


def _print_not_written(reason: str) -> None:
    text = reason.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::notice title=sageaudit::No comment was written: {text}. The job's summary has it.")


def _own_login() -> str | None:
    """Returns the user of a personal token; None for the token of a workflow or app."""
    try:
        user = _call("GET", "/user")
    except urllib.error.HTTPError:
        return None
    return str(user["login"])


def _is_own(comment: dict[str, Any], marker: str, own_login: str | None) -> bool:
    """Returns whether this action wrote the comment: other people may quote its marker."""
    user = comment.get("user") or {}
    is_author = user.get("login") == own_login if own_login else user.get("type") == "Bot"
    return is_author and str(comment.get("body") or "").startswith(marker)


def _comments(path: str) -> Iterator[dict[str, Any]]:
    for page in range(1, _MAX_PAGES + 1):
        comments = _call("GET", f"{path}?per_page={_PER_PAGE}&page={page}")
        yield from comments
        if len(comments) < _PER_PAGE:
            return


def _call(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    api = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    request = urllib.request.Request(  # noqa: S310 - the URL of GitHub's runner
        f"{api}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the same
        return json.load(answer)


if __name__ == "__main__":
    main()
