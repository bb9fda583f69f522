"""Channels and routes: which messages go where, and the errors for invalid ones."""

import tomllib
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.domain.policy.routes import RouteFacts
from sageaudit.errors import BadPolicy
from sageaudit.structs import replace

RULES = {"gpu-underused": {"max_mean_percent": "percent of one GPU"}, "spot-not-used": {}}
CHANNELS = """
[channels.ml]
service = "slack"
[channels.vision-team]
service = "teams"
secret = "vision/teams"
[channels.data]
service = "sns"
topic_arn = "arn:aws:sns:eu-west-1:111122223333:data"
"""
MESSAGE = RouteFacts(
    account="111122223333",
    family="training/x",
    tags={"team": "vision"},
    owner="anna",
    kind="training",
    rule="gpu-underused",
    severity=Severity.MEDIUM,
    usd=Decimal(200),
)


def read(text: str) -> Policy:
    """Returns the policy of a TOML text."""
    return parse(tomllib.loads(text), RULES)


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        ('account = "111122223333"', {"account": "444455556666"}),
        ('account = "111122223333"', {"account": None}),
        ('tag = "team=vision"', {"tags": {"team": "nlp"}}),
        ('tag = "team=vision"', {"tags": {}}),
        ('owner = "anna"', {"owner": None}),
        ('family = "training/x"', {"family": "training/y"}),
        ('kind = "training"', {"kind": "transform"}),
        ('rule = "gpu-underused"', {"rule": "spot-not-used"}),
        ('rule = "gpu-underused"', {"rule": ""}),
        ('min_month_severity = "medium"', {"severity": Severity.LOW}),
        ("min_usd_per_month = 200", {"usd": Decimal("199.99")}),
        ("min_usd_per_month = 200", {"usd": None}),
    ],
)
def test_each_condition_matches_its_messages_and_no_other(
    condition: str, other: dict[str, object]
) -> None:
    """An unknown amount is below every minimum."""
    routes = read(f'{CHANNELS}[[route]]\nto = ["ml"]\n{condition}').routes
    assert routes.destination_for(MESSAGE).channels == ("ml",)
    assert routes.destination_for(
        replace(MESSAGE, severity=Severity.HIGH, usd=Decimal(900))
    ).route_numbers == (1,)
    missed = routes.destination_for(replace(MESSAGE, **other))  # type: ignore[arg-type]
    assert (missed.channels, missed.route_numbers) == (("sns", "vision-team", "data"), ())


def test_all_conditions_of_a_route_must_match_and_all_routes_that_match_apply() -> None:
    """Each channel gets the message once."""
    routes = read(f"""{CHANNELS}
        [[route]]
        owner = "anna"
        kind = "transform"
        to = ["data"]
        [[route]]
        owner = "anna"
        kind = "training"
        to = ["ml", "vision-team"]
        [[route]]
        min_month_severity = "low"
        to = ["sns", "ml"]
    """).routes
    to = routes.destination_for(MESSAGE)
    assert to.channels == ("ml", "vision-team", "sns")
    assert [str(routes.rows[number - 1]) for number in to.route_numbers] == [
        "owner anna, kind training",
        "min_month_severity low",
    ]


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("", ("sns",)),
        (CHANNELS, ("sns", "ml", "vision-team", "data")),
        (f'{CHANNELS}[[route]]\nowner = "a"\nto = ["ml"]', ("sns", "vision-team", "data")),
        (f'default_to = ["ml"]\n{CHANNELS}', ("ml",)),
        ('[[route]]\nowner = "a"\nto = ["sns"]', ("sns",)),
    ],
)
def test_what_no_route_matches_goes_to_the_default(text: str, default: tuple[str, ...]) -> None:
    """The default is the channels that no route names, unless `default_to` is set."""
    assert read(text).routes.destination_for(MESSAGE).channels == default


def test_a_channel_has_its_address_and_its_max_per_hour() -> None:
    """By default a secret has the name of its channel."""
    channels = read(f"{CHANNELS}[channels.sns]\nservice = 'sns'\nmax_per_hour = 5").channels
    assert channels["ml"].secret == "sageaudit/channel/ml"
    assert channels["vision-team"].secret == "vision/teams"
    assert channels["data"].topic_arn == "arn:aws:sns:eu-west-1:111122223333:data"
    assert (channels["sns"].max_per_hour, channels["ml"].max_per_hour) == (5, 20)
    assert channels["data"].max_per_hour is None
    assert read("").channels["sns"].max_per_hour is None


