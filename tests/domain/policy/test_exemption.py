from datetime import date

import pytest

from sageaudit.domain.bill.finding import Exemption, RuleInfo
from sageaudit.domain.policy.policy import Policy, exemptions
from sageaudit.domain.policy.rule_choices import FamilyExemption

TODAY = date(2026, 11, 20)
RULES = ("gpu-underused", "spot-not-used")
KNOWN = (
    *(RuleInfo(f"SA00{number}", name) for number, name in enumerate(RULES)),
    RuleInfo("SA601", "failed-spend", can_tag_accept=False),
    RuleInfo("SA603", "limit-hit", subsumes=frozenset({"failed-spend"})),
)


def exemptions_today(
    tag: str | None = None, *rows: FamilyExemption, may_accept: frozenset[str] | None = None
) -> tuple[dict[str, Exemption], list[str]]:
    """Returns the exemptions and warnings of today, for a job of family `nightly`."""
    tags = {} if tag is None else {"sageaudit:ignore": tag}
    policy = Policy(exemptions=rows, tags_may_accept=may_accept)
    return exemptions(policy, "nightly", tags, KNOWN, TODAY)


EXEMPT = Exemption("ana", None, "release week")


def row(family: str | None, until: date | None) -> FamilyExemption:
    """Returns an exemption by the policy for gpu-underused."""
    return FamilyExemption("gpu-underused", family, Exemption("ana", until, "release week"))


@pytest.mark.parametrize(
    ("tag", "rules", "until"),
    [
        # the day itself is included; a tag belongs to one job: the next run has its own
        ("gpu-underused spot-not-used until=2026-11-20", RULES, TODAY),
        ("gpu-underused", RULES[:1], None),
        # one that has run out needs no warning
        ("gpu-underused until=2026-11-19", (), None),
    ],
)
def test_a_tag_exempts_the_rules_that_it_names_until_a_day(
    tag: str, rules: tuple[str, ...], until: date | None
) -> None:
    """Without a day, for its run."""
    accepted = Exemption("tag", until, "tag sageaudit:ignore")
    assert exemptions_today(tag) == (dict.fromkeys(rules, accepted), [])


@pytest.mark.parametrize(
    "tag",
    [
        "gpu-underused until=soon",
        "gpu-underused until=2026-13-45",
        "gpu-underused until=",
        "gpu-underused until=2026-12-01 until=2027-12-01",
        "until=2026-12-01",
        "gpu-idle until=2026-12-01",
        "gpu-underused gpu-idle until=2026-12-01",
        "gpu-underused for=2026-12-01",
        "all until=2026-12-01",
        "*",
        "SA000",
        "SA601",
        "GPU-UNDERUSED",
        "",
    ],
)
def test_a_tag_that_cannot_be_read_is_ignored_with_a_warning(tag: str) -> None:
    """It exempts nothing."""
    accepted, [warning] = exemptions_today(tag)
    assert (accepted, "sageaudit:ignore" in warning) == ({}, True)


@pytest.mark.parametrize(
    ("accepted", "holds"),
    [
        (row("nightly", None), True),
        (row(None, None), True),
        (row("weekly", None), False),
        (row("nightly", date(2026, 11, 20)), True),
        (row("nightly", date(2026, 11, 19)), False),
    ],
)
def test_the_policy_exempts_a_family_or_all(accepted: FamilyExemption, holds: bool) -> None:
    """Until its day, or without an end."""
    assert ("gpu-underused" in exemptions_today(None, accepted)[0]) is holds


def test_the_policys_reason_counts_if_both_exempt() -> None:
    """The policy was reviewed."""
    accepted, _ = exemptions_today("gpu-underused until=2026-12-01", row("nightly", None))
    assert accepted["gpu-underused"].by == "ana"


@pytest.mark.parametrize(
    ("may_accept", "rule", "accepted"),
    [
        # a tag hides nothing that was lost, nor by the rule that includes it
        (None, "failed-spend", "gpu-underused"),
        (None, "limit-hit", "gpu-underused"),
        # what the policy lists, and nothing else
        ({"failed-spend"}, "gpu-underused", "failed-spend"),
    ],
)
def test_the_policy_or_the_card_says_what_a_tag_may_accept(
    may_accept: set[str] | None, rule: str, accepted: str
) -> None:
    """The tag applies to the other rules, and the audit has a warning."""
    allowed = None if may_accept is None else frozenset(may_accept)
    result, [warning] = exemptions_today(f"{rule} {accepted}", may_accept=allowed)
    assert set(result) == {accepted}
    assert f"ignored for {rule}:" in warning
    assert "tags.may_accept" in warning
    assert exemptions_today("gpu-underused", may_accept=frozenset())[0] == {}


def test_what_the_policy_accepts_needs_no_tag() -> None:
    """So there is no warning about the tag for it."""
    row = FamilyExemption("failed-spend", None, EXEMPT)
    assert exemptions_today("failed-spend", row) == ({"failed-spend": EXEMPT}, [])
