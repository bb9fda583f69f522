"""No text of a job reaches a sink except those shown by design (`job_fields`).

A sink is anything stored, posted, printed, logged or raised: see `tests/fakes/sinks.py`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.job.describe import parse, sanitize_answer
from sageaudit.domain.job.fields import StoredAs, shown_fields
from sageaudit.domain.job.job_fields import STORED_FIELDS
from sageaudit.domain.job.kinds import JobKind
from tests.fakes import recorded
from tests.fakes.audit_flow import NAME
from tests.fakes.jobs import training_answer
from tests.fakes.lambda_events import CREATED
from tests.fakes.secrets import SECRETS, Secret
from tests.fakes.sinks import Leaf, answer_of, sinks, text_fields

KINDS = list(JobKind)


def holding(text: str, texts: Mapping[str, str]) -> list[str]:
    """Returns the sinks that contain a text, plain or as JSON writes it."""
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return [name for name, sink in texts.items() if any(form in sink for form in forms)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_only_fields_of_the_table_reach_a_sink(kind: JobKind) -> None:
    """Each text field gets its own word: exactly the fields of the table appear in some sink."""
    shown = dict(shown_fields(STORED_FIELDS))
    words = {path: f"quokka{at:04}" for at, path in enumerate(text_fields(kind))}
    forms = {StoredAs.TYPE: "ml.{0}.large", StoredAs.ADDRESS: "s3://{0}/{0}"}
    texts: dict[Leaf, Any] = {
        path: forms.get(shown.get(path, StoredAs.PRESENCE), "{0}").format(word)
        for path, word in words.items()
    }
    texts[(f"{kind.spec.prefix}JobStatus",)] = "Failed"
    found = sinks(answer_of(kind, texts), {}, kind)
    assert {"items", "file", "terminal", "HTML"} <= set(found), "nothing was audited"
    everything = "\n".join(found.values())
    read = {path for path, word in words.items() if word in everything}
    own = {(f"{kind.spec.prefix}JobName",), (f"{kind.spec.prefix}JobArn",)}
    assert read == (words.keys() & shown.keys()) - own
    shared = found["anonymised recording"]
    assert not [path for path, word in words.items() if word in shared]


@pytest.mark.parametrize(
    "secret", SECRETS, ids=lambda secret: f"{secret.place}: {secret.text[:20]!a}"
)
def test_no_secret_reaches_a_sink(secret: Secret) -> None:
    """No secret reaches a sink, whatever its form and place."""
    assert holding(secret.secret, sinks(*placed(secret.place, secret.text))) == []


def placed(place: str, text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the answer of a failed job with a text in one place, and the job's tags."""
    rule = {"RuleConfigurationName": "r", "RuleEvaluationStatus": "IssuesFound"}
    data = {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://bucket/x"}}}
    image = {"TrainingImage": "registry.example.com/team/train:1", "TrainingInputMode": "File"}
    group = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "InstanceGroupName": "g"}
    answers: dict[str, dict[str, Any]] = {
        "failure": {"FailureReason": text},
        "exit message": {"ExitMessage": text},
        "transition": {
            "SecondaryStatusTransitions": [
                {"Status": "Downloading", "StartTime": CREATED, "StatusMessage": text}
            ]
        },
        "details": {"DebugRuleEvaluationStatuses": [{**rule, "StatusDetails": text}]},
        "hyperparameter": {"HyperParameters": {"phrase": text}},
        "hyperparameter name": {"HyperParameters": {text: "1"}},
        "scheduler": {"HyperParameters": {"lr_scheduler": text}},
        "workers": {"HyperParameters": {"num_workers": text}},
        "script": {"HyperParameters": {"sagemaker_program": text}},
        "objective": {"HyperParameters": {"_tuning_objective_metric": text}},
        "environment": {"Environment": {"DB": text}},
        "environment name": {"Environment": {text: "1"}},
        "argument": {"AlgorithmSpecification": {**image, "ContainerArguments": [text]}},
        "rule parameter": {
            "DebugRuleConfigurations": [
                {"RuleConfigurationName": "r", "RuleParameters": {"a": text, text: "b"}}
            ]
        },
        "regex": {
            "AlgorithmSpecification": {
                **image,
                "MetricDefinitions": [{"Name": "loss", "Regex": text}],
            }
        },
        "metric": {
            "AlgorithmSpecification": {
                **image,
                "MetricDefinitions": [{"Name": text, "Regex": "x"}],
            },
            "FinalMetricDataList": [{"MetricName": text, "Value": 0.5}],
            "HyperParameters": {"_tuning_objective_metric": text},
        },
        "s3": {
            "InputDataConfig": [{**data, "DataSource": {"S3DataSource": {"S3Uri": text}}}],
            "CheckpointConfig": {"S3Uri": text},
            "OutputDataConfig": {"S3OutputPath": text},
            "ModelArtifacts": {"S3ModelArtifacts": text},
        },
        "image": {"AlgorithmSpecification": {**image, "TrainingImage": text}},
        "rule": {"DebugRuleEvaluationStatuses": [{**rule, "RuleConfigurationName": text}]},
        "channel": {"InputDataConfig": [{**data, "ChannelName": text}]},
        "group": {"ResourceConfig": {"InstanceGroups": [{**group, "InstanceGroupName": text}]}},
        "parent": {"AutoMLJobArn": text},
        "type": {"ResourceConfig": {**group, "InstanceType": text}},
        "state": {
            "SecondaryStatus": text,
            "ProfilingStatus": text,
            "SecondaryStatusTransitions": [{"Status": text, "StartTime": CREATED}],
        },
        "tag": {},
        "tag name": {},
        "owner": {},
        "family": {},
        "cost tag": {},
    }
    tags = {
        "tag": {"secret": text},
        "tag name": {text: "1"},
        "owner": {"owner": text},
        "family": {"workload": text},
        "cost tag": {"project": text},
    }.get(place, {})
    plain = training_answer(
        TrainingJobName=NAME,
        TrainingJobStatus="Failed",
        SecondaryStatus="Failed",
        FailureReason="AlgorithmError: exit code: 1",
    )
    return plain | answers[place], tags


