"""Measures speed and size. Each figure is compared with a floor or a peer in the same run."""
