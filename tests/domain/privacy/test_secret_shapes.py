"""No secret of a shape that public scanners know is shown, whether in a name or in an error."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sageaudit.cli.main import main
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import SageauditError
from sageaudit.token_shapes import is_name, is_tag, redact
from tests.fakes.secret_shapes import SHAPES, Sample, SecretShape
from tests.fakes.sinks import answer_of, sinks, text_fields

SEEDS = range(20)
AROUND = ("{}", "train-{}", "{}.tar", "team/{}", "a:{}")
"""Where a secret stands in a name."""
IN_SENTENCES = ("the job {} does not exist", "--job={}: no", "'{}' is not a name", "x/{}/y")
each_shape = pytest.mark.parametrize(
    "shape", SHAPES, ids=[f"{number} {shape.source}" for number, shape in enumerate(SHAPES)]
)


def samples(shape: SecretShape) -> Iterator[Sample]:
    """Yields some secrets of a shape: a check that only mostly works is found."""
    return map(shape.sample, SEEDS)


@each_shape
def test_no_name_and_no_tag_may_have_a_secret(shape: SecretShape) -> None:
    """Wherever the secret stands in the name."""
    texts = [around.format(sample.text) for sample in samples(shape) for around in AROUND]
    assert not [text for text in texts if is_name(text) or is_tag(text)]


@each_shape
def test_no_error_and_no_log_repeats_a_secret(shape: SecretShape) -> None:
    """An error repeats what a person typed, a file has or AWS answered."""
    for sample in samples(shape):
        for sentence in IN_SENTENCES:
            text = sentence.format(sample.text)
            assert not sample.is_in(redact(text))
            assert not sample.is_in(str(SageauditError(text)))


@each_shape
def test_no_field_of_a_job_shows_a_secret(shape: SecretShape) -> None:
    """Channels, metrics, images, buckets, groups, rules, tags: each has the secret."""
    sample = shape.sample()
    texts = dict.fromkeys(text_fields(JobKind.TRAINING), sample.text)
    answer = answer_of(JobKind.TRAINING, texts | {("TrainingJobStatus",): "Failed"})
    tags = dict.fromkeys(("owner", "workload", "project"), sample.text) | {sample.text: "x"}
    shown = sinks(answer, tags)
    assert not [name for name, text in shown.items() if sample.is_in(text)]


@each_shape
def test_no_command_repeats_a_secret(
    shape: SecretShape,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Pasted as a name, an option, a value, a file or into the policy."""
    sample = shape.sample()
    monkeypatch.chdir(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(f"default_to = [{json.dumps(sample.text)}]\n", encoding="utf-8")
    for words in (
        (sample.text,),
        ("history", f"--{sample.text}"),
        ("history", "--kind", sample.text),
        ("show", sample.text, "--history", "no.db"),
        ("top", "--since", sample.text),
        ("check", f"{sample.text}.json"),
        ("notify", "--preview", "job", "--channel", sample.text),
        ("notify", "--preview", "job", "--policy", str(policy)),
    ):
        monkeypatch.setattr("sys.argv", ["sageaudit", *words])
        with pytest.raises(SystemExit) as exited:
            main()
        assert exited.value.code, words
        assert not sample.is_in("".join(capfd.readouterr())), words
