"""Owner and cost tags that begin with a sign are read, and are inert in every view."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RunQuery
from sageaudit.output.text import plain, slack, teams
from tests.fakes.command_line import Run
from tests.fakes.jobs import training_answer
from tests.fakes.messages import document_card, first_decision, open_advice

OWNERS = ("@ml-platform", "+49 30 1234567", "=1+1", "-ops", "@channel", "/teams/vision", ".x")


def audited(run: Run, folder: Path, owner: str) -> tuple[AuditDocument, Path]:
    """Returns the document of a job with this owner and cost tag. The history has its audit."""
    recording, history, policy = (folder / name for name in ("r.json", "h.db", "p.toml"))
    tags = [{"Key": "owner", "Value": owner}, {"Key": "team", "Value": owner}]
    written = {"describe": training_answer(), "tags": tags, "metrics": {"series": []}}
    recording.write_text(json.dumps(written), encoding="utf-8")
    policy.write_text('[tags]\nshow = ["team"]\n', encoding="utf-8")
    done = run("scan", "--recordings", recording, "--history", history, "--policy", policy)
    assert done.exit_code == 0, done.stderr
    with SqliteHistory(history, create=False) as stored:
        [head] = stored.runs(RunQuery.for_owner(owner))
        document = stored.audit(head.key)
    assert document is not None
    return document, history


@pytest.mark.parametrize("owner", OWNERS)
def test_a_sign_before_a_name_is_a_part_of_it(run: Run, tmp_path: Path, owner: str) -> None:
    """The audit, its columns and filters have it; a spreadsheet gets an apostrophe."""
    document, history = audited(run, tmp_path, owner)
    assert (document["job"]["owner"], document["job"]["tags"]) == (owner, {"team": owner})
    arguments = ("history", "--since", "9999d", "--history", history, f"--owner={owner}")
    [row] = json.loads(run(*arguments, "--output", "json").stdout)["rows"]
    assert row["owner"] == owner
    [_, cells] = csv.reader(io.StringIO(run(*arguments, "--output", "csv").stdout))
    formula = owner[0] in "=+-@"
    assert (f"'{owner}" if formula else owner) in cells
    assert formula is not (owner in cells)
    assert owner in run("show", document["job"]["name"], "--history", history).stdout


@pytest.mark.parametrize("owner", OWNERS)
def test_no_channel_takes_it_for_a_mention(run: Run, tmp_path: Path, owner: str) -> None:
    """Slack shows another at sign; Teams and SNS have no mentions or formulas in a text."""
    document, _ = audited(run, tmp_path, owner)
    card = document_card(document, first_decision(recommendation=open_advice()))
    in_slack = json.dumps(slack.make_payload(card), ensure_ascii=False)
    assert "@" not in in_slack.replace("<!date", "")
    assert owner.replace("@", "＠") in in_slack
    assert owner in "\n".join(teams.text_lines(teams.make_payload(card)))
    assert owner in plain.make_payload(card)["message"]
    for payload, check in (
        (slack.make_payload(card), slack.check_payload),
        (plain.make_payload(card), plain.check_payload),
    ):
        check(payload)


def test_a_page_has_it_as_text(run: Run, tmp_path: Path) -> None:
    """The page is a report of the history."""
    _, history = audited(run, tmp_path, "=1+1@ops")
    page = tmp_path / "page.html"
    done: Any = run("report", "--history", history, "--since", "9999d", "--output", page)
    assert done.exit_code == 0, done.stderr
    assert "=1+1@ops" in page.read_text("utf-8")


def test_a_value_with_the_form_of_a_secret_is_not_read_and_the_audit_says_so(
    run: Run, tmp_path: Path
) -> None:
    """It is neither shown nor stored, and the audit has a note about it."""
    secret = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
    written = {
        "describe": training_answer(),
        "tags": [{"Key": "owner", "Value": secret}],
        "metrics": {"series": []},
    }
    file = tmp_path / "r.json"
    file.write_text(json.dumps(written), encoding="utf-8")
    done = run("audit", "--recording", file, "--output", "json")
    document = json.loads(done.stdout)
    assert document["job"]["owner"] is None
    assert (
        "tags: the value of owner was not read: it looks like a secret"
        in document["audit"]["coverage"]["missing"]
    )
    assert secret not in done.stdout
