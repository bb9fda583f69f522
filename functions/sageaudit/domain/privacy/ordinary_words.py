"""Words and shapes of failure messages that tell nobody a secret, whoever gave them.

The words are those of AWS's, Python's and the frameworks' own messages. As a value of a job they
are hidden behind their own key only, because "[redacted] failed in the [redacted] step" helps
nobody; a password that is such a word is no password.
"""

from __future__ import annotations

import re

_WORDS = frozenset(
    {
        "accelerator", "accuracy", "activation", "algorithm", "allocation", "architecture",
        "argument", "arguments", "artifact", "assertion", "attention", "attribute", "auto",
        "available", "backward", "baseline", "benchmark", "binary", "channel", "channels",
        "checkpoint", "checkpoints", "classification", "classifier", "cluster", "column",
        "columns", "configuration", "connection", "container", "current", "customer", "dataframe",
        "dataset", "datasets", "decoder", "deepspeed", "default", "dependencies", "detection",
        "development", "device", "dimension", "dimensions", "directory", "distributed",
        "download", "embedding", "embeddings", "encoder", "endpoint", "environment", "epoch",
        "estimator", "eval", "evaluate", "evaluation", "evaluator", "exception", "execution",
        "experiment", "external", "failed", "failure", "feature", "features", "finetune",
        "finetuning", "forward", "framework", "function", "generation", "generator", "gradient",
        "gradients", "histogram", "horovod", "huggingface", "hyperparameters", "inference",
        "initialization", "input", "instance", "iteration", "iterations", "keras", "label",
        "labels", "language", "latest", "launcher", "learning", "library", "lightning", "linear",
        "logging", "logistic", "loss", "maximize", "maximum", "memory", "metric", "metrics",
        "minimize", "minimum", "model", "models", "module", "monitoring", "multiclass", "network",
        "normalization", "notebook", "objective", "operation", "optimization", "optimizer",
        "output", "parallel", "parameter", "parameters", "parquet", "performance", "permission",
        "pipeline", "precision", "predict", "prediction", "predictions", "preprocess",
        "preprocessing", "pretrained", "pretraining", "processing", "processor", "production",
        "profiler", "profiling", "project", "pytorch", "quantization", "recall", "recommendation",
        "regression", "regressor", "request", "required", "resource", "response", "runtime",
        "sagemaker", "scheduler", "segmentation", "sentiment", "sequence", "sklearn", "softmax",
        "staging", "strategy", "streaming", "supervised", "target", "tensor", "tensorboard",
        "tensorflow", "test", "testing", "timeout", "timestamp", "token", "tokenizer",
        "torchvision", "train", "trainer", "training", "transform", "transformer", "transformers",
        "translation", "tuning", "unsupervised", "upload", "val", "validate", "validation",
        "version", "vision", "volume", "warmup", "weights", "workers", "xgboost",
    }
)  # fmt: skip
"""Words of the messages of SageMaker, CloudWatch, Python, PyTorch, TensorFlow and their kin."""
_RULES = frozenset(
    {
        "AllZero", "BatchSize", "CheckInputImages", "ClassImbalance", "Confusion",
        "CPUBottleneck", "CreateXgboostReport", "Dataloader", "DeadRelu", "ExplodingTensor",
        "FeatureImportanceOverweight", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing",
        "LossNotDecreasing", "LowGPUUtilization", "MaxInitializationTime", "NLPSequenceRatio",
        "OverallFrameworkMetrics", "OverallSystemUsage", "Overfit", "Overtraining",
        "PoorWeightInitialization", "ProfilerReport", "SaturatedActivation", "SimilarAcrossRuns",
        "StalledTrainingRule", "StepOutlier", "TensorVariance", "TreeDepth", "UnchangedTensor",
        "VanishingGradient", "WeightUpdateRatio",
    }
)  # fmt: skip
"""Debugger's built-in rules: "List of Debugger built-in rules", Amazon SageMaker AI guide."""
_STATES = frozenset(
    {
        "absent", "accepted", "bad", "blocked", "closed", "corrupt", "corrupted", "denied",
        "error", "exceeded", "exhausted", "expired", "false", "found", "ignored", "illegal",
        "incorrect", "invalid", "lost", "malformed", "mismatch", "missing", "no", "none",
        "null", "off", "ok", "on", "optional", "passed", "refused", "rejected", "revoked",
        "skipped", "success", "true", "unknown", "unset", "unsupported", "wrong", "yes",
    }
)  # fmt: skip
_MOST_WORDS = 3
"""Three words in one value, such as validation_accuracy; a longer chain is a passphrase."""
_BETWEEN = re.compile(r"[\s_.:/-]+")
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}(?:\.[0-9]{1,8})?(?:[eE][+-]?[0-9]{1,3})?%?\Z")
_SIGNAL = re.compile(r"SIG[A-Z]{2,6}[0-9]{0,2}\Z")
_MODEL_TOKEN = re.compile(r"<\|?/?[a-z_]{1,20}\|?>\Z|\[[A-Z]{2,6}\]?\Z")


def is_ordinary(value: str) -> bool:
    """One to three words of failure messages."""
    words = _BETWEEN.split(value.strip().lower())
    return len(words) <= _MOST_WORDS and _WORDS.issuperset(words)


def is_debugger_rule(value: str) -> bool:
    """The name of a rule that AWS's Debugger has built in."""
    return value.strip() in _RULES


def is_state(value: str) -> bool:
    """What is said of a token or a cookie, or what it counts: `invalid`, 3, SIGKILL, <pad>.

    A number of more than six digits may be a password.
    """
    word = value.lower()
    return (
        word in _STATES
        or word in _WORDS
        or any(shape.match(value) for shape in (_NUMBER, _SIGNAL, _MODEL_TOKEN))
    )