def test_channels_and_routes_ask_for_a_line_about_each_job() -> None:
    """A channel for all jobs, a route for its own jobs; by default neither does."""
    assert not read(CHANNELS).has_job_lines
    policy = read(
        f"{CHANNELS}every_job = true\n"
        "[[route]]\nowner = 'anna'\nkind = 'training'\nevery_job = true\nto = ['ml', 'data']\n"
        "[[route]]\nowner = 'ben'\nto = ['vision-team']"
    )
    assert policy.job_line_channels(MESSAGE) == ("data", "ml")
    assert policy.job_line_channels(replace(MESSAGE, kind="tuning")) == ("data",)
    assert policy.job_line_channels(replace(MESSAGE, owner="ben")) == ("data",)


def test_the_tag_of_a_route_is_read_and_stored() -> None:
    """As for any other section."""
    assert "squad" in read(f'{CHANNELS}[[route]]\ntag = "squad=a"\nto = ["ml"]').tag_names.values


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[channels.ml]", "channels.ml.service is not one of slack, teams, sns"),
        ("[channels.ml]\nservice = 'slak'", "did you mean slack?"),
        ("[channels.ml]\nservice = 'slack'\nsecrt = 'x'", "unknown key channels.ml.secrt"),
        ("[channels.ml]\nservice = 'slack'\nsecret = 'https://x'", "is not the name of a secret"),
        ("[channels.ml]\nservice = 'slack'\ntopic_arn = 'x'", "unknown key channels.ml.topic_arn"),
        ("[channels.ml]\nservice = 'slack'\nmax_per_hour = 0", "is not a number from 1 on"),
        ("[channels.ml]\nservice = 'slack'\nmax_per_hour = true", "is not"),
        ("[channels.ML]\nservice = 'slack'", "channels.ML is not a channel name"),
        ("[channels.a-1]\nservice = 'slack'", "channels.a-1 is not a channel name"),
        (f"[channels.{'a' * 21}]\nservice = 'slack'", "digits and -, 20 at most"),
        (
            f"{CHANNELS}[channels.b]\nservice = 'slack'\nsecret = 'vision/teams'",
            "channels.b.secret is that of channels.vision-team too",
        ),
        ("[channels.sns]\nservice = 'slack'", "sns is the stack's own topic"),
        ("[channels.a]\nservice = 'sns'", "channels.a.topic_arn is not the ARN"),
        (CHANNELS.replace(":data", ":data.fifo"), "a standard SNS topic"),
        ("[channels.sns]\nservice = 'sns'\nkey_arn = 'alias/x'", "is not the ARN of a KMS key"),
        ("channels = 1", "channels is not a table"),
        (f"{CHANNELS}[[route]]\nto = ['m']\nowner = 'a'", "there is no such channel: did you mean"),
        (f"{CHANNELS}[[route]]\nto = []\nowner = 'a'", "route[1].to names no channel"),
        (f"{CHANNELS}[[route]]\nowner = 'a'", "route[1] needs to, a list of channels"),
        (f"{CHANNELS}every_job = 'yes'", "channels.data.every_job is not a boolean"),
        (
            f"{CHANNELS}[[route]]\nto = ['ml']\nevery_job = true",
            "route[1] needs a condition: account, family",
        ),
        (
            f"{CHANNELS}[[route]]\nto = ['ml']\nmin_month_severity = 'low'\nevery_job = true",
            "route[1].every_job is about jobs, and min_month_severity is not",
        ),
        (f"{CHANNELS}[[route]]\nto = ['ml']", "route[1] needs a condition: account, family"),
        (f"{CHANNELS}[[route]]\nto = ['ml']\nseverty = 'low'", "unknown key route[1].severty"),
        (
            f"{CHANNELS}[[route]]\nto = ['ml']\nmin_month_severity = 'hi'",
            "is not one of high, medium",
        ),
        (f"{CHANNELS}[[route]]\nto = ['ml']\nkind = 'train'", "did you mean training?"),
        (f"{CHANNELS}[[route]]\nto = ['ml']\nrule = 'gpu-underusd'", "did you mean gpu-underused?"),
        (f"{CHANNELS}[[route]]\nto = ['ml']\ntag = 'team'", 'is not written "key=value"'),
        (f"{CHANNELS}[[route]]\nto = ['ml']\naccount = '1'", "is not an account id of 12 digits"),
        ("default_to = ['ml']", "default_to names 'ml': there is no such channel"),
        (
            "".join(f"[channels.a{'b' * n}]\nservice = 'slack'\n" for n in range(20)),
            "16 at most, because the environment of a Lambda function names each channel's queue",
        ),
        (CHANNELS + "[[route]]\nto = ['ml']\nowner = 'a'\n" * 90, "the routes name channels 9"),
    ],
)
def test_an_invalid_channel_or_route_is_refused(text: str, reason: str) -> None:
    """In one sentence with the section, the key and a similar name."""
    with pytest.raises(BadPolicy) as refused:
        read(text)
    assert reason in str(refused.value)
