"""The battery of instances that any solver can be run through."""
