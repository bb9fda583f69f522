"""The stored part of a failure message: words of a closed vocabulary, and what they mean.

A failure message is free text that a user's container may have written. sageaudit stores, prints
and sends nothing else of it. AWS documents neither its words nor their order, so the class of a
failure is only a hint.

The first cause wins: if a rank runs out of memory, the others report that it is gone.

Sources of the words: errors of SageMaker and its toolkits (aws/sagemaker-training-toolkit,
errors.py); exceptions of Python, PyTorch, TensorFlow, botocore and related libraries; statuses of
CUDA and NCCL; error codes and operations of S3 and ECR; recorded jobs and public issues.
"""

from __future__ import annotations

import builtins
import re

from msgspec import Struct

MAX_RUNTIME = "MaxRuntimeInSeconds"
MAX_WAIT = "MaxWaitTimeInSeconds"
AWS_ERROR = "AWS error"
GPU_MEMORY = "GPU out of memory"
HOST_MEMORY = "host out of memory"
MEMORY = "memory error"
"""Memory ran out, but the message does not say whether it was the GPU's or the host's."""
_MAX_CHARACTERS = 10_000
"""Only this many characters of a message are read. AWS sends at most 1,024."""
_MAX_WORDS = 8
_PATTERNS = (
    ((r"maxruntime(?:inseconds)?\W*exceeded|exceeded \W*maxruntime",), MAX_RUNTIME),
    ((r"maxwaittime(?:inseconds)?\W*exceeded|exceeded \W*maxwaittime",), MAX_WAIT),
    (
        (
            r"\b(?:cuda|hip)\b[^.]{0,40}out ?of ?memory",
            r"cuda_error_out_of_memory",
            r"torch\.(?:cuda\.)?outofmemoryerror",
            r"cu\w+_status_alloc_failed",
            r"(?:resource_?exhausted|oom when allocating)[^\n]{0,400}\bgpu\b",
            r"\bgpu\b[^.]{0,40}(?:out of memory|ran out of memory)",
            r"out of memory[^.]{0,40}\bgpu\b",
            r"cudaerrormemoryallocation|cudamalloc[^.]{0,20}failed",
            r"\bgpu_\d+_bfc\b[^.]{0,20}ran out of memory",
        ),
        GPU_MEMORY,
    ),
    (
        (
            r"exit[ _-]?(?:code|status)\W{0,4}(?:137|-9)\b",
            r"\bsigkill\b|killed by signal: killed|\bsignal:? 9\b",
            r"\boom[ -]?kill",
            r"\bmemoryerror\b",
            r"cannot allocate memory",
            r"\bbad_alloc\b",
            r"unable to allocate [^\n]{1,40} for an array",
            r"defaultcpuallocator",
            r"java heap space|java\.lang\.outofmemoryerror|gc overhead limit exceeded",
            r"out of shared memory|insufficient shared memory|killed by signal: bus error",
            r"unable to open shared memory|no space left on device[^\n]{0,40}/dev/shm",
            r"running low on memory|due to memory pressure|exceeding memory limits",
            r"more memory",
        ),
        HOST_MEMORY,
    ),
    ((r"out ?of ?memory", r"\boom\b"), MEMORY),
    ((r"no space left", r"disk is full", r"disk quota", r"\[errno 28\]"), "disk error"),
    ((r"uncorrectable (?:nvlink|ecc)", r"\bfallen off the bus\b", r"\bxid \d"), "hardware error"),
    (
        (
            r"collective operation timeout|before timing out",
            r"\bnccl (?:error|communicator was aborted)|\bnccl\w+error\b",
            r"waiting for clients|\bdiststoreerror\b|\bdistbackenderror\b|\bdistnetworkerror\b",
            r"\bgloo\b[^\n]{0,80}(?:connection closed|timed out)|horovodinternalerror",
        ),
        "communication error",
    ),
    ((r"capacityerror", r"insufficient ?(?:instance ?)?capacity"), "capacity error"),
    (
        (
            r"data download failed|failed to download data|unable to read input data",
            r"matched no files|nosuchkey|no such file|channeldoesnotexisterror",
            r"datalosserror|corrupted record|datasetgenerationerror|error tokenizing data",
        ),
        "data error",
    ),
    ((r"access ?denied", r"not authorized", r"forbidden", r"gated ?repo"), "permission error"),
    ((r"internal ?server ?error",), AWS_ERROR),
    (
        (r"algorithmerror|executeuserscripterror|childfailederror", r"traceback", r"exit[ _]?code"),
        "code error",
    ),
    ((r"clienterror", r"validationexception"), "request error"),
)
"""Regular expressions and the class of failure that each one shows. The first match wins.

Exit code 137 is 128 + SIGKILL: the kernel ends a process that way if a host has no memory left."""
CLASSES = frozenset(word for _, word in _PATTERNS)
_COMMAND = re.compile(r'\bCommand "[^"]*"')
"""The toolkit's copy of the command line. Its options say nothing about the failure."""
_PYTHON_EXCEPTIONS = (
    name
    for name, item in vars(builtins).items()
    if isinstance(item, type) and issubclass(item, BaseException)
)
_TERMS = """
AlgorithmError CapacityError ClientError InternalServerError CompletedWithViolations
RuleEvaluationConditionMet ChannelDoesNotExistError ExecuteUserScriptError ImportModuleError
InstallModuleError InstallRequirementsError UnexpectedStatusException UnsupportedFormatError
CalledProcessError TimeoutExpired JSONDecodeError UnpicklingError PicklingError BadZipFile
ReadError BrokenProcessPool LinAlgError UFuncTypeError AxisError EmptyDataError ParserError
MergeError IntCastingNaNError ArrowInvalid ArrowMemoryError NotFittedError XGBoostError
LightGBMError CatBoostError MXNetError OutOfMemoryError AcceleratorError DistBackendError
DistNetworkError DistStoreError ChildFailedError RendezvousConnectionError RendezvousTimeoutError
SignalException HorovodInternalError MisconfigurationException ResourceExhaustedError
InvalidArgumentError NotFoundError InternalError FailedPreconditionError DataLossError
UnimplementedError UnavailableError AbortedError CancelledError DeadlineExceededError
OutOfRangeError UnknownError PermissionDeniedError HTTPError SSLError ReadTimeout ConnectTimeout
ChunkedEncodingError MaxRetryError ProxyError HfHubHTTPError GatedRepoError RepositoryNotFoundError
RevisionNotFoundError EntryNotFoundError LocalEntryNotFoundError SafetensorError ValidationError
ConfigError ExpectedMoreSplits DatasetGenerationError OperationalError ProgrammingError
IntegrityError AnalysisException SparkException Py4JJavaError SparkOutOfMemoryError
NullPointerException IllegalArgumentException ClassNotFoundException IOException
FileNotFoundException StackOverflowError ActorDiedError RayTaskError RayOutOfMemoryError
WorkerCrashedError ObjectStoreFullError NoCredentialsError EndpointConnectionError
ConnectTimeoutError ReadTimeoutError ParamValidationError ConnectionClosedError ProfileNotFound
NoRegionError S3UploadFailedError AccessDenied AccessDeniedException UnauthorizedOperation
Forbidden ExpiredToken ExpiredTokenException InvalidAccessKeyId SignatureDoesNotMatch NoSuchBucket
NoSuchKey NoSuchUpload SlowDown RequestTimeout RequestTimeTooSkewed ServiceUnavailable
InternalFailure ThrottlingException TooManyRequestsException ResourceLimitExceeded ResourceNotFound
ResourceNotFoundException RepositoryNotFoundException ImageNotFoundException ValidationException
InsufficientInstanceCapacity DisabledException NotFoundException HeadObject GetObject PutObject
ListObjects ListObjectsV2 ListBucket GetBucketLocation CreateMultipartUpload UploadPart
CompleteMultipartUpload BatchGetImage GetDownloadUrlForLayer BatchCheckLayerAvailability
GetAuthorizationToken AssumeRole Decrypt GenerateDataKey CreateGrant CreateNetworkInterface
GetSecretValue CreateLogStream PutLogEvents CUDA_ERROR_OUT_OF_MEMORY CUDA_ERROR_ILLEGAL_ADDRESS
CUDA_ERROR_NO_DEVICE CUDA_ERROR_UNKNOWN CUBLAS_STATUS_ALLOC_FAILED CUBLAS_STATUS_EXECUTION_FAILED
CUBLAS_STATUS_NOT_INITIALIZED CUDNN_STATUS_ALLOC_FAILED CUDNN_STATUS_EXECUTION_FAILED
CUDNN_STATUS_INTERNAL_ERROR CUDNN_STATUS_NOT_INITIALIZED CUDNN_STATUS_NOT_SUPPORTED
DefaultCPUAllocator ncclInternalError ncclInvalidUsage ncclRemoteError ncclSystemError
ncclUnhandledCudaError bad_alloc SIGABRT SIGBUS SIGFPE SIGILL SIGINT SIGKILL SIGSEGV SIGTERM
"""
_KNOWN = frozenset(_TERMS.split()).union(_PYTHON_EXCEPTIONS)
_IDENTIFIER = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b")
_NUMBERS = (
    (r"\bexit[ _]?(code|status)\W{1,8}?(-?\d{1,3})\b", "exit {} {}"),
    (r"\b(?:error|occurred|status code:?|http) ?\(?([45]\d\d)\b", "HTTP {}"),
    (r"\[errno (\d{1,3})\]", "errno {}"),
    (r"tried to allocate (\d{1,4}\.\d\d) gib\b", "tried to allocate {} GiB"),
    (r"tried to allocate (\d{1,4}\.\d\d) mib\b", "tried to allocate {} MiB"),
    (r"of the rule \w+ at step (\d{1,7}) resulted in the condition", "step {}"),
)
"""Regular expressions of numbers that explain a failure, and the words that show them."""
_PHRASES = (
    (r"cuda error|cuda runtime error", "CUDA error"),
    (r"\bnccl\b", "NCCL"),
    (r"maximum number of .{0,40}attempts|max retries exceeded", "retries exceeded"),
    (r"data download failed|failed to download data", "download of data failed"),
    (r"matched no files", "no file matches the S3 key"),
    (r"unable to execute request to s3", "no answer of S3"),
    (r"unable to read input data", "input data cannot be read"),
    (r"pull access denied|cannot pull|failed to pull|unable to pull", "image cannot be pulled"),
    (r"manifest unknown|image not found|repository does not exist", "image not found"),
    (r"no basic auth credentials|docker login", "no login to the registry"),
    (r"unable to provision|insufficient capacity", "no capacity for this type"),
    (r"no space left|disk quota|disk is full", "no space left"),
    (r"no module named", "no such module"),
    (r"no such file", "no such file"),
    (r"permission denied", "permission denied"),
    (r"contains nan|loss is nan|nan loss|nan or inf", "NaN"),
    (r"segmentation fault", "segmentation fault"),
    (r"killed by signal: killed|\bsignal:? 9\b", "SIGKILL"),
    (r"\boom[ -]?kill", "OOM killer"),
    (r"killed by signal: bus error", "bus error"),
    (r"running low on memory|due to memory pressure", "node low on memory"),
    (r"exceeding memory limits", "memory limit exceeded"),
    (r"collective operation timeout", "collective operation timeout"),
    (r"uncorrectable ecc", "uncorrectable ECC error"),
    (r"\bfallen off the bus\b", "GPU fallen off the bus"),
    (r"connection refused", "connection refused"),
    (r"connection reset", "connection reset"),
    (r"timed out|timeout", "timed out"),
    (r"could not resolve host|name resolution", "host name not resolved"),
    (r"address already in use", "address already in use"),
    (r"shared memory", "shared memory"),
    (r"java heap space", "Java heap space"),
    (r"keepalive|health ?check", "health check"),
    (r"all training jobs failed", "all training jobs failed"),
    (r"see job logs", "see the job's logs"),
)
"""Regular expressions of phrases in messages, and the words that are stored instead."""
_SHOWN_WORDS = _KNOWN | {word for _, word in _PHRASES}
_SHOWN_NUMBER = re.compile(
    r"(?:exit (?:code|status) -?|HTTP |errno |step )\d{1,7}|tried to allocate [\d.]{4,7} [GM]iB"
)


