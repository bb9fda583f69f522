"""What frameworks print when a run fails, each form with its public source."""

import pytest

from sageaudit.domain.job.course import failure_class
from sageaudit.domain.job.failure_words import parse_failure
from sageaudit.domain.job.job import Job
from tests.fakes.jobs import ran

HOST, GPU = "host out of memory", "GPU out of memory"
FORMS = {
    "pytorch/pytorch torch/csrc/DataLoader.cpp": (
        "RuntimeError: DataLoader worker (pid 233) is killed by signal: Killed.",
        HOST,
    ),
    "pytorch/pytorch#108861": (
        (
            "DataLoader worker (pid 11011) is killed by signal: Bus error. It is possible that"
            " dataloader's workers are out of shared memory."
        ),
        HOST,
    ),
    "pytorch/pytorch#16979": (
        (
            "Unexpected bus error encountered in worker. This might be caused by insufficient"
            " shared memory (shm)."
        ),
        HOST,
    ),
    "pytorch, torch.multiprocessing": (
        "RuntimeError: unable to open shared memory object </torch_31_42> in read-write mode",
        HOST,
    ),
    "torchrun's error file": (
        "ChildFailedError: exitcode  : -9 (pid: 79468), Signal 9 (SIGKILL) received by PID 79468",
        HOST,
    ),
    "CPython, subprocess.CalledProcessError": (
        "Command '['python', 'x.py']' died with <Signals.SIGKILL: 9>.",
        HOST,
    ),
    "Open MPI, orterun": ("mpirun noticed that process 0 exited on signal 9 (Killed).", HOST),
    "npm and other parents of a shell": ("exit status 137", HOST),
    "Slurm logs": ("Detected 1 oom_kill event, exit_code=137", HOST),
    "ray-project/ray#30312": (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        HOST,
    ),
    "ray-project/ray#34695": (
        "13 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
        HOST,
    ),
    "apache/spark#38233": (
        "The executor with id 32 exited with exit code 137 (SIGKILL, possible container OOM).",
        HOST,
    ),
    "yahoo/TensorFlowOnSpark#134": (
        (
            "ExecutorLostFailure (executor 9 exited) Reason: Container killed by YARN for exceeding"
            " memory limits. 7.2 GB of 4.2 GB virtual memory used."
        ),
        HOST,
    ),
    "OpenJDK": ("java.lang.OutOfMemoryError: GC overhead limit exceeded", HOST),
    "dmlc/xgboost#9793": (
        (
            "XGBoostError: Memory allocation error on worker 0: std::bad_alloc:"
            " cudaErrorMemoryAllocation: out of memory"
        ),
        GPU,
    ),
    "apache/mxnet, pooled_storage_manager.h": (
        "MXNetError: cudaMalloc retry failed: out of memory",
        GPU,
    ),
    "tensorflow, bfc_allocator.cc": (
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.1GiB",
        GPU,
    ),
    "NVIDIA/Megatron-LM#1207": (
        (
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5,"
            " OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600013 milliseconds before timing out."
        ),
        "communication error",
    ),
    "pytorch, TCPStore.cpp": (
        "DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.",
        "communication error",
    ),
    "pytorch, NCCLUtils.hpp": (
        "DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, unhandled system error",
        "communication error",
    ),
    "horovod, exceptions.py": (
        "exceptions.HorovodInternalError: ncclAllReduce failed: unhandled cuda error",
        "communication error",
    ),
    "DIAGNijmegen/rse-grand-challenge#2836": (
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "hardware error",
    ),
    "NVIDIA, Xid 79": ("NVRM: Xid 79, GPU has fallen off the bus.", "hardware error"),
    "DIAGNijmegen/rse-grand-challenge#2631": (
        "CapacityError: Unable to provision requested ML compute capacity.",
        "capacity error",
    ),
    "Amazon EC2, error codes": (
        "InsufficientInstanceCapacity: We currently do not have sufficient capacity",
        "capacity error",
    ),
    "aws/sagemaker-python-sdk#70": (
        "InternalServerError: We encountered an internal error. Please try again.",
        "AWS error",
    ),
    "cloud-custodian, DescribeTrainingJob": (
        "ClientError: Unable to read input data. (caused by MXNetError)",
        "data error",
    ),
    "tensorflow, record_reader.cc": ("DataLossError: corrupted record at 0", "data error"),
    "huggingface/datasets, exceptions.py": (
        "datasets.exceptions.DatasetGenerationError: An error occurred while generating",
        "data error",
    ),
    "pandas, parsers.pyx": (
        "ParserError: Error tokenizing data. C error: Expected 3 fields",
        "data error",
    ),
    "huggingface_hub, errors.py": (
        "GatedRepoError: 403 Client Error. Cannot access gated repo for url",
        "permission error",
    ),
    "Linux, ENOSPC": ("OSError: [Errno 28] : '/opt/ml/model/x'", "disk error"),
    "huggingface/notebooks#136": (
        'AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "raise EnvironmentError"',
        "code error",
    ),
    "aws/sagemaker-python-sdk#134": ("AlgorithmError: Exit Code: 139", "code error"),
}


def failed(message: str, status: str = "Failed") -> Job:
    """Returns an hour that ended with this message."""
    words = parse_failure(message)
    return ran(3600, failure=str(words), status=status, secondary_status=status)


@pytest.mark.parametrize(("message", "meaning"), FORMS.values(), ids=FORMS)
def test_a_form_has_its_class(message: str, meaning: str) -> None:
    """Also if SageMaker's toolkit puts its own words around it, and after it was stored."""
    assert failure_class(failed(message)) == meaning
    if meaning not in {"AWS error", "code error"}:
        wrapped = f'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "{message}"'
        assert failure_class(failed(wrapped)) == meaning


def test_a_process_that_a_stop_killed_lacked_no_memory() -> None:
    """SageMaker stops a container with SIGTERM, then with SIGKILL."""
    assert failure_class(failed("AlgorithmError: exit code 137", "Stopped")) == "stopped"
    assert failure_class(failed("MemoryError, exit code 137", "Stopped")) == HOST


def test_a_killed_process_is_not_certain_to_have_lacked_memory() -> None:
    for message, is_only_killed in {
        "exit code 137": True,
        "DataLoader worker (pid 2) is killed by signal: Killed.": True,
        "exit code 137: killed by the OOM killer": False,
        "MemoryError, exit code -9": False,
        "exit code 1": False,
    }.items():
        failure = parse_failure(message)
        assert failure is not None
        assert failure.is_only_killed is is_only_killed, message
