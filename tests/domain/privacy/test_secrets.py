"""No secret of a job reaches anything that is stored, posted, printed or logged."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.failure import reason_class
from sageaudit.domain.job.user_values import FREE_TEXTS, user_values
from sageaudit.domain.privacy.ordinary_words import is_ordinary
from sageaudit.domain.privacy.plain_values import is_module, is_plain
from sageaudit.domain.privacy.redact import redact, redacted_pairs
from sageaudit.domain.privacy.secret_names import REDACTED
from sageaudit.output.text.untrusted import terminal
from tests.fakes.leaks import LEAKS, ORDINARY, ORDINARY_OF, TOOLKIT, Leak
from tests.fakes.recorded import everything
from tests.fakes.sinks import failed, sinks

_FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
_MANY = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


def answer_of(leak: Leak) -> dict[str, Any]:
    """The answer whose failure message leaks."""
    pairs = {"HyperParameters": dict(leak.hyperparameters), "Environment": dict(leak.environment)}
    return failed(leak.text, **{key: value for key, value in pairs.items() if value}, **leak.more)


def holding(secret: str, found: dict[str, str]) -> list[str]:
    """The sinks in which a secret can be read, as written, as JSON, or as a terminal shows it."""
    ways = {secret, json.dumps(secret)[1:-1], terminal(secret)}
    return [
        name
        for name, text in found.items()
        if any(way in text or way in terminal(text) for way in ways)
    ]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_a_secret_is_in_no_sink(leak: Leak) -> None:
    """Whatever its shape, its place and its letters."""
    assert holding(leak.secret, sinks(answer_of(leak))) == []


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_what_is_redacted_stays_as_it_is(leak: Leak) -> None:
    """A stored text is redacted once more when its job is judged again."""
    once = redact(leak.text, user_values(answer_of(leak)))
    assert redact(once) == once
    assert REDACTED in once or leak.text == "ok"


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_failure_is_shown_word_by_word(text: str) -> None:
    """Also where hyperparameters, job name and script are in it."""
    answer = failed(
        text,
        HyperParameters={
            "epochs": "10",
            "learning_rate": '"0.1"',
            "batch-size": "32",
            "use_amp": "true",
            "sagemaker_program": '"train.py"',
            "sagemaker_job_name": '"train-vision"',
            "sagemaker_region": '"us-east-1"',
        },
        Environment={"SM_CHANNEL_TRAIN": "/opt/ml/input/data/train", "INSTANCE": "ml.g4dn.xlarge"},
    )
    assert redact(text, user_values(answer)) == text


@pytest.mark.parametrize(("text", "given"), ORDINARY_OF)
def test_ordinary_words_stay_where_they_are_values_too(text: str, given: dict[str, str]) -> None:
    """Words of failure messages, versions, numbers, types, regions, modules and rule names."""
    assert redact(text, user_values(failed(text, HyperParameters=given))) == text


def test_every_recorded_failure_is_shown_word_by_word() -> None:
    """No text that AWS or a container wrote in a recording holds a secret."""
    changed = {
        text: shown
        for item in everything()
        for text in _free_texts(item.recording.describe)
        if (shown := redact(text, user_values(item.recording.describe))) != text
    }
    assert changed == {}


def _free_texts(item: Any, key: str = "") -> Iterator[str]:
    if isinstance(item, dict):
        for name, inner in item.items():
            yield from _free_texts(inner, name)
    elif isinstance(item, list):
        for inner in item:
            yield from _free_texts(inner, key)
    elif isinstance(item, str) and key in FREE_TEXTS:
        yield item


def _values() -> st.SearchStrategy[str]:
    """Secrets: long, or short and mixed, of any printable characters."""
    signs = "!#$%&*+-./:;<=>?@^_~|(){}[]'\"\\ ,"
    long = st.text(string.ascii_letters + string.digits + signs, min_size=12, max_size=40)
    mixed = st.builds(
        lambda a, b, c: f"{a}{b}{c}",
        st.text(string.ascii_lowercase, min_size=3, max_size=6),
        st.integers(10, 9999),
        st.text(string.ascii_letters, min_size=1, max_size=6),
    )
    return st.one_of(
        mixed, long.filter(_is_one), st.text("абвгдеж0123456789", min_size=12).filter(_is_one)
    )


def _is_one(value: str) -> bool:
    letters = [char for char in value if char.isalpha()]
    one = len(letters) >= 6 and value == " ".join(value.split()) and len(set(value)) >= 6
    return one and not (is_plain(value) or is_module(value) or is_ordinary(value))


_KEYS = st.from_regex(r"[a-z]{2,8}(?:[_-][a-z]{2,8}){0,2}", fullmatch=True)
_PLACES = (
    "--{key} {value}",
    "--{key}={value}",
    "{key}: {value}",
    "{{'{key}': '{value}', 'lr': 0.1}}",
    '("{key}", "{value}")',
    "[{key} {value}]",
    "cannot log in with {value} today",
    "x={value}",
    "https://host.example/{value}",
    "<{value}>",
)
_WRITINGS = (
    lambda text: text,
    json.dumps,
    lambda text: json.dumps(json.dumps(text)),
    repr,
    lambda text: "".join(f"%{ord(c):02X}" if ord(c) < 128 else c for c in text),
    lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    lambda text: "".join(f"&#{ord(c)};" for c in text),
    "\u200b".join,
)


@_FEW
@given(_KEYS, _values(), st.sampled_from(_PLACES), st.sampled_from(_WRITINGS), st.booleans())
def test_no_value_of_the_answer_reaches_a_sink(
    key: str, value: str, place: str, writing: Any, environment: bool
) -> None:
    """HyperParameters or Environment x failure message x every sink."""
    text = TOOLKIT.format(place.format(key=key, value=writing(value)), f"--{key} {value}")
    given_by = (
        {"Environment": {key: value}}
        if environment
        else {"HyperParameters": {key: json.dumps(value)}}
    )
    assert holding(value, sinks(failed(text, **given_by))) == []


@_MANY
@given(
    st.dictionaries(_KEYS, _values(), min_size=1, max_size=6),
    st.lists(
        st.tuples(st.sampled_from(_PLACES), st.sampled_from(_WRITINGS)), min_size=1, max_size=4
    ),
)
def test_no_value_of_the_answer_is_left_in_a_text(values: dict[str, str], parts: list[Any]) -> None:
    """Several values, written in several ways, at once."""
    text = ", ".join(
        place.format(key=key, value=writing(value))
        for key, value in values.items()
        for place, writing in parts
    )
    shown = redact(text, user_values({"Environment": values}))
    left = {value for value in values.values() if value in shown or value in terminal(shown)}
    assert left == set()


@_MANY
@given(_values(), st.integers(0, 400))
def test_a_text_cut_anywhere_hides_the_rest_of_its_secret(value: str, length: int) -> None:
    """FailureReason ends after 1,024 characters, wherever that is."""
    text = f"{'a failure that says much ' * 8}login with {value}"[: 211 + length % (len(value) + 2)]
    shown = redact(text, user_values({"Environment": {"k": value}})).partition("login with")[2]
    assert not any(value[:size] in shown for size in range(5, len(value) + 1))


_WORDS = st.sampled_from(
    [
        "RuntimeError:",
        "CUDA",
        "error",
        "at",
        "step",
        "12",
        "of",
        "epoch",
        "3,",
        "loss=0.31",
        "val_loss:",
        "nan",
        "/opt/ml/code/train.py",
        "line",
        "7",
        "batch",
        "size",
        "32",
        "(rank",
        "0)",
        "tensor",
        "shape",
        "[8,",
        "3]",
        "100%",
        "done;",
        "see",
        "s3://bucket/out",
        "max_tokens=512",
        "lr",
        "1e-4",
        "train-vision",
        "ml.g4dn.xlarge",
        "us-east-1",
        "Traceback",
        "KeyError:",
        "'label'",
    ]
)


@_MANY
@given(st.lists(_WORDS, max_size=40).map(" ".join))
def test_a_text_without_secrets_stays_the_same(text: str) -> None:
    """Ordinary words, numbers, names and paths, in any order."""
    answer = failed(text, HyperParameters={"epochs": "3", "lr": "1e-4", "a": "b", "amp": "true"})
    assert redact(text, user_values(answer)) == text


@given(st.text(max_size=300))
def test_any_text_can_be_redacted_once_and_again(text: str) -> None:
    """No text fails, and the second time nothing changes."""
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("CUDA out of memory", "GPU out of memory"),
        ("AccessDenied: s3", "permission error"),
        ("No space left on device", "disk error"),
        ("AlgorithmError: exit code 1", "code error"),
    ],
)
def test_the_reason_is_read_before_its_words_are_hidden(reason: str, word: str) -> None:
    """A value that is the reason's own word takes nothing from the class, nor judged again."""
    job = parse(failed(reason, Environment={"EXPECTED": reason}), {})
    assert (job.failure, reason_class(job)) == (REDACTED, word)
    detail = json.loads(sinks(failed(reason, Environment={"EXPECTED": reason}))["detail"])[0]
    assert reason_class(parse(detail, {})) == word


