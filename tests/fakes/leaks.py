"""What an attacker, or a careless script, would try: secrets in failure messages, by their shape.

A leak is a message with one secret and what the same answer says of it. Tokens are put together
here so that no scanner takes this file for a leak.
"""
# ruff: noqa: E501 - one leak a line reads as a table

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PASSWORD = "c0rrect-Horse!" + "battery"
"""Eight characters or more, and mixed."""
SHORT = "hun" + "ter2"
WORD = "swordfish"
"""Letters only: to be found behind its own key, and elsewhere by its length."""
_BASE64 = base64.b64encode(PASSWORD.encode()).decode()
SPACED = "correct horse " + "battery 9"
HEX32, HEX40, HEX64 = "0f1e2d3c4b5a6978" * 2, "0f1e2d3c4b5a69788796" * 2, "0f1e2d3c4b5a6978" * 4
BASE40 = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
BASE88 = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/" + "K1SZFPTOtr/KBHBeksoGMGw=="
)
LETTERS = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
TOOLKIT = (
    'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "{}"\n'
    'Command "/opt/conda/bin/python3.10 train.py --epochs 10 {}", exit code: 1'
)


@dataclass(frozen=True)
class Leak:
    """`secret` must not be read anywhere, when `text` is the failure message of the answer."""

    name: str
    text: str
    secret: str
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the answer."""


def _toolkit(error: str, options: str) -> str:
    return TOOLKIT.format(error, options)


def _known(name: str, text: str, secret: str, key: str = "kms_phrase") -> Leak:
    """A value of a hyperparameter whose key says nothing."""
    return Leak(name, text, secret, {key: json.dumps(secret)})


def _env(name: str, text: str, secret: str, key: str = "DB_LOGIN") -> Leak:
    return Leak(name, text, secret, {}, {key: secret})


_FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})


def full_width(text: str) -> str:
    """The text in the full-width forms of ASCII."""
    return text.translate(_FULL_WIDTH)


def _codes(text: str, form: str) -> str:
    return "".join(form.format(ord(char)) for char in text)


POSITIONS: Sequence[Leak] = (
    # What follows its own flag or key.
    _known("flag and value", _toolkit("boom", f"--kms_phrase {WORD}"), WORD),
    _known("flag with a hyphen", _toolkit("boom", f"--kms-phrase {WORD}"), WORD),
    _known("flag=value", _toolkit("boom", f"--kms_phrase={WORD}"), WORD),
    _known("short word after its flag", "failed: train.py --kms_phrase tulip", "tulip"),
    _known("single hyphen", f"failed: train.py -kms_phrase {WORD}", WORD),
    _known("key: value", f"settings kms_phrase: {WORD} were refused", WORD),
    _known("a dictionary", f"{{'lr': 0.1, 'kms_phrase': '{WORD}'}}", WORD),
    _known("JSON", f'{{"kms_phrase": "{WORD}"}}', WORD),
    _known("JSON in JSON", json.dumps(json.dumps({"kms_phrase": WORD})), WORD),
    _known("JSON in JSON in JSON", json.dumps(json.dumps(json.dumps({"kms_phrase": WORD}))), WORD),
    _known("a value with its JSON quotes", f'--kms_phrase "\\"{WORD}\\""', WORD),
    _known("a tuple", f'("kms_phrase", "{WORD}")', WORD),
    _known("a list of words", f"['train.py', '--kms_phrase', '{WORD}', '--lr', '0.1']", WORD),
    _known("name and value in a list", f"args: [kms_phrase {WORD}]", WORD),
    _known("an argparse namespace", f"Namespace(lr=0.1, kms_phrase='{WORD}', epochs=10)", WORD),
    _known("upper case key", f"KMS_PHRASE={WORD}", WORD),
    _known("the toolkit's variable", f"SM_HP_KMS_PHRASE={WORD}", WORD),
    _known("an arrow", f"kms_phrase -> {WORD}", WORD),
    _known("YAML", f"params:\n  kms_phrase: {WORD}\n  lr: 0.1", WORD),
    _known("name and value objects", f'{{"Name": "kms_phrase", "Value": "{WORD}"}}', WORD),
    _known("nested key", f"conf.db.phrase={WORD}", WORD, key="conf"),
    _known("a value with spaces", f"--kms_phrase '{SPACED}'", SPACED),
    # Values of the answer anywhere else.
    _known("anywhere", _toolkit(f"login with {PASSWORD} refused", ""), PASSWORD),
    _known("short and mixed", _toolkit(f"login with {SHORT} refused", ""), SHORT),
    _known("eight letters", f"user typed {WORD}, refused", WORD),
    Leak("in another case", f"user typed {WORD.upper()}, refused", WORD.upper(), {"x": WORD}),
    _known("between signs", f"<{SHORT}>", SHORT),
    _known("inside a word", f"xx{PASSWORD}yy", PASSWORD),
    _known("behind an underscore", f"user_{SHORT}_x", SHORT),
    Leak("across a line break", "typed correct\nhorse battery 9", "horse", {"x": SPACED}),
    Leak("with plus signs", "q=correct+horse+battery+9", "horse", {"x": SPACED}),
    Leak("in Base64", f"payload {_BASE64}", _BASE64[:16], {"x": PASSWORD}),
    _env("a variable's value", f"KeyError: {PASSWORD!r}", PASSWORD),
    _env("a variable's own key", "DB_LOGIN=tulip", "tulip"),
    Leak(
        "the password in a variable's URL", f"FATAL: refused {SHORT}", SHORT, {},
        {"TRACKING": f"postgres://bob:{SHORT}@db:5432/x"},
    ),
    Leak("a nested value", f"typed {SHORT}", SHORT, {"conf": json.dumps(json.dumps({"db": {"phrase": SHORT}}))}),
    Leak("a static hyperparameter", f"typed {SHORT}", SHORT, more={"TrainingJobDefinition": {"StaticHyperParameters": {"x": SHORT}}}),
    Leak("a definition's variable", f"typed {SHORT}", SHORT, more={"TrainingJobDefinitions": [{"Environment": {"x": SHORT}}]}),
    Leak("a container argument", f"typed {SHORT}", SHORT, more={"AppSpecification": {"ContainerArguments": ["--x", SHORT]}}),
    Leak("a word after an argument", "argument --x tulip", "tulip", more={"AppSpecification": {"ContainerArguments": ["--x", "tulip"]}}),
    Leak("an inline command", f"typed {SHORT}", SHORT, more={"AppSpecification": {"ContainerEntrypoint": ["bash", "-c", f"run --x={SHORT}"]}}),
    Leak("a rule's parameter", f"typed {SHORT}", SHORT, more={"DebugRuleConfigurations": [{"RuleConfigurationName": "r", "RuleParameters": {"x": SHORT}}]}),
    Leak("a hook's parameter", f"typed {SHORT}", SHORT, more={"DebugHookConfig": {"HookParameters": {"x": SHORT}}}),
    Leak("a tuned range", f"typed {SHORT}", SHORT, more={"HyperParameterTuningJobConfig": {"ParameterRanges": {"CategoricalParameterRanges": [{"Name": "x", "Values": [SHORT]}]}}}),
    Leak("an address's query", "ok", SHORT, more={"InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": f"s3://b/k?token={SHORT}"}}}]}),
    # In other letters.
    Leak("hex escapes", _codes(PASSWORD, "\\x{:02x}"), _codes(PASSWORD, "\\x{:02x}"), {"x": PASSWORD}),
    Leak("Unicode escapes", _codes(PASSWORD, "\\u{:04x}"), _codes(PASSWORD, "\\u{:04x}"), {"x": PASSWORD}),
    Leak("percent", _codes(PASSWORD, "%{:02X}"), _codes(PASSWORD, "%{:02X}"), {"x": PASSWORD}),
    Leak("percent twice", _codes(PASSWORD, "%25{:02X}"), _codes(PASSWORD, "%25{:02X}"), {"x": PASSWORD}),
    Leak("entities", _codes(PASSWORD, "&#{};"), _codes(PASSWORD, "&#{};"), {"x": PASSWORD}),
    Leak("full width", full_width(PASSWORD), full_width(PASSWORD), {"x": PASSWORD}),
    Leak("zero width", "\u200b".join(PASSWORD), PASSWORD, {"x": PASSWORD}),
    Leak("soft hyphens", "\u00ad".join(PASSWORD), PASSWORD, {"x": PASSWORD}),
    Leak("colours", "\x1b[31m".join(PASSWORD), PASSWORD, {"x": PASSWORD}),
    Leak("combining marks", "\u0332".join(PASSWORD), "\u0332".join(PASSWORD), {"x": PASSWORD}),
    Leak("control characters", "\x00".join(PASSWORD), PASSWORD, {"x": PASSWORD}),
    Leak("an escaped key", "\\u0070assword=tulip", "tulip"),
    Leak("a key with a percent", "%70assword%3Dtulip", "tulip"),
    Leak("a key in hex", r"\x70assword=tulip", "tulip"),
    Leak("a key in entities", "&#112;assword&#61;tulip", "tulip"),
    Leak("a full-width key", full_width("password=") + "tulip", "tulip"),
    Leak("a key with zero width", "pass\u200bword=tulip", "tulip"),
    # Cut in the middle.
    Leak("cut at the end", f"login failed with {PASSWORD[:10]}", PASSWORD[:10], {"x": PASSWORD}),
    Leak("cut at the start", f"{PASSWORD[-10:]} was refused", PASSWORD[-10:], {"x": PASSWORD}),
    Leak("cut with dots", f"user {PASSWORD[:9]}… refused", PASSWORD[:9], {"x": PASSWORD}),
    Leak("cut in the tool's quotes", f'ErrorMessage "typed {PASSWORD[:9]}" Command "x"', PASSWORD[:9], {"x": PASSWORD}),
    Leak("an open quote", 'password="tulip and', "tulip and"),
)  # fmt: skip

KEYS: Sequence[Leak] = (
    Leak("--password x", _toolkit("boom", "--db_password tulip"), "tulip"),
    Leak("--api_key x", _toolkit("boom", "--api_key abc123"), "abc123"),
    Leak("a number", "--db_password 12345678", "12345678"),
    Leak("password=", "password=tulip next", "tulip"),
    Leak("password with a comma", "password=tu,qlip next", "qlip"),
    Leak("password in quotes", "password = 'tulip and rose'", "tulip"),
    Leak("escaped quotes", r'{\"password\": \"tu\\\"qlip\"}', "qlip"),
    Leak("a list", "['--password', 'tulip']", "tulip"),
    Leak("a tuple of two", "('client_secret', 'tulip')", "tulip"),
    Leak("name and value", '{"name": "DB_PASSWORD", "value": "tulip"}', "tulip"),
    Leak("camel case", "clientSecret: tulip", "tulip"),
    Leak("dbPassword", '"dbPassword":"tulip"', "tulip"),
    Leak("apiKey", "apiKey=tulip", "tulip"),
    Leak("words", "API key: tulip", "tulip"),
    Leak("secret access key", "Secret Access Key: tulip", "tulip"),
    Leak("passphrase", "passphrase: tulip", "tulip"),
    Leak("pwd", "Server=db;Uid=sa;Pwd=tulip;", "tulip"),
    Leak("connection string", "Server=db;Password=tulip rose;Encrypt=yes", "rose"),
    Leak("XML", "<password>tulip</password>", "tulip"),
    Leak("prose", "Incorrect API key provided: abc12-tulip. Try again", "abc12-tulip"),
    Leak("token is", "the token is abc12tulip", "abc12tulip"),
    Leak("Bearer", "Authorization: Bearer tulip.rose", "tulip"),
    Leak("Bearer alone", f"sent Bearer {LETTERS}", LETTERS),
    Leak("Basic", "Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    Leak("Basic alone", "sent Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    Leak("headers", "{'Authorization': 'token tulip', 'Accept': '*/*'}", "tulip"),
    Leak("X-Api-Key", "X-Api-Key: tulip", "tulip"),
    Leak("Cookie", "Cookie: a=tulip; b=rose", "rose"),
    Leak("Set-Cookie", "set-cookie: session=tulip; Path=/", "tulip"),
    Leak("subscription key", "Ocp-Apim-Subscription-Key: tulip", "tulip"),
    Leak("-u user:password", "curl -u bob:tulip https://h/x", "tulip"),
    Leak("URL with a user", "postgres://bob:tulip@db:5432/x", "tulip"),
    Leak("URL with @ in it", "postgres://bob:tu@qlip@db:5432/x", "qlip"),
    Leak("URL with / in it", "postgres://bob:tu/qlip@db:5432/x", "qlip"),
    Leak("URL without a user", "redis://:tulip@cache:6379", "tulip"),
    Leak("URL with a token", "https://tulip@git.example/r.git", "tulip"),
    Leak("URL with escapes", r"https:\/\/bob:tulip@h\/x", "tulip"),
    Leak("signed URL", "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=" + HEX64, HEX64),
    Leak("older signed URL", "https://b.s3.amazonaws.com/k?AWSAccessKeyId=x&Signature=tu%2Fqlip%3D&Expires=1", "qlip"),
    Leak("SAS", "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=tu%2Bqlip%3D", "qlip"),
    Leak("fragment", "https://h/cb#access_token=tulip&x=1", "tulip"),
    Leak("wandb", f"wandb: login {HEX40} failed", HEX40),
)  # fmt: skip

_LONG = "Tr0ub4dor" + "&3xyz"
_OWN = {"api_thing": _LONG}
_NESTED = "X9k2" + "mQ7"
_TYPED = f"failed with {_NESTED}"
_CLI = "S3cret" + "Pw"
ABROAD = (
    "Passwort: {}", "Kennwort {} ungültig", "Passwort ist {}", "mot de passe : {}", "contraseña: {}",
    "la contraseña es {}", "clave secreta: {}", "senha: {}", "palavra-passe: {}", "パスワード：{}", "パスワードは{} です",
    "暗証番号: {}", "密码：{}", "密码是{}", "密碼: {}", "口令: {}", "用户密码 {} 错误", "비밀번호: {}", "пароль: {}", "hasło: {}",
    "wachtwoord: {}", "şifre: {}", "lösenord: {}",
)  # fmt: skip
MORE: Sequence[Leak] = (
    *(Leak(form, form.format(_CLI), _CLI) for form in ABROAD),
    Leak("docker login", f"docker login -u bob -p {_CLI}", _CLI),
    Leak("docker login as a list", f"Command '['docker', 'login', '-u', 'bob', '-p', '{_CLI}']' returned 1", _CLI),
    Leak("docker login, quoted", f'docker login -p "{_CLI} x" host', _CLI),
    Leak("docker login in JSON", json.dumps({"cmd": f'docker login -u "bob" -p "{_CLI}"'}), _CLI),
    Leak("mysql -p", f"mysql -uroot -p{_CLI} db", _CLI),
    Leak("mysql -p in a list", f"['mysqldump', '-uroot', '-p{_CLI}', 'db']", _CLI),
    Leak("sshpass", f"sshpass -p {_CLI} ssh h", _CLI),
    Leak("sshpass together", f"sshpass -p{_CLI} ssh h", _CLI),
    Leak("redis-cli", f"redis-cli -h cache -a {_CLI} ping", _CLI),
    Leak("ldapsearch", f"ldapsearch -x -D cn=admin -w {_CLI}", _CLI),
    Leak("any tool with user and password", f"tool --user bob -p {_CLI}", _CLI),
    Leak("keytool", f"keytool -list -storepass {_CLI}", _CLI),
    Leak("netrc", f"machine h login bob password {_CLI}", _CLI),
    Leak("Invalid password", f'Invalid password "{WORD}" for user bob', WORD),
    Leak("password in quotes rejected", f"password '{WORD}' rejected", WORD),
    Leak("a table's row", "| password | abcde1 |", "abcde1"),
    Leak("a table's row without edges", "a | b\n password | tulip\n", "tulip"),
    Leak("a drawn table", "│ password │ tulip │", "tulip"),
    Leak("a key's body", "see MIIEpAIBAAKCAQEA" + "aB3d" * 12 + "\n" + "aB3d" * 16 + "\nxYz=", "aB3daB3d"),
    Leak("a key's last line", "MIIEpAIBAAKCAQEA" + "aB3d" * 12 + "\n" + "aB3d" * 16 + "\nxYz09Q==", "xYz09Q"),
    Leak("an OpenSSH key's body", "b3BlbnNzaC1rZXktdjEAAAAA" + "aB3d" * 20, "aB3daB3d"),
    Leak("a key of an elliptic curve", "MHcCAQEEI" + "aB3d" * 12, "aB3daB3d"),
    Leak("a key's body with escaped ends", "MIIEvQIBADANBgkq" + "aB3d" * 12 + "\\n" + "eF5g" * 16, "eF5geF5g"),
    Leak("in XML", _TYPED, _NESTED, {"cfg": f"<db><pw>{_NESTED}</pw></db>"}),
    Leak("in an XML attribute", _TYPED, _NESTED, {"cfg": f'<db pw="{_NESTED}"/>'}),
    Leak("between bars", _TYPED, _NESTED, {"cfg": f"root|{_NESTED}|db"}),
    Leak("in Base64 of JSON", _TYPED, _NESTED, {"cfg": base64.b64encode(json.dumps({"pw": _NESTED}).encode()).decode()}),
    Leak("in JSON in Base64 of JSON", _TYPED, _NESTED, {"cfg": json.dumps(base64.b64encode(json.dumps({"pw": _NESTED}).encode()).decode())}),
    Leak("wrapped", f"oops {_LONG[:7]}\n{_LONG[7:]} x", _LONG[7:], _OWN),
    Leak("wrapped with blanks", f"oops {_LONG[:7]}  \r\n    {_LONG[7:]}", _LONG[7:], _OWN),
    Leak("wrapped in JSON", json.dumps(f"oops {_LONG[:7]}\n{_LONG[7:]}"), _LONG[7:], _OWN),
    Leak("wrapped passphrase", "oops correct ho\nrse battery 9", "rse battery", {"x": SPACED}),
    Leak("Hangul fillers", "\u3164".join(_LONG), "\u3164".join(_LONG), _OWN),
    Leak("half-width fillers", "\uffa0".join(_LONG), "\uffa0".join(_LONG), _OWN),
    Leak("Braille blanks", "\u2800".join(_LONG), "\u2800".join(_LONG), _OWN),
    Leak("masked at the end", f"oops {_LONG[:7]}*******", _LONG[:7], _OWN),
    Leak("masked in the middle", f"oops {_LONG[:6]}***{_LONG[-5:]}", _LONG[:6], _OWN),
    Leak("masked in the middle, end", f"oops {_LONG[:6]}***{_LONG[-5:]}", _LONG[-5:], _OWN),
    Leak("in the output's address", "ok", _LONG, _OWN, more={"OutputDataConfig": {"S3OutputPath": f"s3://bucket/{_LONG}/out"}}),
    Leak("in a checkpoint's address", "ok", SHORT, {"x": SHORT}, more={"CheckpointConfig": {"S3Uri": f"s3://bucket/{SHORT}"}}),
    Leak("an ordinary word behind its flag", "train.py --stage segmentation", "segmentation", {"stage": '"segmentation"'}),
    Leak("a module's shape under a telling name", "typed correct.horse", "correct.horse", {"db_password": "correct.horse"}),
    Leak("a long number behind pass", "pass: 12345678", "12345678"),
    Leak("a cookie after a state", "Cookie: none; b=tulip", "tulip"),
    Leak("a cookie that begins like a state", "Cookie: none=1; b=tulip", "tulip"),
)  # fmt: skip

TOKENS: Mapping[str, str] = {
    "AWS id": "AKIA" + "ABCDEFGHIJKLMNOP",
    "AWS temporary id": "ASIA" + "Z2345678901234ZZ",
    "AWS session": "IQoJb3JpZ2lu" + LETTERS * 4,
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitHub fine-grained": "github_pat_" + "a1B2" * 10,
    "GitLab": "glpat-" + LETTERS[:20],
    "Hugging Face": "hf_" + "AbCd" * 8,
    "Slack bot": "xoxb-" + "123456789012-abcdefghij",
    "Slack app": "xapp-1-" + "A0123-456-" + HEX64,
    "OpenAI": "sk-" + "proj-abcdefghij0123456789",
    "Anthropic": "sk-" + "ant-api03-" + LETTERS,
    "Groq": "gsk_" + LETTERS * 2,
    "Google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"[:35],
    "Google OAuth": "ya29." + "a0AfH6SMB" + LETTERS,
    "Google client": "GOCSPX-" + LETTERS[:28],
    "JWT": "eyJhbGciOiJI." + "eyJzdWIiOiIxMjM." + "c2lnbmF0dXJl",
    "npm": "npm_" + "a1B2" * 9,
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + LETTERS * 2,
    "Stripe": "sk_live_" + LETTERS[:24],
    "Stripe webhook": "whsec_" + LETTERS,
    "SendGrid": "SG.a1B2c3D4e5F6g7H8i9J0k1.a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V",
    "Twilio": "SK" + HEX32,
    "Databricks": "dapi" + HEX32,
    "DigitalOcean": "dop_v1_" + HEX64,
    "Shopify": "shpat_" + HEX32,
    "Mailchimp": HEX32 + "-us12",
    "Docker": "dckr_pat_" + LETTERS,
    "Vault": "hvs." + LETTERS,
    "Azure client": "abc8Q~" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
    "Azure account": BASE88,
    "Telegram": "123456789" + ":AA" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q",
    "Discord": "https://discord.com/api/webhooks/" + "123456789012345678/" + LETTERS,
    "Slack webhook": "https://hooks.slack" + ".com/services/T0/B0/XyZ",
    "NVIDIA": "nvapi-" + LETTERS * 2,
    "Replicate": "r8_" + "a1B2" * 9,
    "Grafana": "glsa_" + LETTERS + "_" + HEX32[:8],
    "Pinecone": "pcsk_" + LETTERS * 2,
    "LangSmith": "lsv2_pt_" + HEX32 + "_" + HEX32[:10],
    "Neptune": "eyJhcGlfYWRkcmVzcyI6" + LETTERS * 2,
}
PRIVATE_KEY = (
    f"-----BEGIN RSA PRIVATE KEY-----\nMII{LETTERS}\n{LETTERS}\n-----END RSA PRIVATE KEY-----"
)
SHAPES: Sequence[Leak] = (
    *(Leak(name, f"ValueError: 401 for {token} today", token) for name, token in TOKENS.items()),
    *(Leak(f"{name}, beside words", f"x:{token}:y", token) for name, token in TOKENS.items()),
    Leak("AWS secret beside its id", f"AKIA{'A' * 16} {BASE40} refused", BASE40),
    Leak("AWS secret in a tuple", f"('AKIA{'A' * 16}', '{BASE40}')", BASE40),
    Leak("AWS secret alone", f"refused {BASE40}", BASE40),
    Leak("Twilio token beside its id", f"AC{HEX32[::-1]} {HEX32}", HEX32),
    Leak("private key", PRIVATE_KEY, LETTERS),
    Leak("private key, cut", PRIVATE_KEY[:60], LETTERS[:12]),
    Leak("private key in JSON", json.dumps({"private_key": PRIVATE_KEY}), LETTERS),
    Leak("private key without its start", PRIVATE_KEY[50:], LETTERS[8:20]),
    Leak("Azure connection string", f"AccountName=a;AccountKey={BASE88};EndpointSuffix=x", BASE88[:20]),
    Leak("service bus", "SharedAccessKeyName=root;SharedAccessKey=tulip=;X=1", "tulip"),
    Leak("service account", json.dumps({"type": "service_account", "private_key_id": HEX40, "private_key": PRIVATE_KEY}), HEX40),
)  # fmt: skip
LEAKS: Sequence[Leak] = (*POSITIONS, *KEYS, *MORE, *SHAPES)

ORDINARY: Sequence[str] = (
    "ClientError: Data download failed:S3 key: s3://bucket/ matched no files on s3",
    "CapacityError: Unable to provision requested ML compute capacity.",
    "ValueError: expected 3 tokens, got 5 (tokenizer bert-base)",
    ('AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "RuntimeError: CUDA out of memory. Tried to'
    ' allocate 2.00 GiB (GPU 0; 14.76 GiB total capacity)"\nCommand "/opt/conda/bin/python3.10 train.py --batch-size'
    ' 32 --epochs 10 --learning_rate 0.1", exit code: 1'),
    "learning_rate=0.1 epochs 10 dropout: 0.5",
    "No such file or directory: '/opt/ml/code/src/train.py'",
    "tokenizer=bert-base-uncased max_tokens: 512 pad_token_id=50256 eos_token=</s> num_tokens 7",
    "KeyError: 'label' in /opt/ml/input/data/train/part-00001.csv line 12, column 3",
    ("User: arn:aws:sts::111122223333:assumed-role/Role/SageMaker is not authorized to perform:"
    " secretsmanager:GetSecretValue on resource: arn:aws:secretsmanager:eu-west-1:111122223333:secret:prod/db-AbCdEf"),
    "ExpiredTokenException: The security token included in the request is expired",
    "InvalidToken: the token was refused; password authentication failed for the user",
    "OSError: [Errno 28] No space left on device: '/tmp/a.bin' (100%)",
    "see https://docs.aws.amazon.com/sagemaker/latest/dg/train.html?page=2 and http://localhost:8080/a@b",
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\nKeyError: 'key'",
    "git@github.com:org/repo.git at 0123456789abcdef0123456789abcdef01234567, sha256:" + "ab" * 32,
    "CUDA error: an illegal memory access was encountered (ml.p4d.24xlarge, us-east-1, train-bert-2024-05-01-10-00-00-123)",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte \\xff in C:\\new\\table.csv: 50% done",
    "",
)  # fmt: skip

ORDINARY_OF: Sequence[tuple[str, Mapping[str, str]]] = (
    ("AssertionError: training requires at least one GPU", {"mode": "training"}),
    ("Evaluation failed in the evaluation step", {"stage": '"evaluation"'}),
    ("ValueError: could not convert string to float: 'validation'", {"split": "validation", "metric": "validation:loss"}),
    ("best validation:loss so far", {"metric": "validation:loss", "x": "val_accuracy"}),
    ("No module named 'transformers.trainer_pt_utils'", {"framework": "transformers"}),
    ("No module named 'src.models.resnet50'", {"entry_module": "src.models.resnet50"}),
    ("cannot import name 'AdamW' from torch.optim version 2.1.0", {"torch_version": "2.1.0", "v": '"2.1.0"'}),
    ("torch 2.1.0+cu118, betas (0.9, 0.999), size 224x224, eps 1e-5", {"t": "2.1.0+cu118", "betas": "(0.9, 0.999)", "size": "224x224", "eps": "1e-5"}),
    ("instance type ml.p3.2xlarge in us-west-2 failed", {"instance": "ml.p3.2xlarge", "region": "us-west-2"}),
    ("no capacity for ml.p4de.24xlarge in us-gov-west-1", {"a": '"ml.p4de.24xlarge"', "b": "us-gov-west-1"}),
    ("Unable to locate file in directory production", {"env": "production"}),
    ("Evaluation of the rule Confusion at step 17 resulted in the condition being met", {"rule_to_invoke": "Confusion"}),
    ("Evaluation of the rule LossNotDecreasing at step 7", {"rule_to_invoke": '"LossNotDecreasing"'}),
    ("pass: 3 of 10 tests", {}),
    ("sig: SIGKILL (9) received by PID 1234", {}),
    ("cookie: invalid", {}),
    ("auth: missing, key: none, token: <pad> and token: '</s>', token: [PAD], token: 50256", {}),
    ("signature: forward(x: Tensor, y: Tensor) does not match", {}),
    ("pass_rate: 0.93", {}),
    ("ssh -p 2222 host; docker run -p 8080:80 image; docker login first, then python -m pip; mysql -p db", {}),
    ("the password 'required' was not given; | user | password | role |", {}),
    ("Error de clave: 'label'; senha incorreta", {}),
    ("loss\n0.31 train\ning done ***", {"mode": "training"}),
)  # fmt: skip
"""Failure messages that stay word by word, with the hyperparameters of their answers."""
