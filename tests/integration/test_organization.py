"""A day of an organization: members that join, leave, deny access and are mended."""

from datetime import timedelta

from tests.integration.organization import SMALL, organization, run_organization


def test_what_is_wrong_with_some_members_costs_only_their_own_audits() -> None:
    """Of 13 accounts, one denies Describe, one its role until 14:00; one joins, and one leaves."""
    with organization(SMALL) as org:
        result = run_organization(org, timedelta(hours=6))
        mended, broken = org.broken
        [joined], [left] = org.joining, org.leaving
        assert result.audits_by_account == {account: account != broken for account in org.accounts}
        assert {result.audits_by_account[account] for account in (mended, joined, left)} == {1}
        assert result.waiting_count == 1
        assert result.counts["EventsWaiting"] == 2
        failures = ("AuditFailed", "RejectedEvents", "SweepFailed", "WatchFailed")
        late = ("JobsMissing", "LostEventsFound", "DuplicateEvents")
        assert {name: result.counts[name] for name in (*failures, *late)} == dict.fromkeys(
            (*failures, *late), 0
        )
        assert result.alarms == {}
        assert result.dead_letter_count == 0
        lines = "\n".join(result.doctor_lines)
        assert "and 10 more: ok: its role can be assumed" in lines
        assert f"member {broken} in us-east-1: failed: not permitted: " in lines
        assert "1 event will be audited when it can be read" in lines
        assert f"member {left} in us-east-1: failed: gone: its last event arrived at" in lines
        assert f"1 member cannot be read, since 2026-05-21: {broken} in us-east-1" in result.digest
