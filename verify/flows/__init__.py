"""Maximum flow: compiled push-relabel on integers, and exact flows of any size."""
