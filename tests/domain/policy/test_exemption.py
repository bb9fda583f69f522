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


def held(
    tag: str | None = None, *rows: FamilyExemption, may_accept: frozenset[str] | None = None
) -> tuple[dict[str, Exemption], list[str]]:
    """What holds today for a job of family `nightly`."""
    tags = {} if tag is None else {"sageaudit:ignore": tag}
    policy = Policy(exemptions=rows, tags_may_accept=may_accept)
    return exemptions(policy, "nightly", tags, KNOWN, TODAY)


EXEMPT = Exemption("ana", None, "release week")


def row(family: str | None, until: date | None) -> FamilyExemption:
    """The policy accepts gpu-underused."""
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
    """Or for its run."""
    accepted = Exemption("tag", until, "tag sageaudit:ignore")
    assert held(tag) == (dict.fromkeys(rules, accepted), [])


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
    """What cannot be read exempts nothing."""
    accepted, [warning] = held(tag)
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
    """Until its day, or for good."""
    assert ("gpu-underused" in held(None, accepted)[0]) is holds


def test_the_policys_reason_stands_where_both_exempt() -> None:
    """It was reviewed."""
    accepted, _ = held("gpu-underused until=2026-12-01", row("nightly", None))
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
    """The tag holds for the others, and the audit says so."""
    allowed = None if may_accept is None else frozenset(may_accept)
    result, [warning] = held(f"{rule} {accepted}", may_accept=allowed)
    assert set(result) == {accepted}
    assert f"ignored for {rule}:" in warning
    assert "tags.may_accept" in warning
    assert held("gpu-underused", may_accept=frozenset())[0] == {}


def test_what_the_policy_accepts_needs_no_tag() -> None:
    """So the tag is not refused for it."""
    row = FamilyExemption("failed-spend", None, EXEMPT)
    assert held("failed-spend", row) == ({"failed-spend": EXEMPT}, [])
