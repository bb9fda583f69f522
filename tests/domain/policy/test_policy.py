import tomllib
from datetime import date
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.parts import Direction
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.errors import BadPolicy

RULES = {
    "gpu-underused": {
        "max_mean_percent": "percent of one GPU",
        "headroom_percent": "percent above P99.5",
    },
    "spot-not-used": {"min_duration_s": "seconds"},
    "no-owner": {},
}

SECTION = "[[for]]\nfamily = 'x'\n"
EXEMPT = '[[exempt]]\nrule = "gpu-underused"\nby = "a"\nreason = "b"\n'


PLAIN_JOB = ("111122223333", "training/x", {"team": "vision", "data": "a=b"})


def read(text: str) -> Policy:
    """Returns the policy of a TOML text."""
    return parse(tomllib.loads(text), RULES)


def test_an_empty_policy_is_the_default() -> None:
    """Except for its version, which depends on the text."""
    policy = read("")
    assert (policy.mode, policy.floor_usd) == ("notify", 5)
    assert (policy.severity.high_usd, policy.severity.medium_usd) == (100, 10)
    assert (policy.disabled_rules, policy.members) == (frozenset(), MemberAccounts())


def test_a_members_role_may_have_a_path() -> None:
    """As the parameter RolePath of its stack makes it."""
    policy = read('[accounts]\nmembers = ["222233334444"]\nrole = "team/audit/reader"')
    assert policy.members.role_by_account == {"222233334444": "team/audit/reader"}


def test_a_whole_policy_is_read() -> None:
    """It has every table."""
    policy = read("""
        mode = "observe"
        floor_usd = 2.5
        owner_tags = ["squad"]
        family_tag = "model"
        regions = ["eu-west-1", "eu-west-1"]
        [accounts]
        members = ["333344445555"]
        organization = "o-a1b2c3d4e5"
        external_id = "of-sageaudit"
        222233334444 = "arn:aws:iam::222233334444:role/sageaudit-read"
        [mentions]
        vision = "S0123456789"
        [severity]
        high_usd = 50
        medium_usd = 5
        [rules]
        off = ["spot-not-used"]
        on = ["no-owner"]
        [rules.gpu-underused]
        max_mean_percent = 30
        severity = "info"
        [rules.no-owner]
        severity = "high"
        [objectives]
        "validation:dice" = "Maximize"
        [commitment]
        usd_per_hour = 3.5
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
    assert policy.members == MemberAccounts(
        {
            "333344445555": "sageaudit-read",
            "222233334444": "arn:aws:iam::222233334444:role/sageaudit-read",
        },
        "o-a1b2c3d4e5",
        "of-sageaudit",
        ("eu-west-1",),
    )
    assert policy.disabled_rules == {"spot-not-used"}
    assert policy.enabled_rules == {"no-owner"}
    assert policy.thresholds == {"gpu-underused": {"max_mean_percent": 30.0}}
    assert policy.severities == {"gpu-underused": Severity.INFO, "no-owner": Severity.HIGH}
    assert policy.objectives == {"validation:dice": Direction.MAXIMIZE}
    assert policy.commitment_usd_per_hour == Decimal("3.5")
    [row] = policy.exemptions
    assert (row.rule, row.family, row.exemption.by) == ("gpu-underused", "training/x", "ana")
    assert row.exemption.until == date(2027, 1, 31)


def test_every_account_of_an_organization_can_be_a_member() -> None:
    """The role's name is the same in each; an account with another role is listed beside."""
    role = "arn:aws:iam::222233334444:role/audit"
    members = read(f"""
        regions = ["eu-west-1"]
        [accounts]
        members = "organization"
        organization = "o-a1b2c3d4e5"
        role = "reader"
        222233334444 = "{role}"
        [[accounts.group]]
        accounts = ["333344445555", "444455556666"]
        regions = ["ap-south-1", "ap-south-1"]
        [[accounts.group]]
        accounts = ["555566667777"]
        regions = ["us-east-1", "eu-west-1"]
    """).members
    assert members == MemberAccounts(
        {"222233334444": role},
        "o-a1b2c3d4e5",
        regions=("eu-west-1",),
        organization_role="reader",
        regions_by_account={
            "333344445555": ("ap-south-1",),
            "444455556666": ("ap-south-1",),
            "555566667777": ("us-east-1", "eu-west-1"),
        },
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('members = "organization"', "accounts.members needs organization"),
        ('members = "everybody"\norganization = "o-a1b2c3d4e5"', "accounts.members"),
        ('[[accounts.group]]\nregions = ["eu-west-1"]', "accounts is empty"),
        ('[[accounts.group]]\naccounts = ["222233334444"]', "regions is empty"),
        ('[[accounts.group]]\naccounts = ["22"]\nregions = ["eu-west-1"]', "has not 12 digits"),
        (
            '[[accounts.group]]\naccounts = ["222233334444"]\nregions = ["Europe"]',
            "a region looks like eu-west-1",
        ),
        (
            '[[accounts.group]]\naccounts = ["222233334444"]\nregions = ["eu-west-1"]\nrole = "x"',
            "role",
        ),
        (
            '[[accounts.group]]\naccounts = ["222233334444", "222233334444"]\nregions = ["aa-b-1"]',
            "names 222233334444, which is in an earlier group",
        ),
        ("group = []\n222233334444 = 5", "accounts.222233334444"),
    ],
)
def test_members_that_cannot_be_meant_are_named(text: str, problem: str) -> None:
    """The sentence has the key that is wrong."""
    with pytest.raises(BadPolicy) as refused:
        read(f"[accounts]\n{text}")
    assert problem in str(refused.value)


