"""The JSON Schema of policy.toml, for editors and for docs/policy.md.

Defaults, words and limits are those of the code; the descriptions are written here. A test compares
the keys with those that the reader of a policy knows.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, get_args

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.fields import StoredAs
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction
from sageaudit.domain.job.settings import SETTINGS, Setting
from sageaudit.domain.policy.budgets import MAX_NAME_LENGTH
from sageaudit.domain.policy.policy import Mode, Policy
from sageaudit.domain.policy.routes import MAX_CHANNELS, Service
from sageaudit.domain.policy.scope import (
    DAYS,
    MAX_IDLE_MINUTES,
    MEMBER_ROLE,
    MIN_IDLE_MINUTES,
    OFF,
    WHOLE_ORGANIZATION,
    DigestSchedule,
    WatchSettings,
)
from sageaudit.domain.policy.table_reader import MAX_NUMBER
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule, Threshold
from tools.pages.schema_of_types import Schema

_ACCOUNT = {"type": "string", "pattern": "^[0-9]{12}$"}
_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_DEFAULT = Policy()
_COMPARISON = {"type": "string", "pattern": "^(==|!=|<=|>=|<|>) *[0-9]"}
_IS_SET = {"enum": ["set", "not set"]}


def policy() -> Schema:
    """Returns the schema of the whole file."""
    names = {"$ref": "#/$defs/RuleName"}
    rules, require = {"$ref": "#/$defs/Rules"}, {"$ref": "#/$defs/Require"}
    return _table(
        "The settings of a deployment: what it reports, to whom, and how rules judge.",
        {
            "mode": _key(
                '"notify" sends messages; "observe" stores every audit and sends none.',
                {"enum": list(get_args(Mode))},
                _DEFAULT.mode,
            ),
            "floor_usd": _amount(
                "USD. A family gets its first message when its avoidable and lost dollars of 30"
                " days reach this.",
                _DEFAULT.floor_usd,
            ),
            "trial_floor_usd": _amount(
                "USD. The same for possible savings, which only a trial run can prove.",
                _DEFAULT.trial_floor_usd,
            ),
            "cost_spike_percent": _amount(
                "Percent. A run is a cost spike if it costs at least this much more than the median"
                " of its family's earlier runs, and cost_spike_min_usd more.",
                _DEFAULT.cost_spike_percent,
            ),
            "cost_spike_min_usd": _amount(
                "USD. A cost spike costs at least this much more than the median.",
                _DEFAULT.cost_spike_min_usd,
            ),
            "owner_tags": _key(
                "The owner of a job is the value of the first of these tags that the job has.",
                _TEXTS,
                list(_DEFAULT.owner_tags),
            ),
            "family_tag": _key("Jobs with the same value of this tag are one family.", _TEXT),
            "regions": _key(
                "Further regions to audit; the stack's own region is always audited.",
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)+-[0-9]"},
                },
            ),
            "default_to": _key(
                "Channels for messages that match no route. Default: every channel that no"
                " route names.",
                _TEXTS,
            ),
            "accounts": _accounts(),
            "watch": _watch(),
            "digest": _digest(),
            "channels": _channels(),
            "route": _rows(
                "Sends matching messages to channels. All conditions must match.", _route(names)
            ),
            "budget": _rows(
                "USD a month (UTC) for some jobs, or for all. Messages come at 80%, at 100%, and if"
                " the projection exceeds it. At most one of family, owner, tag and account.",
                _budget(),
            ),
            "mentions": _table(
                "The people or groups that Slack messages mention, by the owner of the job.",
                other_keys=_key(
                    "The id of a Slack user or group: S0123456789.",
                    {"title": "OWNER", "type": "string", "pattern": "^[UWS][A-Z0-9]{6,}$"},
                ),
            ),
            "severity": _severity(),
            "rules": rules,
            "require": require,
            "for": _rows(
                "Settings for some jobs only. All conditions must match; later sections win.",
                _table(
                    "",
                    {
                        **_conditions(),
                        "rules": {"description": "As in `[rules]`.", **rules},
                        "require": {"description": "As in `[require]`.", **require},
                    },
                ),
            ),
            "tags": _tags(names),
            "objectives": _table(
                "Whether a higher or lower value of a metric is better, if no tuning job says so.",
                other_keys=_key(
                    "The direction.",
                    {"title": "METRIC", "enum": [way.value for way in Direction]},
                ),
            ),
            "commitment": _table(
                "Settings of the rule commitment-candidate.",
                {"usd_per_hour": _amount("USD per hour that a Savings Plan would commit to.")},
            ),
            "exempt": _rows(
                "Accepts findings: they stay visible, but are in no sum.", _exempt(names)
            ),
            "discounts": _discounts(),
        },
        **{"$defs": _definitions()},
    )


def _definitions() -> Schema:
    """Returns the definitions that several tables refer to."""
    rules, names = catalogue.load(), {"$ref": "#/$defs/RuleName"}
    return {
        "RuleName": {"enum": [rule.info.name for rule in rules]},
        "Rules": _rules(rules, names),
        "Require": _required(),
    }


def _key(description: str, shape: Schema, default: Any = None) -> Schema:
    """Returns the schema of one key. `default` is None if the key has none."""
    value = {} if default is None else {"default": _plain(default)}
    return {"description": description, **shape, **value}


def _amount(description: str, default: Decimal | int | None = None, unit: str = "") -> Schema:
    """Returns the schema of a number of 0 or more."""
    shape = {"type": "number", "minimum": 0, "maximum": MAX_NUMBER}
    return _key(f"{description}{unit}", shape, default)


def _plain(value: Any) -> Any:
    """Returns a number as TOML writes it: without a fraction if it has none."""
    if not isinstance(value, Decimal | float):
        return value
    return int(value) if value == int(value) else float(value)


def _table(
    description: str, keys: Schema | None = None, other_keys: Schema | bool = False, **keywords: Any
) -> Schema:
    """Returns the schema of a table with these keys. `other_keys`: the shape of all other keys."""
    properties = {"properties": keys} if keys else {}
    return {
        "description": description,
        "type": "object",
        **properties,
        "additionalProperties": other_keys,
        **keywords,
    }


def _rows(description: str, row: Schema) -> Schema:
    """Returns the schema of an array of tables."""
    return {"description": description, "type": "array", "items": row}


def _conditions() -> Schema:
    return {
        "family": _key("Jobs of this family, by its full name.", {"type": "string"}),
        "tag": _key("Jobs with this tag, `key=value`.", {"type": "string", "pattern": "^.+=.+$"}),
        "account": _key("Jobs of this account.", _ACCOUNT),
    }


def _accounts() -> Schema:
    role = {
        "title": "ACCOUNT_ID",
        "description": "The ARN of the role to assume in this account.",
        "type": "string",
        "pattern": "^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$",
    }
    return _table(
        "Other accounts to audit.",
        {
            "members": _key(
                "Accounts with the role of infra/member.yaml, or: organization, for every account"
                " of the organization whose events arrive.",
                {"anyOf": [{"type": "array", "items": _ACCOUNT}, {"const": WHOLE_ORGANIZATION}]},
            ),
            "group": _rows(
                "Accounts that are audited only in some regions.",
                _table(
                    "",
                    {
                        "accounts": _key("The accounts.", {"type": "array", "items": _ACCOUNT}),
                        "regions": _key("All regions in which they are audited.", _TEXTS),
                    },
                ),
            ),
            "role": _key(
                "The name of that role, after its path if it has one, such as audit/reader.",
                _TEXT,
                MEMBER_ROLE,
            ),
            "organization": _key(
                "Only accounts of this organization may forward events.",
                {"type": "string", "pattern": "^o-[a-z0-9]{10,32}$"},
            ),
            "external_id": _key(
                "The external id that the roles' trust policies require.",
                {"type": "string", "minLength": 2, "maxLength": 1224},
            ),
        },
        patternProperties={"^[0-9]{12}$": role},
    )


def _watch() -> Schema:
    usual = WatchSettings()
    return _table(
        "Messages about running jobs that are idle, run for too long or near their limit.",
        {
            "on": _key("false: no running job is checked.", {"type": "boolean"}, True),
            "usd_per_hour": _amount(
                "USD per hour. Jobs that cost more are checked.", usual.usd_per_hour
            ),
            "gpus_unpriced": _key(
                "Jobs without a price are checked if they have at least this many GPUs.",
                {"type": "integer", "minimum": 0},
                usual.gpus_unpriced,
            ),
            "idle_minutes": _key(
                "A message is sent after this many minutes without work.",
                {"type": "integer", "minimum": MIN_IDLE_MINUTES, "maximum": MAX_IDLE_MINUTES},
                usual.idle_minutes,
            ),
            "longest_times": _key(
                "A message is sent if a job runs this many times as long as the longest finished"
                " run of its family.",
                {"type": "number", "minimum": 1, "maximum": MAX_NUMBER},
                usual.longest_times,
            ),
        },
    )


def _digest() -> Schema:
    usual = DigestSchedule()
    return _table(
        'The weekly digest, about the seven UTC days before it. Off in mode "observe".',
        {
            "day": _key("The day of the week.", {"enum": [*DAYS, OFF]}, usual.day),
            "hour": _key(
                "The hour of the day.", {"type": "integer", "minimum": 0, "maximum": 22}, usual.hour
            ),
            "timezone": _key(
                "The name of a time zone, such as Europe/Berlin.", _TEXT, usual.timezone
            ),
            "report_bucket": _key(
                "A bucket in the stack's account and region. The report of 30 days is written there"
                " under sageaudit/, and the digest has a link to it.",
                {"type": "string", "pattern": "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"},
            ),
        },
    )


def _channels() -> Schema:
    channel = _table(
        "One channel: `[channels.ml-platform]`.",
        {
            "service": _key("The service to which it posts.", {"enum": list(get_args(Service))}),
            "secret": _key(
                "Slack and Teams: the name of the secret with the webhook's address."
                " Default: sageaudit/channel/ and the channel's name.",
                {"type": "string", "pattern": "^[A-Za-z0-9/_+=.@-]{1,512}$"},
            ),
            "topic_arn": _key(
                "SNS: the ARN of a standard topic.",
                {"type": "string", "pattern": "^arn:aws[a-z-]*:sns:"},
            ),
            "key_arn": _key(
                "SNS: the ARN of the topic's KMS key, if it has its own.",
                {"type": "string", "pattern": "^arn:aws[a-z-]*:kms:"},
            ),
            "max_per_hour": _key(
                "Messages above this are held, and one message after the hour sums them up."
                " Default: 20 for Slack and Teams, no limit for SNS.",
                {"type": "integer", "minimum": 1},
            ),
            "every_job": _key(
                "Also one line about each job that ends.", {"type": "boolean"}, False
            ),
        },
        required=["service"],
    )
    return {
        "description": "Channels in addition to the stack's own topic, which is the channel `sns`.",
        "type": "object",
        "propertyNames": {"pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$", "maxLength": 20},
        "maxProperties": MAX_CHANNELS,
        "additionalProperties": channel,
    }


def _route(names: Schema) -> Schema:
    return _table(
        "",
        {
            "to": _key("The channels.", {**_TEXTS, "minItems": 1}),
            **_conditions(),
            "owner": _key("Messages about jobs of this owner.", {"type": "string"}),
            "kind": _key("Messages about this kind of job.", {"enum": [k.value for k in JobKind]}),
            "rule": _key("Messages whose first finding is from this rule.", names),
            "min_month_severity": _key(
                "Messages of at least this severity, by the dollars of a month.",
                {"enum": [level.value for level in Severity]},
            ),
            "min_usd_per_month": _amount("Messages about at least this many USD a month."),
            "every_job": _key(
                "Also one line about each job that the conditions select.",
                {"type": "boolean"},
                False,
            ),
        },
        required=["to"],
    )


def _budget() -> Schema:
    usd = {"type": "number", "minimum": 0.01, "maximum": MAX_NUMBER}
    return _table(
        "",
        {
            "usd_per_month": _key("USD a month. Required.", usd),
            "name": _key(
                "Its name in messages. Default: what it is for.",
                {"type": "string", "maxLength": MAX_NAME_LENGTH},
            ),
            **_conditions(),
            "tag": _key(
                "Jobs with this tag, `key=value`. The key must be in `tags.show`.",
                {"type": "string", "pattern": "^[^=]+=.+$"},
            ),
            "owner": _key("Jobs of this owner.", {"type": "string"}),
            "to": _key("The channels. Default: those of default_to.", {**_TEXTS, "minItems": 1}),
        },
        required=["usd_per_month"],
    )


def _severity() -> Schema:
    limits = _DEFAULT.severity
    return _table(
        "The dollars of a run from which a finding has high or medium severity.",
        {
            "high_usd": _amount("USD of a run.", limits.high_usd),
            "medium_usd": _amount("USD of a run; not above high_usd.", limits.medium_usd),
        },
    )


def _rules(rules: tuple[Rule, ...], names: Schema) -> Schema:
    on_request = ", ".join(rule.info.name for rule in rules if not rule.is_on_by_default)
    return _table(
        "Which rules judge, and their thresholds: a table for each rule.",
        {
            "off": _key("Rules to turn off.", {"type": "array", "items": names}),
            "on": _key(
                f"Rules to turn on that are off by default: {on_request}.",
                {"type": "array", "items": names},
            ),
            **{rule.info.name: _rule(rule) for rule in rules},
        },
    )


def _rule(rule: Rule) -> Schema:
    thresholds = {threshold.key: _threshold(threshold) for threshold in rule.thresholds}
    severity = _key(
        "The severity, instead of the one by dollars.",
        {"enum": [level.value for level in Severity]},
    )
    return _table(rule.title, {**thresholds, "severity": severity})


def _threshold(threshold: Threshold) -> Schema:
    highest = 100 if threshold.unit.startswith("percent of ") else MAX_NUMBER
    return {
        "description": f"{threshold.unit}: {threshold.why}",
        "type": "number",
        "minimum": 0,
        "maximum": highest,
        "default": _plain(threshold.value),
    }


def _required() -> Schema:
    settings = {path: _required_value(setting) for path, setting in SETTINGS.items()}
    text = _key('A text, "!= TEXT", "set" or "not set".', {"title": "NAME", **_TEXT})
    return _table(
        "What every job must have: settings, by their paths in a training request, and tags"
        " (`Tags.NAME`).",
        {
            **settings,
            "Tags": _table("Tags, written without quotes as `Tags.NAME`.", other_keys=text),
            **_nested(settings),
        },
        patternProperties={"^Tags[.]": {**text, "title": "Tags.NAME"}},
    )


def _nested(settings: Schema) -> Schema:
    """Returns the tables that TOML makes of paths without quotes."""
    sections: dict[str, Schema] = {}
    for path, shape in settings.items():
        section, dot, key = path.partition(".")
        if dot:
            sections.setdefault(section, {})[key] = shape
    return {
        section: {"type": "object", "properties": keys, "additionalProperties": False}
        for section, keys in sections.items()
        if section not in settings
    }


def _required_value(setting: Setting) -> Schema:
    if setting.stored_as is StoredAs.FLAG:
        return _key("true or false.", {"type": "boolean"})
    if setting.stored_as in {StoredAs.PRESENCE, StoredAs.ADDRESS}:
        return _key('"set" or "not set".', _IS_SET)
    if setting.stored_as is StoredAs.COUNT:
        shapes = [{"type": "number"}, _COMPARISON, _IS_SET, {"type": "string", "pattern": "^[0-9]"}]
        return _key('A number, "<= 86400", "set" or "not set".', {"anyOf": shapes})
    return _key('A value of AWS, "!= File", "set" or "not set".', {"type": "string"})


def _tags(names: Schema) -> Schema:
    return _table(
        "Tags of jobs.",
        {
            "show": _key(
                "Cost tags that are columns and filters of the history. Their values are stored.",
                {**_TEXTS, "maxItems": 3},
            ),
            "may_accept": _key(
                "Rules whose findings a job's own tag sageaudit:ignore may accept. Default: all but"
                " those that report lost dollars.",
                {"type": "array", "items": names},
            ),
        },
    )


def _exempt(names: Schema) -> Schema:
    return _table(
        "",
        {
            "rule": _key("The rule.", names),
            "family": _key("The family; without it, every family.", {"type": "string"}),
            "by": _key("Who decided.", _TEXT),
            "reason": _key("Why.", _TEXT),
            "until": _key("The last day: 2027-01-31.", {"type": "string", "format": "date"}),
        },
        required=["rule", "by", "reason"],
    )


def _discounts() -> Schema:
    percent = _key(
        "Percent off the list price, by component (Training) or instance family (g5).",
        {"title": "NAME", "type": "number", "minimum": 0, "exclusiveMaximum": 100},
    )
    rate = _key(
        "USD per hour of this instance type.",
        {"title": "TYPE", "type": "number", "exclusiveMinimum": 0, "maximum": MAX_NUMBER},
    )
    rates = _table("The rates of a region.", patternProperties={"^ml[.]": rate}, title="REGION")
    return _table(
        "The prices that you pay, instead of list prices.",
        {
            "own_rates": _key(
                "The file that `sageaudit prices learn` writes, relative to the policy's folder.",
                {"type": "string"},
            ),
            "savings_plan": _key(
                "true: you have a Savings Plan. Amounts stay at list price, and say so.",
                {"type": "boolean"},
                False,
            ),
            "percent": _table("Percentages off the list price.", other_keys=percent),
            "rates": _table("Your rates, by region.", other_keys=rates),
        },
    )
