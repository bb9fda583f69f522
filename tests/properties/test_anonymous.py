"""`record --anonymize` keeps dollars and families, and shares no names."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sageaudit.adapters.aws.service_model import instance_types
from sageaudit.adapters.files import recording, recording_file
from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.audit.pseudonyms import Pseudonyms
from sageaudit.domain.job.addresses import (
    AWS_REGISTRIES,
    bucket_name,
    cuda,
    is_data_pinned,
    pytorch,
)
from sageaudit.domain.job.family import family, stem
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.workflows.recordings import run as recorded_audits
from sageaudit.workflows.recordings.jobs import measure_recording
from tests.fakes import recorded
from tests.fakes.sinks import answer_of, text_fields

RULES = frozenset(rule.info.name for rule in catalogue.ruleset().rules)
SALT = b"a salt"
NAMES = Pseudonyms(SALT)
LEAST = 4
"""Shortest length of a name that must not survive."""


def shared(document: dict[str, Any], salt: bytes = SALT) -> dict[str, Any]:
    """Returns the anonymised recording as it is read back."""
    written = recording_file.anonymize(document, salt, RULES, instance_types())
    read: dict[str, Any] = json.loads(recording_file.to_text(written))
    return read


def audit(document: dict[str, Any]) -> Any:
    """Returns the audit of a recording's JSON."""
    read = recording.parse(document)
    return from_json(to_json(recorded_audits.audit_parsed_recording(read, Policy())))


def dollars(audited: Any) -> Any:
    """Returns sums, bill lines and findings, without their texts."""
    keys = ("rule", "severity", "confidence", "bucket", "saving_usd", "saving_range_usd")
    return (
        [audited[key] for key in ("judged", "avoidable_usd", "lost_usd", "possible_usd")],
        [audited["bill"]["total_usd"], *(line["usd"] for line in audited["bill"]["lines"])],
        [[finding[key] for key in keys] for finding in audited["findings"]],
        audited["clear"],
        [row["rule"] for row in audited["not_applicable"]],
        [(row["rule"], row["code"]) for row in audited["unknown"]],
    )


@pytest.mark.parametrize("stem", recorded.stem_params())
def test_every_recorded_job_keeps_its_dollars_and_findings(stem: str) -> None:
    """Each recorded job keeps its dollars, its findings and the other rules' outcomes."""
    document = recording_file.make_document(recording.read(recorded.file(stem)))
    assert dollars(audit(shared(document))) == dollars(audit(document))


_WORD = st.text("aeiouAEIOU0123456789-_. ", min_size=LEAST, max_size=40).filter(
    lambda text: any(char in "aeiouAEIOU" for char in text) and text.strip() == text
)
"""Pseudonyms use consonants from g to z only, so none of these words occurs by chance."""


def named(word: str, kind: JobKind) -> dict[str, Any]:
    """Returns a recording with a word in every text field."""
    answer = answer_of(kind, dict.fromkeys(text_fields(kind), word))
    start = {"start": "2026-05-20T10:00:00Z", "period_s": 60, "values": [1.0, None], "unit": word}
    recorded_as = {
        "schema": 1,
        "account": "111122223333",
        "region": word,
        "as_of": "2026-05-21T10:00:00Z",
        "notes": [word],
        "describe": {**answer, "Derived": {"EntryPoint": f"{word}.py", "Fingerprint": word}},
        "tags": [{"Key": key, "Value": word} for key in (word, "owner", "sageaudit:ignore")],
        "metrics": {
            "absent": {"code": word, "reason": word, "advice": word},
            "notes": [word],
            "series": [
                {"host": f"{word}/algo-1", "metric": "CPUUtilization", **start},
                {"host": f"job/{word}", "metric": word, **start},
            ],
        },
        "prices": {"region": "eu-west-1", "component": "Training", "why": word, "rates": {}},
    }
    return {**recorded_as, "children": [dict(recorded_as)]}


@settings(max_examples=40)
@example("aaaa", JobKind.TRAINING)
@given(_WORD, st.sampled_from(list(JobKind)))
def test_no_name_survives(word: str, kind: JobKind) -> None:
    """No name of data, people, hosts, keys or networks survives in any field, and no free text."""
    assert word not in json.dumps(shared(named(word, kind)), ensure_ascii=False)


def test_the_names_of_job_and_account_do_not_survive() -> None:
    """Neither the job's name nor the account survives, also not in lower-case ARNs."""
    answer = answer_of(JobKind.TRAINING, {})
    text = json.dumps(shared({"schema": 1, "account": "111122223333", "describe": answer}))
    assert not [name for name in (answer["TrainingJobName"], "111122223333") if name in text]


def test_pseudonyms_are_stable_for_a_salt_and_others_for_another() -> None:
    """Pseudonyms are the same for the same salt, and different for another one."""
    document = named("acme", JobKind.TRAINING)
    first, other = shared(document), shared(document, b"another salt")
    assert first == shared(document)
    assert other["describe"]["TrainingJobName"] != first["describe"]["TrainingJobName"]
    assert other["account"] != first["account"]


