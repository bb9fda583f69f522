from __future__ import annotations

import tomllib
from datetime import date
from decimal import Decimal

import pytest

from sageaudit.domain.policy import Policy, parse
from sageaudit.errors import BadPolicy

RULES = {
    "gpu-underused": {
        "mean_below": "percent of one GPU",
        "headroom_percent": "percent above P99.5",
    },
    "spot-not-used": {"from_s": "seconds"},
}

EXEMPT = '[[exempt]]\nrule = "gpu-underused"\nby = "a"\nreason = "b"\n'


def read(text: str) -> Policy:
    """The policy of a TOML text."""
    return parse(tomllib.loads(text), RULES)


def test_an_empty_policy_is_the_default() -> None:
    """But for its version, which names the text."""
    policy = read("")
    assert (policy.mode, policy.floor_usd) == ("tell", 5)
    assert (policy.severity.high_usd, policy.severity.medium_usd) == (100, 10)
    assert (policy.rules_off, policy.accounts) == (frozenset(), {})


def test_a_whole_policy_is_read() -> None:
    """Every table of it."""
    policy = read("""
        mode = "observe"
        floor_usd = 2.5
        owner_tags = ["squad"]
        family_tag = "model"
        [accounts]
        222233334444 = "arn:aws:iam::222233334444:role/sageaudit-read"
        [mentions]
        vision = "S0123456789"
        [severity]
        high_usd = 50
        medium_usd = 5
        [rules]
        off = ["spot-not-used"]
        [rules.gpu-underused]
        mean_below = 30
        [[exempt]]
        rule = "gpu-underused"
        family = "training/x"
        by = "ana"
        until = 2027-01-31
        reason = "release week"
    """)
    assert (policy.mode, policy.floor_usd, policy.family_tag) == (
        "observe",
        Decimal("2.5"),
        "model",
    )
    assert policy.accounts == {"222233334444": "arn:aws:iam::222233334444:role/sageaudit-read"}
    assert policy.rules_off == {"spot-not-used"}
    assert policy.thresholds == {"gpu-underused": {"mean_below": 30.0}}
    [row] = policy.exemptions
    assert (row.rule, row.family, row.exemption.by) == ("gpu-underused", "training/x", "ana")
    assert row.exemption.until == date(2027, 1, 31)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('mood = "tell"', "mood"),
        ('mode = "shout"', "mode"),
        ("mode = 5", "mode is not a string"),
        ("floor_usd = -1", "floor_usd"),
        ('floor_usd = "much"', "floor_usd"),
        ('floor_usd = "5"', "floor_usd is not an amount in USD: a number of 0 or more, without"),
        ("floor_usd = 1e13", "floor_usd"),
        (f"floor_usd = 0x{'f' * 5000}", "floor_usd"),
        ("severity = 5", "severity is not a table"),
        ("exempt = 5", "exempt is not an array"),
        ("[discounts]\nsavings_plan = 1", "discounts.savings_plan is not a boolean"),
        ("floor_usd = nan", "floor_usd"),
        ("floor_usd = inf", "floor_usd"),
        ("floor_usd = true", "floor_usd"),
        ("floor_usd = []", "floor_usd"),
        ('owner_tags = "owner"', "owner_tags"),
        ("owner_tags = [5]", "owner_tags"),
        ('owner_tags = [""]', "owner_tags"),
        ("family_tag = 5", "family_tag"),
        ("accounts = []", "accounts"),
        ('[accounts]\n12 = "arn:aws:iam::222233334444:role/r"', "accounts.12"),
        ('[accounts]\n222233334444 = "role"', "accounts.222233334444"),
        ("[accounts]\n222233334444 = 5", "accounts.222233334444"),
        ('[mentions]\nvision = "@channel"', "mentions.vision"),
        ("[severity]\nhigh = 5", "severity.high"),
        ("[severity]\nhigh_usd = 5", "severity.medium_usd"),
        ('[rules]\noff = ["gpu-idle"]', "gpu-idle"),
        ('[rules]\noff = "gpu-underused"', "rules.off"),
        ("[rules.gpu-idle]\nmean_below = 5", "gpu-idle"),
        ("[rules.gpu-underused]\nmean_bellow = 5", "mean_bellow"),
        ("[rules.gpu-underused]\nmean_below = -5", "rules.gpu-underused.mean_below"),
        ("[rules.gpu-underused]\nmean_below = nan", "rules.gpu-underused.mean_below"),
        ("[rules.gpu-underused]\nmean_below = true", "rules.gpu-underused.mean_below"),
        ('[rules.gpu-underused]\nmean_below = "5"', "rules.gpu-underused.mean_below"),
        (
            "[rules.gpu-underused]\nmean_below = 1000",
            "mean_below is above 100: it is in percent of",
        ),
        (f"[rules.gpu-underused]\nmean_below = 0x{'f' * 500}", "rules.gpu-underused.mean_below"),
        (f"[rules.gpu-underused]\nodd = 0x{'f' * 500}", "rules.gpu-underused.odd"),
        (f"odd = 0x{'f' * 5000}", "unknown key odd"),
        ('[rules]\ngpu-underused = "off"', "rules.gpu-underused"),
        ('[exempt]\nrule = "gpu-underused"', "exempt"),
        ('[[exempt]]\nrule = "gpu-underused"', "exempt[0]"),
        ('[[exempt]]\nrule = "gpu-idle"\nby = "a"\nreason = "b"', "gpu-idle"),
        (EXEMPT + 'until = "soon"', "until"),
        (EXEMPT + 'for = "x"', "for"),
        ('[[exempt]]\nrule = "gpu-underused"\nby = "a"\nreason = ""', "exempt[0]"),
        (EXEMPT + "until = 2027-01-31T00:00:00", "exempt[0].until"),
    ],
)
def test_a_mistake_is_refused_and_named(text: str, named: str) -> None:
    """A typing mistake never switches something off unseen."""
    with pytest.raises(BadPolicy) as caught:
        read(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_share_of_a_whole_ends_at_100() -> None:
    """Seconds, and a headroom above the peak, may be more."""
    policy = read(
        "[rules.spot-not-used]\nfrom_s = 7200\n"
        "[rules.gpu-underused]\nmean_below = 100\nheadroom_percent = 150"
    )
    assert policy.thresholds["gpu-underused"] == {"mean_below": 100, "headroom_percent": 150}
    assert policy.thresholds["spot-not-used"] == {"from_s": 7200}


def test_the_version_follows_the_content() -> None:
    """The order of keys does not matter, a value does."""
    one, same = read('mode = "tell"\nfloor_usd = 5'), read('floor_usd = 5\nmode = "tell"')
    assert one.version == same.version
    assert one.version != read("floor_usd = 6").version


@pytest.mark.parametrize(
    ("tags", "owner"),
    [
        ({"owner": "ana", "team": "vision"}, "ana"),
        ({"team": "vision"}, "vision"),
        ({"owner": ""}, None),
        ({}, None),
        (
            {"sagemaker:user-profile-arn": "arn:aws:sagemaker:us-east-1:1:user-profile/d-1/ben"},
            "ben",
        ),
    ],
)
def test_the_owner_is_the_first_tag_that_the_job_carries(
    tags: dict[str, str], owner: str | None
) -> None:
    """An ARN's last part is the person."""
    assert Policy().owner(tags) == owner
