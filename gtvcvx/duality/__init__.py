"""Valid lower bounds: flows are repaired until they are dual feasible, then evaluated."""
