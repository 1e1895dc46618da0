"""Choosing the regularization parameter by the errors of data that were held out."""

from gtvcvx.model_selection._cross_validate import CrossValidation, cross_validate

__all__ = ["CrossValidation", "cross_validate"]


def __dir__() -> list[str]:
    return sorted(__all__)