def test_an_option_is_no_reason() -> None:
    """The command line names what a script handles, not why it failed."""
    text = TOOLKIT.format("ValueError: x", "--on_failure 'out of memory'")
    assert reason_class(parse(failed(text), {})) == "code error"


def test_a_tag_that_is_a_secret_is_stored_by_its_name_only() -> None:
    """Tags are shown as owner and family; a password among them is not."""
    tags = {"team": "vision", "api_key": "tulip", "note": "password=tulip"}
    kept = redacted_pairs(tags)
    assert kept == {"team": "vision", "api_key": REDACTED, "note": f"password={REDACTED}"}
    assert holding("tulip", sinks(failed("x"), tags)) == []


@pytest.mark.parametrize("name", ["owner", "note"])
def test_a_tag_shows_no_value_of_the_job(name: str) -> None:
    """Neither inside it, nor where it is the whole tag and no name."""
    secret = "Tr0ub4dor" + "&3xyz"
    for tag in (f"bob {secret}", secret):
        answer = failed(f"typed {secret}", HyperParameters={"api_thing": secret})
        assert holding(secret, sinks(answer, {name: tag})) == []


def test_a_tag_that_is_a_name_stays_the_owner() -> None:
    """A setting may repeat the team; a password may not."""
    answer = failed("vision-research failed", HyperParameters={"team": "vision-research"})
    job = parse(answer, {"owner": "vision-research"})
    assert (job.tags, job.failure) == ({"owner": "vision-research"}, "vision-research failed")
    secret = failed("x", HyperParameters={"db_password": "swordfish"})
    assert parse(secret, {"owner": "swordfish"}).tags == {"owner": REDACTED}


