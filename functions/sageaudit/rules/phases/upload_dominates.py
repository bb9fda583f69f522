"""Uploading the results takes a large share of the billed time.

What it checks: Uploading takes over 2 minutes and at least 10% of the billed phases, or over 10
    minutes that cost at least $10.
Why it costs: Uploading is billed like Training: all instances wait. Meanwhile /opt/ml/model and
    /opt/ml/output/data are packed into model.tar.gz and output.tar.gz, and sent to S3.
Saving: Between 0 and the whole phase. The packing can be skipped and the artifact made smaller, but
    the final model must be sent. The low end, 0, is counted; the next run measures the rest.
When it is wrong: A large model that is not packed, and is needed as it is, must be sent once.
What to do: Do one or more of these:
    - Set CompressionType to NONE, which skips the packing on one core. It leaves many objects
      instead of one model.tar.gz: the model registry, endpoints and every job that uses the
      artifact must expect that.
    - Leave only the final weights in /opt/ml/model, without optimizer state and earlier epochs.
    - If the run writes many checkpoints, use CheckpointConfig, which copies /opt/ml/checkpoints
      during training. It does not shorten the upload of one model. The finding names it only if the
      job shows signs of checkpoints.
Sources: botocore, OutputDataConfig.CompressionType: "Select None to output an uncompressed model,
    recommended for large model outputs". 79 of 82 recorded uploads take 75 s or less, the others
    149, 293 and 907 s.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.phases import phase_share as phases

MIN_SHARE = api.Threshold(
    "min_share_percent", 10, "percent of billed seconds", "a tenth of the bill"
)
MIN_LENGTH = api.Threshold(
    "min_duration_s", 120, "seconds", "ordinary uploads take up to 75 s", "recorded jobs"
)
_RANGE_CAUTION = phases.range_caution("The final model must be sent in any case")
_COMPRESSION_CAUTION = (
    " CompressionType NONE leaves many objects instead of one model.tar.gz: the model registry, "
    "endpoints and later jobs must expect that."
)

_CHECKPOINT_CAUTION = " Checkpoints in S3 help only if the upload consists of checkpoints."


@api.rule(
    id="SA103",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_SHARE, MIN_LENGTH, phases.EXPENSIVE_ABOVE_USD, phases.EXPENSIVE_ABOVE_S),
    not_applicable=(api.serverless_reason,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges only the phases, not the metrics."""
    job, compression = case.job, case.job.output_compression
    share = phases.find_large_share(
        case,
        "Uploading",
        min_s=case.threshold(MIN_LENGTH),
        min_percent=case.threshold(MIN_SHARE),
    )
    if not isinstance(share, phases.PhaseShare):
        return share
    is_packed = compression != "NONE"
    suggest_checkpoints = job.hints.own_checkpoints and not job.checkpointed
    no_packing = api.Parameter("OutputDataConfig.CompressionType", compression, "NONE")
    return api.derived_saving(
        f"Uploading took {share.text}, after the code had ended.",
        {
            "uploading_s": share.seconds,
            "uploading_billed_s": round(share.phase_billed_s),
            "billed_s": share.billed_s,
            "uploading_percent": round(share.percent, 1),
            "compression": compression or "GZIP (the default)",
            "checkpointed": job.checkpointed,
        },
        fix=(no_packing,) if is_packed else (),
        alternatives=((api.CHECKPOINTS,),) if suggest_checkpoints else (),
        caution=f"{_RANGE_CAUTION}{_COMPRESSION_CAUTION if is_packed else ''}"
        f"{_CHECKPOINT_CAUTION if suggest_checkpoints else ''}",
        **api.phase_cut_range("Uploading", share.seconds),
    )
