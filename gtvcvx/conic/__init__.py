"""Users' CVXPY functions in conic form, and their evaluation by one warm conic solver."""