def test_an_address_that_names_a_version_by_a_value_stays_pinned() -> None:
    """The value goes; that the data does not change stays known."""
    source = {"S3DataSource": {"S3Uri": "s3://bucket/data/v1234/part"}}
    answer = failed(
        "x",
        HyperParameters={"data_version": "v1234"},
        InputDataConfig=[{"ChannelName": "train", "DataSource": source}],
    )
    detail = json.loads(sinks(answer)["detail"])[0]
    assert "v1234" not in json.dumps(detail["InputDataConfig"])
    assert parse(detail, {}).data_pinned is parse(answer, {}).data_pinned is True


@pytest.mark.parametrize("key", ["RuleParameters", "HookParameters", "CollectionParameters"])
def test_parameters_of_rules_and_hooks_are_not_stored(key: str) -> None:
    """At no depth."""
    answer = failed("x", DebugRuleConfigurations=[{"RuleConfigurationName": "r", key: {"a": "b"}}])
    assert key not in sinks(answer)["detail"]


def test_an_address_is_stored_without_what_signs_it() -> None:
    """User and query go; that an object's version is named stays, so that data stays pinned."""
    uri = "s3://bucket/data.csv?versionId=3HL4kqtJlcpXroDTDmJ&X-Amz-Signature=tulip"
    source = {"S3DataSource": {"S3Uri": uri}}
    answer = failed("x", InputDataConfig=[{"ChannelName": "train", "DataSource": source}])
    detail = json.loads(sinks(answer)["detail"])[0]
    kept = detail["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]
    assert kept == "s3://bucket/data.csv?versionId=redacted"
    assert parse(detail, {}).data_pinned is parse(answer, {}).data_pinned is True
