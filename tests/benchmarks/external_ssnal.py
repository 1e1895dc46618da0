"""Run by external.py in an environment that has PyClustrPath: points in, one w out.

It makes weights itself, exp(-||x_i - x_j||^2 / 2) of nearest neighbours, which are those of F9. The
calls are those of its demonstration. Whatever it returns is judged by its objective.
"""

import sys
import time
from argparse import Namespace

import numpy as np
import torch
from external_answer import write
from pyclustrpath import ConvexClusterSolver, DataProcessor, gv

NEIGHBOURS, PHI = 10, 0.5  # as in clustering.py

given, answer = sys.argv[1:]
data = dict(np.load(given))
curvature, edges, tolerance = data["curvature"][0], data["edges"], float(data["tolerance"])
points = data["centre"] / curvature
squared = np.sum((points[edges[:, 0]] - points[edges[:, 1]]) ** 2, axis=1)
gamma = float(np.median(data["capacities"] * np.exp(PHI * squared)) / curvature)

options = {"stop_tol": tolerance, "max_iter": 10_000, "use_kkt": False, "device": "cpu"}
gv._init(Namespace(solver="ssnal", k_neighbor=NEIGHBOURS, sigma=1.0, **options))
start = time.perf_counter()
columns = torch.from_numpy(np.ascontiguousarray(points.T))
prepared = DataProcessor(X=columns, k=NEIGHBOURS, device="cpu")
solver = ConvexClusterSolver(method="ssnal", gamma_list=np.array([gamma]), **options)
found = solver.solve(prepared)
seconds = time.perf_counter() - start
last = found[-1] if isinstance(found, (list, tuple)) else found
w = np.squeeze(np.asarray(last, dtype=float))
write(answer, w if w.shape == points.shape else w.T.reshape(points.shape), seconds)
