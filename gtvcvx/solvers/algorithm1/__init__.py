"""Algorithm 1 of [GTV] to the letter, and its inexact local updates."""

from gtvcvx.solvers.algorithm1._local_updates import GradientSteps, LocalUpdate

__all__ = ["GradientSteps", "LocalUpdate"]