def test_a_cost_tag_is_not_an_owner_unless_the_policy_says_so() -> None:
    """Owner and team are two columns. A tag that the job lacks is None."""
    tags = {"team": "growth", "note": "x"}
    shown = read('[tags]\nshow = ["team", "project"]')
    assert (shown.owner(tags), shown.cost_tags(tags)) == (None, {"team": "growth", "project": None})
    assert {"team", "project", "owner"} <= shown.tag_names.values
    both = read('owner_tags = ["team"]\n[tags]\nshow = ["team"]')
    assert (both.owner(tags), read("").owner(tags), read("").cost_tags(tags)) == (
        "growth",
        "growth",
        {},
    )


@pytest.mark.parametrize(
    ("text", "accepts"),
    [
        ("", None),
        ("[tags]", None),
        ("[tags]\nmay_accept = []", frozenset()),
        ('[tags]\nmay_accept = ["gpu-underused"]', frozenset({"gpu-underused"})),
    ],
)
def test_a_policy_says_what_tags_may_accept(text: str, accepts: frozenset[str] | None) -> None:
    """By default a tag accepts findings that hide no lost dollars. An empty list accepts
    nothing.
    """
    assert read(text).tags_may_accept == accepts


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('mood = "notify"', "mood"),
        ('mode = "shout"', "mode"),
        ("mode = 5", "mode is not a string"),
        ("floor_usd = -1", "floor_usd"),
        ('floor_usd = "much"', "floor_usd"),
        ('floor_usd = "5"', "floor_usd is not an amount in USD: a number of 0 or more, without"),
        ("floor_usd = 1e13", "floor_usd"),
        (f"floor_usd = 0x{'f' * 5000}", "floor_usd"),
        ("severity = 5", "severity is not a table"),
        ("exempt = 5", "exempt is not a list of tables: write [[exempt]]"),
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
        (
            '[accounts]\n222233334444 = "arn:aws:iam::555566667777:role/r"',
            "accounts.222233334444 names a role of another account, 555566667777",
        ),
        ('[accounts]\nmembers = ["12"]', "accounts.members"),
        ('[accounts]\norganization = "acme"', "accounts.organization"),
        ('[accounts]\nexternal_id = "a b"', "accounts.external_id"),
        ('[accounts]\nrole = "a/b c"', "accounts.role"),
        ('[accounts]\nrole = "/a/b"', "accounts.role"),
        ('regions = ["Ireland"]', "regions names 'Ireland'"),
        ('[tags]\nmay_accept = "all"', "tags.may_accept"),
        ('[tags]\nmay_accept = ["gpu-underuse"]', "did you mean gpu-underused?"),
        ('[tags]\nmay_accept = ["SA601"]', "tags.may_accept names 'SA601'"),
        ("[tags]\nmay_hide = []", "tags.may_hide"),
        ('[tags]\nshow = ["a", "b", "c", "d"]', "tags.show names 4 tags: 3 at most"),
        ('[tags]\nshow = ["team", "Team"]', "tags.show names a tag twice"),
        ('[tags]\nshow = ["a,b"]', "tags.show names 'a,b', which no column can be called"),
        ('[tags]\nshow = "team"', "tags.show is not an array"),
        ('[mentions]\nvision = "@channel"', "mentions.vision"),
        ("[severity]\nhigh = 5", "severity.high"),
        ("[severity]\nhigh_usd = 5", "severity.high_usd is below severity.medium_usd"),
        ("[severity]\nmedium_usd = 500", "severity.medium_usd is above severity.high_usd"),
        ('[rules]\noff = "gpu-underused"', "rules.off"),
        (
            '[rules]\noff = ["gpu-underuse"]',
            "rules.off names 'gpu-underuse': there is no such rule: did you mean gpu-underused?",
        ),
        ('[rules]\non = ["gpu-idle"]', "rules.on names 'gpu-idle'"),
        ('[rules]\noff = ["SA202"]', "rules.off names 'SA202': a policy names a rule by its name"),
        (
            "[rules.sa202]\nmax_mean_percent = 5",
            "rules.sa202 cannot be set: a policy names a rule by",
        ),
        (
            '[rules]\non = ["no-owner"]\noff = ["no-owner"]',
            "rules.on names 'no-owner', and so does",
        ),
        ("[rules.gpu-underuse]\nmax_mean_percent = 5", "rules.gpu-underuse cannot be set"),
        ('[rules.no-owner]\nseverity = "hi"', "rules.no-owner.severity is not one of high, medium"),
        ("[rules.no-owner]\nseverity = 1", "rules.no-owner.severity is not a string"),
        (
            "[rules.no-owner]\nmin_duration_s = 1",
            "min_duration_s is not a threshold of this rule; it has severity",
        ),
        ("[for]\nfamily = 'x'", "for is not a list of tables: write [[for]]"),
        ("for = [5]", "for is not a list of tables: write [[for]]"),
        (SECTION + "mean = 5", "for[1].mean"),
        (SECTION + "rules.gpu-idle.mean = 5", "for[1].rules.gpu-idle cannot be set"),
        (
            SECTION + "rules.spot-not-used.min_duration_s = -1",
            "for[1].rules.spot-not-used.min_duration_s",
        ),
        (SECTION + 'rules.on = ["gpu-idle"]', "for[1].rules.on names 'gpu-idle'"),
        (SECTION + "rules = 5", "for[1].rules is not a table"),
        (SECTION, "for[1] has no rules"),
        ('[[for]]\nrules.off = ["no-owner"]', "for[1] needs family, tag or account"),
        ('[[for]]\ntag = "team"\nrules.off = ["no-owner"]', "for[1].tag is not written"),
        ('[[for]]\ntag = "=x"\nrules.off = ["no-owner"]', "for[1].tag is not written"),
        ('[[for]]\naccount = "12"\nrules.off = ["no-owner"]', "for[1].account is not an account"),
        ("[[for]]\naccount = 111122223333", "for[1].account is not a string"),
        ('[objectives]\nloss = "minimize"', "objectives.loss is not one of Maximize, Minimize"),
        ("[objectives]\nloss = []", "objectives.loss is not a string"),
        ('[objectives]\n"a\\nb" = "down"', 'objectives."a\\nb" is not one of'),
        ("[commitment]\nusd_per_hour = -1", "commitment.usd_per_hour is not an amount in USD"),
        ("[commitment]\nrate = 1", "unknown key commitment.rate; known here: usd_per_hour"),
        ("[rules.gpu-underused]\nmean_bellow = 5", "mean_bellow"),
        ("[rules.gpu-underused]\nmax_mean_percent = -5", "rules.gpu-underused.max_mean_percent"),
        ("[rules.gpu-underused]\nmax_mean_percent = nan", "rules.gpu-underused.max_mean_percent"),
        (
            "[rules.gpu-underused]\nmax_mean_percent = 1e13",
            "is not a number from 0 to 1,000,000,000,000",
        ),
        ("[rules.gpu-underused]\nmax_mean_percent = true", "rules.gpu-underused.max_mean_percent"),
        ('[rules.gpu-underused]\nmax_mean_percent = "5"', "rules.gpu-underused.max_mean_percent"),
        (
            "[rules.gpu-underused]\nmax_mean_percent = 1000",
            "max_mean_percent is above 100: it is in percent of",
        ),
        (
            f"[rules.gpu-underused]\nmax_mean_percent = 0x{'f' * 500}",
            "rules.gpu-underused.max_mean_percent",
        ),
        (f"[rules.gpu-underused]\nodd = 0x{'f' * 500}", "rules.gpu-underused.odd"),
        (f"odd = 0x{'f' * 5000}", "unknown key odd"),
        ('[rules]\ngpu-underused = "off"', "rules.gpu-underused"),
        ('[[exempt]]\nrule = "gpu-underused"', "exempt[1]"),
        ('[[exempt]]\nrule = "gpu-idle"\nby = "a"\nreason = "b"', "gpu-idle"),
        (EXEMPT + 'until = "soon"', "until"),
        (EXEMPT + 'for = "x"', "for"),
        ('[[exempt]]\nrule = "gpu-underused"\nby = "a"\nreason = ""', "exempt[1]"),
        (EXEMPT + "until = 2027-01-31T00:00:00", "exempt[1].until"),
    ],
)
def test_a_mistake_is_refused_and_named(text: str, named: str) -> None:
    """A typing mistake never switches anything off unnoticed."""
    with pytest.raises(BadPolicy) as caught:
        read(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("mood = 1", ("mood",)),
        (
            "[rules.gpu-underused]\nmax_mean_percent = -5",
            ("rules", "gpu-underused", "max_mean_percent"),
        ),
        (SECTION + SECTION + "rules.no-owner.x = 1", ("for", 0)),
        (EXEMPT + EXEMPT + "until = 1", ("exempt", 1, "until")),
    ],
)
def test_the_refusal_carries_the_path_of_the_key(text: str, path: tuple[str | int, ...]) -> None:
    """So whoever reads the file can name the line."""
    with pytest.raises(BadPolicy) as caught:
        read(text)
    assert caught.value.key == path


