"""Run by external.py in an environment that has prox-tv: one chain in, one w out."""

import sys
import time

import numpy as np
import prox_tv
from external_answer import write

given, answer = sys.argv[1:]
data = dict(np.load(given))
curvature = data["curvature"][0]
# 1/2 ||w - y||^2 + lam sum |w_i - w_(i+1)|: all divided by the curvature. It is exact.
signal, lam = data["centre"][:, 0] / curvature, data["capacities"][0] / curvature
start = time.perf_counter()
w = prox_tv.tv1_1d(signal, lam, method="condat")
write(answer, np.asarray(w)[:, None], time.perf_counter() - start)