@pytest.mark.parametrize("path", recorded.files()[::6], ids=lambda path: path.stem)
def test_an_anonymised_recording_is_read_and_anonymised_again_without_a_fault(path: Path) -> None:
    """An anonymised recording can be audited and anonymised like any other."""
    once = shared(recording_file.make_document(recording.read(path)))
    assert once["anonymized"] is True
    assert dollars(audit(shared(once))) == dollars(audit(once))


@given(
    st.sampled_from(["train-vision", "Churn", "xgb-v2", "pipelines-abc"]),
    st.sampled_from(["-2026-05-20-10-11-12-123", "-20260520", "-17", "-9f3a2b1c", ""]),
    st.sampled_from(["-2026-05-21-10-11-12-999", "-18", ""]),
)
def test_two_runs_have_one_family_if_they_had_one_before(
    name: str, first_suffix: str, other: str
) -> None:
    """Two jobs have the same family after anonymisation exactly if they had it before."""
    first, second = f"{name}{first_suffix}", f"{name}{other}"
    same = stem(first) == stem(second)
    assert (stem(NAMES.job(first)) == stem(NAMES.job(second))) == same
    assert (NAMES.job(first) == NAMES.job(second)) == (first == second)


def test_the_runs_of_a_recorded_family_stay_one_family() -> None:
    """Runs of a recorded family stay one family, with anonymised image and script names."""
    families: dict[str, set[str]] = {}
    for path in recorded.files():
        read = recording.read(path)
        if isinstance(read, recording.Recording):
            own = family(measure_recording(read).job)
            anonymised = recording.parse(shared(recording_file.make_document(read)))
            assert isinstance(anonymised, recording.Recording)
            families.setdefault(own, set()).add(family(measure_recording(anonymised).job))
    assert max(map(len, families.values())) == 1
    assert len({name for names in families.values() for name in names}) == len(families)


@pytest.mark.parametrize(
    "image",
    [
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.1.0-gpu-py310-cu121-x",
        "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
    ],
)
def test_the_images_of_aws_stay(image: str) -> None:
    """Images of AWS keep their names, which rules read, unless the job's account owns them."""
    assert NAMES.image(image, "111122223333") == image
    assert NAMES.image(image, image[:12]) != image


@pytest.mark.parametrize(
    "image",
    [
        "111122223333.dkr.ecr.eu-west-1.amazonaws.com/acme/torch:2.1-cu118",
        "111122223333.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.1.0-gpu-py310",
        "registry.acme.example:5000/team/pytorch-thing:1.13-cuda11.7",
        "acme/tensorflow:latest@sha256:0123",
    ],
)
def test_other_images_keep_what_their_names_say_of_the_toolkit(image: str) -> None:
    """Other images keep their CUDA and PyTorch versions, and equal images stay equal."""
    shared_name = NAMES.image(image, "111122223333")
    assert (cuda(shared_name), pytorch(shared_name)) == (cuda(image), pytorch(image))
    assert "acme" not in shared_name
    assert NAMES.image(image, None) == shared_name


def test_an_address_keeps_its_bucket_and_that_it_names_a_version() -> None:
    """An S3 address keeps its bucket's pseudonym and the fact that it names a version."""
    address = NAMES.address("s3://acme-data/?versionId=kept")
    assert bucket_name(address) == NAMES.bucket("acme-data")
    assert is_data_pinned([("train", address)]) is True
    assert NAMES.address("s3://-/") == "s3://-/"


@given(st.text(max_size=20), st.binary(min_size=1, max_size=40))
def test_an_account_is_twelve_digits_that_are_nobodys_image(account: str, salt: bytes) -> None:
    """An account's pseudonym has 12 digits and is never an account of AWS's images."""
    pseudonym = Pseudonyms(salt).account(account)
    assert (len(pseudonym), pseudonym.isdigit()) == (12, True)
    assert pseudonym[:3] not in {account[:3] for account in AWS_REGISTRIES}


def test_an_exemption_stays_in_force_and_its_other_words_do_not() -> None:
    """An exemption tag keeps rules and date; other tag values are replaced."""
    document = {
        "schema": 1,
        "describe": {"TrainingJobName": "x", "TrainingJobStatus": "Failed"},
        "tags": [
            {"Key": "sageaudit:ignore", "Value": "gpu-idle until=2027-01-31"},
            {"Key": "owner", "Value": "Acme 42"},
            {"Key": "acme:team", "Value": ""},
        ],
        "metrics": {"series": []},
    }
    tags = {item["Key"]: item["Value"] for item in shared(document)["tags"]}
    assert tags["sageaudit:ignore"] == "gpu-idle until=2027-01-31"
    assert tags["owner"].startswith("val-")
    assert "acme:team" not in tags