def test_only_a_share_of_a_whole_ends_at_100() -> None:
    """Seconds, and a headroom above the peak, may be more."""
    policy = read(
        "[rules.spot-not-used]\nmin_duration_s = 7200\n"
        "[rules.gpu-underused]\nmax_mean_percent = 100\nheadroom_percent = 150"
    )
    assert policy.thresholds["gpu-underused"] == {"max_mean_percent": 100, "headroom_percent": 150}
    assert policy.thresholds["spot-not-used"] == {"min_duration_s": 7200}


@pytest.mark.parametrize(
    ("names", "held"),
    [
        ('family = "training/x"', True),
        ('family = "training/y"', False),
        ('tag = "team=vision"', True),
        ('tag = "team="', False),
        ('tag = "crew=vision"', False),
        ('account = "111122223333"', True),
        ('account = "222233334444"', False),
        ('family = "training/x"\ntag = "team=vision"\naccount = "111122223333"', True),
        ('family = "training/x"\ntag = "team=speech"\naccount = "111122223333"', False),
        # the first sign of equality parts key and value
        ('tag = "data=a=b"', True),
    ],
)
def test_a_section_applies_to_jobs_that_meet_all_its_conditions(names: str, held: bool) -> None:
    """Family, tag and account must be equal; patterns are not allowed."""
    policy = read(f'[[for]]\n{names}\nrules.off = ["no-owner"]').for_job(*PLAIN_JOB)
    assert (policy.disabled_rules == {"no-owner"}) is held


