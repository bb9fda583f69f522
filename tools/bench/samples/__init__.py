"""Samples of the bench: each module measures one version of the code."""