_TOKENS = st.one_of(
    st.from_regex(r"(AKIA|ASIA)[A-Z2-7]{16}", fullmatch=True),
    st.from_regex(
        r"(gh[po]_|hf_|glpat-|xoxb-|npm_|sk-|sk-proj-|[sp]k_live_)[A-Z0-9]{4}[a-z][0-9][A-Za-z0-9]{16,24}",
        fullmatch=True,
    ),
    st.from_regex(r"eyJ[A-Za-z0-9_-]{20}\.eyJ[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{32}|[0-9a-f]{64}", fullmatch=True),
    # without 40 hexadecimal digits: they may be a commit in an image's tag
    st.from_regex(r"https?://[a-z]{4,9}:[A-Za-z0-9]{8,20}@[a-z]{5}\.com/", fullmatch=True),
)
_FREE = st.text(min_size=6).filter(lambda text: not re.fullmatch(r'[\w .:/+=@%#,()"{}[\]-]+', text))
"""Texts with a character that neither names nor JSON have, such as an emoji or a line break."""
_AROUND = st.sampled_from(["{}", "s3://{}/x", "train-{}", "loss {}", "a/b:{}", "arn:aws:x:{}"])


def test_only_tags_that_the_policy_names_reach_a_sink() -> None:
    """Only tags that the policy names are stored; an anonymised recording has none."""
    tags = {"project": "quokka-one", "note": "quokka-two", "quokka-three": "x"}
    texts = sinks(answer_of(JobKind.TRAINING, {("TrainingJobStatus",): "Failed"}), tags)
    assert {"items", "file", "JSON"} <= {*holding("quokka-one", texts)}
    assert "anonymised recording" not in holding("quokka-one", texts)
    assert holding("quokka-two", texts) == holding("quokka-three", texts) == []


@settings(max_examples=60)
@given(_TOKENS, _AROUND, st.sampled_from(KINDS))
def test_what_looks_like_a_token_is_in_no_sink_whatever_its_field(
    token: str, around: str, kind: JobKind
) -> None:
    """A token in any text or tag, also between other words, reaches no sink."""
    text = around.format(token)
    texts = dict.fromkeys(text_fields(kind), text) | {(f"{kind.spec.prefix}JobStatus",): "Failed"}
    tags = {"owner": text, "workload": text, "project": text, "note": text, text: "x"}
    assert holding(token, sinks(answer_of(kind, texts), tags, kind)) == []


@settings(max_examples=40)
@given(_FREE, st.sampled_from(KINDS))
def test_free_text_is_in_no_sink_and_in_no_error(text: str, kind: JobKind) -> None:
    """Free text reaches no sink or error, also not in fields for numbers, times or booleans."""
    texts = dict.fromkeys(text_fields(kind), text) | {(f"{kind.spec.prefix}JobStatus",): "Failed"}
    assert holding(text, sinks(answer_of(kind, texts), {}, kind)) == []
    assert holding(text, sinks(answer_of(kind, {}, text), {}, kind)) == []


def test_a_sanitised_answer_gives_the_same_job() -> None:
    """A sanitised answer parses to the same job: live, recorded and reaudited jobs are equal."""
    for item in recorded.all_recorded_jobs():
        stored = json.loads(json.dumps(sanitize_answer(item.recording.describe)))
        assert sanitize_answer(stored) == stored, item.file
        assert parse(stored, {}) == parse(item.recording.describe, {}), item.file