def test_later_sections_override_earlier_ones() -> None:
    """Thresholds and severities key by key. `on` cancels an `off`, and `off` cancels an `on`."""
    policy = read("""
        [rules]
        off = ["spot-not-used"]
        on = ["no-owner"]
        [rules.gpu-underused]
        max_mean_percent = 30
        headroom_percent = 15
        severity = "low"
        [[for]]
        family = "training/x"
        rules.on = ["spot-not-used"]
        rules.gpu-underused.max_mean_percent = 10
        rules.gpu-underused.severity = "info"
        [[for]]
        account = "111122223333"
        [for.rules]
        off = ["no-owner"]
        [for.rules.gpu-underused]
        max_mean_percent = 5
        [[for]]
        family = "training/y"
        rules.gpu-underused.max_mean_percent = 1
    """)
    held = policy.for_job(*PLAIN_JOB)
    assert held.thresholds == {"gpu-underused": {"max_mean_percent": 5, "headroom_percent": 15}}
    assert held.severities == {"gpu-underused": Severity.INFO}
    assert (held.disabled_rules, held.enabled_rules) == (
        {"no-owner"},
        {"no-owner", "spot-not-used"},
    )
    assert held.for_job(*PLAIN_JOB) == held
    assert held.version == policy.version
    assert policy.for_job(None, "training/z", {}) == policy


def test_the_version_depends_on_the_content() -> None:
    """The order of keys does not matter, a value does. A rule that is on anyway may be listed."""
    one, same = read('mode = "notify"\nfloor_usd = 5'), read('floor_usd = 5\nmode = "notify"')
    assert one.version == same.version
    assert one.version != read("floor_usd = 6").version
    assert read('[rules]\non = ["gpu-underused"]').enabled_rules == {"gpu-underused"}


@pytest.mark.parametrize(
    "text",
    [
        "[channels.ml]\nservice = 'slack'",
        'default_to = ["sns"]',
        "[[route]]\nowner = 'ana'\nto = ['sns']",
        "[digest]\nhour = 9",
        "[mentions]\nana = 'U0123456'",
    ],
)
def test_settings_of_messages_do_not_change_the_version(text: str) -> None:
    """No audit is made again for it, and no figure changes."""
    assert read(text).version == read("").version


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
    """The last part of an ARN is the person."""
    assert Policy().owner(tags) == owner
