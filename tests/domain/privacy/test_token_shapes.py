import time

import pytest

from sageaudit.token_shapes import REDACTED, is_name, is_tag, redact, safe_name

# Put together here so that no scanner takes this file for a leak.
_MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
TOKENS = [
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "ghp" + "_" + _MIXED,
    "github_pat" + "_" + _MIXED,
    "hf" + "_" + _MIXED,
    "xoxb" + "-123456789012-" + _MIXED,
    "sk" + "-proj-" + _MIXED,
    "sk" + "_live_" + _MIXED,
    "glpat" + "-" + _MIXED,
    "AIza" + "SyD-" + _MIXED,
    "eyJhbGciOiJI." + "eyJzdWIiOiIxMjM." + "c2lnbmF0dXJl",
    "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\nabc\n-----END RSA " + "PRIVATE KEY-----",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE, cut off",
]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:6])
def test_a_known_kind_of_token_is_taken_out_of_a_log(token: str) -> None:
    """In any position. No name with a token passes the check."""
    assert redact(f"401 for {token}") == f"401 for {REDACTED}"
    assert safe_name(f"loss {token}") == "withheld"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("POST https://hooks.slack" + ".com/services/T0/B0/XyZ failed", "/services/"),
        ("postgres://bob:s3cr3t@db:5432/x", "s3cr3t"),
        ("GET https://b.s3.amazonaws.com/x?X-Amz-Signature=abc&X-Amz-Date=1", "abc"),
        ("Authorization: Bearer abc.DEF-123", "abc.DEF"),
    ],
)
def test_secrets_are_taken_out_of_an_address(text: str, redacted: str) -> None:
    """Webhooks, passwords and signatures are replaced."""
    assert redacted not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "validation:auc",
        "Test Loss",
        "ganloss/total",
        "ProfilerReport-1645031653",
        "Jörg Müller",
        "Acme 42",
        "ada@example.com",
        "arn:aws:sagemaker:us-east-1:1:automl-job/auto-bank-all-2023",
        "auto-bank-all-20230626-01-43-dpp7-model-ad5717c1b41a4e938702e8a",
        "hf-llama-2024-05-20-10",
        "ddp_train_loss_average_rank0",
        "tfp_negative_log_likelihood",
        "sk_test_accuracy_validation",
        "fm2_ranking_loss_validation",
        "pipelines-abc123def456-TrainModel-a1B2c3D4e5",
        "842a9df0-a299-4625-8f8a-ffca58929650.x",
        "sk-learn-2023-05-06-12-00-00-123",
        "s3://bucket-44ea55c9/classification/input/data.csv",
    ],
)
def test_ordinary_names_are_shown(text: str) -> None:
    """Names of metrics, rules, people, jobs and addresses."""
    assert (is_name(text), redact(text)) == (True, text)


@pytest.mark.parametrize(
    "text",
    [
        "the queue SageAudit-TriggerFinishedJobsDeadLetters1A2B3C4D-AbCdEf12GhIj",
        "Users/Anna/Projects2/sageaudit/recording: cannot be read",
        "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-0f1e2d3c4b5a69780f1e2d3c4b5a6978",
    ],
)
def test_a_log_keeps_names_of_resources_files_and_jobs(text: str) -> None:
    """CloudFormation's suffixes, paths of 40 characters, jobs with a hexadecimal identifier."""
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " x",
        "a\nb",
        "a" * 257,
        "a'b",
        "0f" * 16,
        _MIXED,
        "https://me:pw@x",
        "\u202ex",
        "a\u200bb",
        "".join(chr(ord(char) + 0xFEE0) for char in TOKENS[0]),
    ],
)
def test_other_texts_are_withheld_as_a_whole(text: str) -> None:
    """Lines, quotes, invisible signs, long hexadecimal numbers, random letters."""
    assert safe_name(text) == "withheld"


@pytest.mark.parametrize(
    "text",
    [
        "x@" * 50_000,
        "://" * 30_000,
        "eyJ" * 30_000,
        "A1b/" * 25_000,
        "sk-1" * 25_000,
        "key-a." * 20_000,
        "bearer " * 15_000,
        "-----BEGIN A PRIVATE KEY" * 4_000,
    ],
)
def test_hostile_text_is_read_quickly(text: str) -> None:
    """100 KB of any text that a traceback may quote."""
    begun = time.process_time()
    redact(text)
    is_name(text)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    "text",
    [
        "@ml-platform",
        "+49 30 1234567",
        "=1+1",
        "-ops",
        "/a/b",
        ".x",
        ":",
        "_",
        " spaced ",
        "Jörg",
        "a\u00a0b",
        "\u3000",
        "数据",
        "x" * 256,
    ],
)
def test_a_tag_may_be_whatever_aws_accepts(text: str) -> None:
    """Letters, digits, separators and the signs `_.:/=+-@`, in any position."""
    assert is_tag(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\nb",
        "\ta",
        "a'b",
        '"',
        "<!channel>",
        "x" * 257,
        "\u202ex",
        "a\u200bb",
        "\x1b[0m",
        "@" + TOKENS[0],
        "+" + _MIXED,
        "0f" * 16,
    ],
)
def test_no_tag_has_a_line_a_markup_or_a_token(text: str) -> None:
    """AWS does not accept lines and markup, and tokens are withheld."""
    assert not is_tag(text)
