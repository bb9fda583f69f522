"""Sixty-five secrets in the places and forms in which people leave them.

Tokens are put together here, so that secret scanners do not report this file.
"""

from typing import NamedTuple

_MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
_AWS = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
_KEY_ID = "AKIA" + "IOSFODNN7EXAMPLE"
_HEX = "0f1e2d3c4b5a6978" * 2
_WORD = "swordfish"
_MIX = "hunter2" + "!Trout9"
_PHRASE = "correct horse battery staple"
_JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJhY21lIn0." + "c2lnbmF0dXJl"
_GITHUB, _HF = "ghp" + "_" + _MIXED + "0123456789", "hf" + "_" + _MIXED
_SLACK = "xoxb" + "-1234567890-" + _MIXED
_OPENAI = "sk" + "-proj-" + _MIXED
_PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow" + _MIXED + "\n-----END RSA PRIVATE KEY-----"


class Secret(NamedTuple):
    """A secret. `text` is put into the job's field `place`; `secret` must not appear anywhere."""

    place: str
    text: str
    secret: str


SECRETS = (
    # Texts written by a container, a toolkit or a service.
    Secret("failure", f"AlgorithmError: login failed for admin with {_WORD}", _WORD),
    Secret("failure", f"ClientError: An error occurred (403): key {_KEY_ID} is not valid", _KEY_ID),
    Secret("failure", f'exit code: 1\nCommand "python train.py --pass {_MIX}"', _MIX),
    Secret("failure", f"ValueError: could not parse '{_PHRASE}'", _PHRASE),
    Secret("failure", f"OperationalError: postgres://etl:{_MIX}@db.internal:5432/prod", _MIX),
    Secret("failure", f"KeyError: '{_WORD}'", _WORD),
    Secret("failure", f"{_WORD}Error: exit code 137", _WORD),
    Secret("failure", f"AlgorithmError: {_PEM}", _MIXED),
    Secret("failure", f"requests.exceptions.HTTPError: 401 Authorization: Bearer {_JWT}", _JWT),
    Secret("failure", "wandb: " + " ".join(_HEX), " ".join(_HEX)),
    Secret("failure", f"os.environ: {{'DB': 'p\u200ba\u200bs\u200bs {_WORD}'}}", _WORD),
    Secret("failure", f"No module named '{_WORD}'", _WORD),
    Secret("failure", f"exit code 1: code error; {_WORD}", _WORD),
    Secret("failure", f"not authorized to perform: vault:{_WORD} on resource", _WORD),
    Secret("failure", "CUDA out of memory. Tried to allocate 4111111111111111 GiB", "4111111111"),
    Secret("failure", "exit code 4242424242", "42424242"),
    Secret("exit message", f"Completed: used {_WORD}", _WORD),
    Secret("transition", f"Downloading the training image with {_WORD}", _WORD),
    Secret("transition", f"Insufficient capacity error from EC2, {_OPENAI}", _OPENAI),
    Secret("details", f"RuleEvaluationConditionMet: at step 8 with {_WORD}", _WORD),
    Secret("details", "Evaluation of the rule X at step 4929123456789012 resulted", "49291234"),
    # Settings.
    Secret("hyperparameter", _WORD, _WORD),
    Secret("hyperparameter", f'"{_PHRASE}"', _PHRASE),
    Secret("hyperparameter", f'{{"db": {{"password": "{_MIX}"}}}}', _MIX),
    Secret("hyperparameter", "31415926535", "31415926535"),
    Secret("hyperparameter name", _WORD, _WORD),
    Secret("scheduler", f"cosine_{_WORD}", _WORD),
    Secret("workers", "271828", "271828"),
    Secret("script", f"s3://x:{_MIX}@bucket/train.py", _MIX),
    Secret("script", f"{_GITHUB}.py", _GITHUB),
    Secret("objective", _WORD, _WORD),
    Secret("environment", _AWS, _AWS),
    Secret("environment", f"postgres://etl:{_WORD}@db/prod", _WORD),
    Secret("environment name", _WORD, _WORD),
    Secret("argument", f"--token={_HF}", _HF),
    Secret("argument", _WORD, _WORD),
    Secret("rule parameter", _WORD, _WORD),
    Secret("regex", f"loss=([0-9.]+) {_WORD}", _WORD),
    # Names and addresses.
    Secret("s3", f"s3://{_KEY_ID}:{_AWS}@bucket/data/train", _AWS),
    Secret("s3", f"s3://bucket/data?X-Amz-Signature={_HEX}&X-Amz-Credential={_KEY_ID}", _HEX),
    Secret("s3", f"s3://bucket/exports/{_WORD}/v3/", _WORD),
    Secret("s3", f"https://bucket.s3.amazonaws.com/x?token={_WORD}", _WORD),
    Secret("s3", f"s3://{_HEX}/train", _HEX),
    Secret("image", f"user:{_MIX}@registry.example.com/team/train:1", _MIX),
    Secret("image", f"registry.example.com/team/train@sha256:{_HEX * 2}", _HEX),
    Secret("image", f"registry.example.com/team/train@md5:{_WORD}", _WORD),
    Secret("image", f"111122223333.dkr.ecr.us-east-1.amazonaws.com/train:{_SLACK}", _SLACK),
    Secret("metric", f"loss {_GITHUB}", _GITHUB),
    Secret("metric", _JWT, _JWT),
    Secret("rule", f"LowGPUUtilization-{_OPENAI}", _OPENAI),
    Secret("channel", _HF, _HF),
    Secret("group", f"{_AWS}", _AWS),
    Secret("parent", f"arn:aws:sagemaker:us-east-1:111122223333:automl-job/{_GITHUB}", _GITHUB),
    Secret("type", f"ml.{_WORD}!.large", _WORD),
    Secret("state", _WORD, _WORD),
    # Tags.
    Secret("tag", _WORD, _WORD),
    Secret("tag name", _WORD, _WORD),
    Secret("owner", _KEY_ID, _KEY_ID),
    Secret("owner", "".join(chr(ord(char) + 0xFEE0) for char in _KEY_ID), "ＩＯＳＦＯＤＮＮ"),
    Secret("owner", f"https://ops:{_MIX}@wiki.example.com", _MIX),
    Secret("owner", f"arn:aws:iam::1:user/{_GITHUB}", _GITHUB),
    Secret("family", f"{_SLACK}", _SLACK),
    Secret("cost tag", f"{_SLACK}", _SLACK),
    Secret("cost tag", f"{_WORD}\n{_WORD}", _WORD),
)
