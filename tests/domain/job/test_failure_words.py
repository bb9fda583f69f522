import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.failure_words import Failure, parse_failure

TOOLKIT = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "{}"\nCommand "{}"'


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("AlgorithmError: , exit code: 137", "AlgorithmError, exit code 137: host out of memory"),
        (
            TOOLKIT.format("torch.cuda.OutOfMemoryError: Tried to allocate 2.00 GiB", "python x"),
            "AlgorithmError, ExecuteUserScriptError, OutOfMemoryError, exit code 1, tried to alloc",
        ),
        (
            TOOLKIT.format("KeyError: 'speaker_id'", "python train.py --on_oom 'out of memory'"),
            "AlgorithmError, ExecuteUserScriptError, KeyError, exit code 1: code error",
        ),
        (
            "OSError: [Errno 28] No space left on device: '/tmp/acme'",
            "OSError, errno 28, no space left: disk error",
        ),
        (
            "ClientError: Data download failed:S3 key: s3://acme/x matched no files on s3",
            "ClientError, download of data failed, no file matches the S3 key: data error",
        ),
        (
            "ClientError: API error (404): manifest for acme:1 not found: manifest unknown",
            "ClientError, HTTP 404, image not found: request error",
        ),
        (
            "ClientError: An error occurred (403) when calling the HeadObject operation: Forbidden",
            "ClientError, HeadObject, Forbidden, HTTP 403: permission error",
        ),
        ("ChildFailedError: exitcode  : -9 (pid: 7)", "ChildFailedError, exit code -9: host"),
        ("InternalServerError: We encountered an internal error.", "InternalServerError: AWS err"),
        (
            "CapacityError: Unable to provision requested ML compute capacity.",
            "CapacityError, no c",
        ),
        (
            "RuleEvaluationConditionMet: of the rule Overfit at step 8 resulted in the condition",
            "RuleEvaluationConditionMet, step 8",
        ),
        ("MaxRuntimeInSeconds exceeded", "MaxRuntimeInSeconds"),
        ("Unknown words of somebody", "None"),
        ("", "None"),
    ],
)
def test_only_known_words_of_a_message_are_stored(message: str, stored: str) -> None:
    """What a reader needs first: whose error, which one, and what AWS or the kernel says about
    it.
    """
    assert str(parse_failure(message)).startswith(stored)


_PARTS = st.lists(
    st.sampled_from(
        [
            "AlgorithmError: ",
            "KeyError",
            ", ",
            ": ",
            "exit code 137",
            "ExitCode 1",
            "SIGKILL",
            "exit status 9",
            "CUDA error",
            "out of memory",
            "code error",
            "errno 28",
            "timed out",
            "failed to download data",
            "NaN",
            "HTTP 404",
            "error (503)",
            "AWS error",
            "acme ",
            "no such file",
            "host out of memory",
            "step 8",
            "disk quota",
            "nccl",
            "; ",
            "\n",
        ]
    ),
    max_size=8,
).map("".join)


@given(_PARTS)
def test_stored_words_are_read_back_unchanged(message: str) -> None:
    """So a stored failure is judged like a live one."""
    failure = parse_failure(message)
    assert failure is None or parse_failure(str(failure)) == failure


@given(st.text())
def test_no_other_text_is_stored(text: str) -> None:
    """All words come from the vocabulary, whatever a container writes."""
    failure = parse_failure(text)
    shown = parse_failure(str(failure)) if failure else None
    assert failure == shown
    assert failure is None or isinstance(failure, Failure)


@pytest.mark.parametrize("text", ["a", "exit code ", ": , ", "gpu ", "occurred ("])
def test_a_huge_message_is_read_quickly(text: str) -> None:
    """AWS sends 1,024 characters, but a file may have any number."""
    begun = time.process_time()
    parse_failure(text * 10**5)
    assert time.process_time() - begun < 1


def test_at_most_eight_words_are_stored() -> None:
    """More words would not explain the failure better."""
    failure = parse_failure("KeyError " + " ".join(f"[errno {number}]" for number in range(1, 12)))
    assert failure is not None
    assert failure.words == ("KeyError", *(f"errno {number}" for number in range(1, 8)))
