"""Algorithm 1 of [GTV] to the letter, and its inexact local updates."""