_KILLED = re.compile(r"exit (?:code|status) (?:137|-9)|SIGKILL")
_OF_MEMORY = re.compile(r"(?i).*(?:memory|alloc|oom|heap)")


class Failure(Struct, frozen=True):
    """The known words of a failure message, and what they mean.

    `meaning` is the request parameter of the reached limit, or the class of failure, or None.
    `parse_failure` reads the text of a Failure back.
    """

    words: tuple[str, ...]
    meaning: str | None

    @property
    def is_only_killed(self) -> bool:
        """Whether a process was killed, and no word says that memory ran out."""
        is_killed = any(map(_KILLED.fullmatch, self.words))
        names_memory = any(map(_OF_MEMORY.match, self.words))
        return self.meaning == HOST_MEMORY and is_killed and not names_memory

    def __str__(self) -> str:
        """Returns one line for people: "AlgorithmError, exit code 137: host out of memory"."""
        return ": ".join(filter(None, (", ".join(self.words), self.meaning)))


def parse_failure(text: str | None) -> Failure | None:
    """Returns the known words of a failure message; None if there are none.

    `text` may also be the text of a stored Failure.
    """
    if not text:  # most jobs completed, and each pattern would be searched in vain
        return None
    text = _COMMAND.sub(" ", text[:_MAX_CHARACTERS])
    head, _, tail = text.rpartition(": ")
    if tail in CLASSES and _is_shown_text(head):
        return Failure(tuple(filter(None, head.split(", "))), tail)
    words = tuple(text.split(", ")) if text and _is_shown_text(text) else _words(text)
    lower = text.lower()
    meanings = (
        word for patterns, word in _PATTERNS for pattern in patterns if re.search(pattern, lower)
    )
    meaning = next(meanings, None)
    return Failure(words, meaning) if words or meaning else None


def _is_shown_text(text: str) -> bool:
    words = text.split(", ") if text else ()
    return all(word in _SHOWN_WORDS or _SHOWN_NUMBER.fullmatch(word) for word in words)


def _words(text: str) -> tuple[str, ...]:
    lower = text.lower()
    words = [word for word in _IDENTIFIER.findall(text) if word in _KNOWN]
    for number, template in _NUMBERS:
        words += [template.format(*hit.groups()) for hit in re.finditer(number, lower)]
    words += [word for phrase, word in _PHRASES if re.search(phrase, lower)]
    return tuple(dict.fromkeys(words))[:_MAX_WORDS]
