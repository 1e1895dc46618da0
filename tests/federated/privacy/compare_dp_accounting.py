"""The accountant against PyPI's dp-accounting 0.6.0: run by hand, not collected by pytest.

    python tests/federated/privacy/compare_dp_accounting.py [folder of the environment]

That package pins an old attrs and brings four others, so that it gets an environment of its own,
in a temporary folder unless one is given. Its RDP accountant has fixed orders, hence bounds no less
than our best one and nearly equal; its PLD accountant rounds losses up to a grid, hence lies a
little above our exact value. Its mpmath checks that no value is below the truth, in 60 digits.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = "dp-accounting==0.6.0"
# First zCDP, factor of the variance, rounds: those of the specification come first.
SCHEDULES = [
    (1e-4, 0.98, 100),
    (1e-4, 0.98, 200),
    (1e-4, 0.98, 300),
    (1e-3, 0.99, 200),
    (1e-3, 0.9, 50),
    (1e-5, 1.0, 10),
    (0.1, 0.98, 20),
]
DELTAS = (1e-9, 1e-5, 1e-2)
RHOS = tuple(10.0**k for k in range(-12, 5))
ALL_DELTAS = (1e-15, 1e-9, 1e-5, 1e-3, 0.1, 0.5)

# Runs in the other environment: reads our numbers, prints theirs beside them.
JUDGE = r"""
import json, math, sys
import dp_accounting as dp
from dp_accounting.pld import pld_privacy_accountant as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp
import mpmath as mp

given = json.load(sys.stdin)
orders = [1 + x / 100 for x in range(1, 2000)] + list(range(21, 4000))
wrong = 0
for row in given["schedules"]:
    phi, zeta, rounds, delta = row["schedule"]
    renyi = rdp.RdpAccountant(orders=orders)
    for n in range(rounds):
        renyi.compose(dp.GaussianDpEvent(1 / math.sqrt(2 * phi * zeta**-n)))
    by_rdp = renyi.get_epsilon(delta)
    step = 1e-3 if row["rho"] > 0.5 else 1e-4
    loss = pld.PLDAccountant(value_discretization_interval=step)
    loss.compose(dp.GaussianDpEvent(1 / math.sqrt(2 * row["rho"])))
    by_pld = loss.get_epsilon(delta)
    # Orders are at least .01 apart; losses are rounded up to the grid, by a step at most.
    good = row["zcdp"] <= by_rdp * (1 + 1e-9) and by_rdp <= row["zcdp"] * 1.002 + 1e-6
    good &= row["gaussian"] * (1 - 1e-6) - 1e-9 <= by_pld <= row["gaussian"] * 1.001 + 2 * step
    wrong += not good
    print(
        f"phi {phi:g} zeta {zeta:g} n {rounds} delta {delta:g}: (51) {row['simple']:.5g} | "
        f"zCDP {row['zcdp']:.6g}, RDP {by_rdp:.6g} | Gaussian {row['gaussian']:.6g}, "
        f"PLD {by_pld:.6g} {'' if good else 'DIFFERS'}"
    )

mp.mp.dps = 60
worst = below = 0
def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2
for rho, delta, ours in given["grid"]:
    mu = mp.sqrt(2 * mp.mpf(rho))
    def excess(e):
        return normal(mu / 2 - e / mu) - mp.exp(e) * normal(-mu / 2 - e / mu) - mp.mpf(delta)
    if ours == 0:
        below += excess(mp.mpf(0)) > mp.mpf(delta) * mp.mpf(10) ** -14
        continue
    below += excess(mp.mpf(ours)) > 0
    low, high = mp.mpf(0), 2 * mp.mpf(ours)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    worst = max(worst, (mp.mpf(ours) - high) / high)
wrong += bool(below) + (worst > 1e-10)
print(
    f"{len(given['grid'])} values of the Gaussian: {below} below the truth in 60 digits, "
    f"at most {mp.nstr(worst, 3)} above it (relative)"
)
print("agreed" if not wrong else f"{wrong} DIFFER")
sys.exit(bool(wrong))
"""


def environment(folder: Path) -> Path:
    """Make a virtual environment with the package, if it is not there, and return its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    return python


def ours() -> str:
    """Our numbers, as JSON."""
    # Below, so that the text above can be read without the package.
    from gtvcvx.federated.privacy import (
        GeometricVariance,
        ZcdpAccountant,
        epsilon_gaussian,
        epsilon_simple,
        epsilon_zcdp,
    )

    schedules = []
    for (phi, zeta, rounds), delta in itertools.product(SCHEDULES, DELTAS):
        variances = GeometricVariance(1.0, zeta)
        accountant = ZcdpAccountant(["client"])
        for n in range(1, rounds + 1):
            accountant.record("client", n, (2 * phi) ** 0.5, variances.variance(n))
        rho = accountant.rho("client")
        numbers = {
            "rho": rho,
            "simple": epsilon_simple(rho, delta),
            "zcdp": epsilon_zcdp(rho, delta),
            "gaussian": epsilon_gaussian(rho, delta),
        }
        schedules.append({"schedule": (phi, zeta, rounds, delta), **numbers})
    grid = [(r, d, epsilon_gaussian(r, d)) for r, d in itertools.product(RHOS, ALL_DELTAS)]
    return json.dumps({"schedules": schedules, "grid": grid})


def main(arguments: list[str]) -> int:
    """Compare, print, and return 0 if all agree."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments[0]) if arguments else Path(temporary) / "environment"
        python = environment(folder)
        return subprocess.run([python, "-c", JUDGE], input=ours(), text=True).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
