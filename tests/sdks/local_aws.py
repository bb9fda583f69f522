"""An AWS of this machine, which answers what the SageMaker SDKs call to start a job."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARN = "arn:aws:sagemaker:eu-west-1:111122223333"
ROLE = "arn:aws:iam::111122223333:role/service/train"
IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.3"
_ANSWERS: dict[str, dict[str, Any]] = {
    "CreateTrainingJob": {"TrainingJobArn": f"{ARN}:training-job/resnet"},
    "DescribeTrainingJob": {
        "TrainingJobName": "resnet",
        "TrainingJobArn": f"{ARN}:training-job/resnet",
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Starting",
        "CreationTime": 1,
    },
    "CreateProcessingJob": {"ProcessingJobArn": f"{ARN}:processing-job/prepare"},
    "CreateTransformJob": {"TransformJobArn": f"{ARN}:transform-job/score"},
    "CreateHyperParameterTuningJob": {
        "HyperParameterTuningJobArn": f"{ARN}:hyper-parameter-tuning-job/search"
    },
    "CreatePipeline": {"PipelineArn": f"{ARN}:pipeline/weekly"},
    "UpdatePipeline": {"PipelineArn": f"{ARN}:pipeline/weekly"},
    "StartPipelineExecution": {"PipelineExecutionArn": f"{ARN}:pipeline/weekly/execution/1"},
    "ListTags": {"Tags": []},
}

_XML = b"""<Answer>
<Buckets><Bucket><Name>bucket</Name></Bucket></Buckets>
<GetRoleResult><Role><Arn>arn:aws:iam::111122223333:role/train</Arn></Role></GetRoleResult>
<SimulatePrincipalPolicyResult><IsTruncated>false</IsTruncated></SimulatePrincipalPolicyResult>
</Answer>"""
"""What S3, IAM and STS answer."""


class LocalAws(ThreadingHTTPServer):
    """Answers the calls of SageMaker and notes their names; other services get an empty answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.calls: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: LocalAws

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        service, _, action = self.headers.get("X-Amz-Target", "").partition(".")
        if service == "SageMaker":
            self.server.calls.append(action)
        body = json.dumps(_ANSWERS.get(action, {})).encode() if service else _XML
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815 - names of the base class
