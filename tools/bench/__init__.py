"""How fast everything is, each figure beside its floor or a peer measured in the same run."""
