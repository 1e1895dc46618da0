"""Choosing the regularization parameter by the errors of data that were held out."""

from gtvcvx._callbacks import CrossValidationCallback, CrossValidationProgress
from gtvcvx.model_selection._cross_validate import CrossValidation, cross_validate

__all__ = [
    "CrossValidation",
    "CrossValidationCallback",
    "CrossValidationProgress",
    "cross_validate",
]


def __dir__() -> list[str]:
    return sorted(__all__)
