"""Runs a composite action's steps as a GitHub runner does, and answers as GitHub's comments API."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml  # type: ignore[import-untyped]
from msgspec import Struct, field

ROOT = Path(__file__).parents[2]
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
_PYTHON = """#!/bin/sh
# The machine's Python: its venv has this sageaudit, and its pip only notes its arguments.
if [ "$1" = -m ] && [ "$2" = venv ]; then
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/python"
  printf '#!/bin/sh\\nexec "{python}" -c "from sageaudit.cli.main import main; main()" "$@"\\n' \\
    > "$3/bin/sageaudit"
  chmod +x "$3/bin/sageaudit"
elif [ "$1" = -m ] && [ "$2" = pip ]; then
  shift 2
  echo "$@" >> "$PIP_LOG"
else
  exec "{python}" "$@"
fi
"""


def evaluate(expression: str, context: Mapping[str, Any]) -> Any:
    """Returns the value of an expression with `||`, `&&`, `==`, `!=`, texts and names."""
    for operator in (" || ", " && ", " == ", " != "):
        left, found, right = expression.partition(operator)
        if found:
            value = evaluate(left, context)
            if operator == " || ":
                return value or evaluate(right, context)
            if operator == " && ":
                return value and evaluate(right, context)
            return (value == evaluate(right, context)) is (operator == " == ")
    if expression.startswith("'"):
        return expression.strip("'")
    found_value: Any = context
    for name in expression.split("."):
        found_value = found_value.get(name, "") if isinstance(found_value, Mapping) else ""
    return found_value


def render(text: object, context: Mapping[str, Any]) -> str:
    """Returns a value of the action with its expressions replaced."""
    return _EXPRESSION.sub(lambda match: str(evaluate(match[1], context)), str(text))


class ActionRun(Struct, frozen=True):
    """What one run of the action left: exit code, log, summary, outputs, arguments of pip."""

    exit_code: int
    log: str
    summary: str
    outputs: Mapping[str, str]
    pip: str


def run_action(
    folder: Path, scratch: Path, inputs: dict[str, str], github: Mapping[str, Any], api: str = ""
) -> ActionRun:
    """Runs the steps of action.yml in a checkout; a failed step ends the run."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    context: dict[str, Any] = {"github": {"token": "workflow-token", **github}, "steps": {}}
    defaults = {
        name: render(rules.get("default", ""), context) for name, rules in action["inputs"].items()
    }
    assert set(inputs) <= set(defaults)
    context["inputs"] = defaults | inputs
    environment = _environment(scratch, api)
    log, code = "", 0
    for number, step in enumerate(action["runs"]["steps"]):
        if not evaluate(step.get("if", "'yes'"), context):
            continue
        assert step["shell"] == "bash"
        assert not _EXPRESSION.search(step["run"]), "an expression in a script is an injection"
        output = scratch / f"output-{number}"
        output.touch()
        script = scratch / f"step-{number}.sh"
        script.write_text(step["run"], "utf-8")
        values = {name: render(value, context) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],  # noqa: S607
            cwd=folder,
            env=environment | values | {"GITHUB_OUTPUT": str(output)},
            capture_output=True,
            text=True,
            check=False,
        )
        log += done.stdout + done.stderr
        lines = output.read_text("utf-8").splitlines()
        context["steps"][step.get("id", number)] = {
            "outputs": dict(line.split("=", 1) for line in lines)
        }
        if code := done.returncode:
            break
    outputs = {name: render(rule["value"], context) for name, rule in action["outputs"].items()}
    texts = [(scratch / name).read_text("utf-8") for name in ("summary.md", "pip.log")]
    return ActionRun(code, log, texts[0], outputs, texts[1])


def _environment(scratch: Path, api: str) -> dict[str, str]:
    binaries = scratch / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    python = binaries / "python3"
    python.write_text(_PYTHON.format(python=sys.executable), "utf-8")
    python.chmod(0o755)
    for name in ("summary.md", "pip.log"):
        (scratch / name).write_text("", "utf-8")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "functions"),
        "PIP_LOG": str(scratch / "pip.log"),
        "RUNNER_TEMP": str(scratch / "runner temp"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(scratch / "summary.md"),
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_API_URL": api,
        "XDG_DATA_HOME": str(scratch / "data"),
    }


class CommentsApi(Struct):
    """The comments of one issue. `may_write`: whether the token has the permission.

    `breaks_off`: whether the connection ends in the middle of each answer. `login`: the user of a
    personal token; None for a workflow's token.
    """

    comments: list[dict[str, Any]] = field(default_factory=list)
    may_write: bool = True
    breaks_off: bool = False
    login: str | None = None
    url: str = ""
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: str) -> tuple[int, Any]:
        """Returns the status and JSON of an answer."""
        self.requests.append(f"{method} {path}")
        if path == "/user":
            return (200, {"login": self.login}) if self.login else (403, {})
        place, _, query = path.partition("?")
        if method == "GET" and place == "/repos/owner/name/issues/7/comments":
            page = int(query.rpartition("page=")[2])
            return 200, self.comments[(page - 1) * 100 : page * 100]
        if not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST" and place == "/repos/owner/name/issues/7/comments":
            self.add(body, self.login or "github-actions[bot]")
            return 201, self.comments[-1]
        comment = self.comments[int(place.removeprefix("/repos/owner/name/issues/comments/"))]
        comment["body"] = body
        return 200, comment

    def add(self, body: str, login: str) -> None:
        """Adds a comment of this user."""
        kind = "Bot" if login.endswith("[bot]") else "User"
        user = {"login": login, "type": kind}
        self.comments.append({"id": len(self.comments), "body": body, "user": user})


@contextmanager
def comments_api() -> Iterator[CommentsApi]:
    """Yields an API that answers on loopback."""
    api = CommentsApi()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            assert self.headers["Authorization"] == "Bearer workflow-token"
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(content)["body"] if content else ""
            status, answer = api.answer(self.command, self.path, body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text[:1] if api.breaks_off else text)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815 - names of the standard library

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
