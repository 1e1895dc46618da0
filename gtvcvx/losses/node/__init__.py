"""One node's convex problem, compiled: proximal points, minimizers, conjugates."""
