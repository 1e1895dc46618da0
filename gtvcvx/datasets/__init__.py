"""Real data that come with the package."""

from gtvcvx.datasets._us_income import USIncome, USIncomePaths, load_us_income, us_income_paths

__all__ = ["USIncome", "USIncomePaths", "load_us_income", "us_income_paths"]


def __dir__() -> list[str]:
    return sorted(__all__)
