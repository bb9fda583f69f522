"""Scripts that measure one version of the code. A worker runs them for each checkout."""
