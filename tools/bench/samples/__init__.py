"""What is measured: each module measures the version of sageaudit that is first on PYTHONPATH.

A module has `MEASURED`, by label the unit and a call that takes one sample. It imports only
sageaudit, `infra`, `local` and `tests` of that version, and libraries, so that two versions are
measured by the same code. Set-up is outside the times and kept for the next sample. A label that
begins with `PEER` is a floor or peer; one that ends in ", n=1000" is a point of a curve.
"""

PEER = "peer: "
