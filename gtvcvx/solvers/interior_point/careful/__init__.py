"""Cone programs by a predictor-corrector method whose systems are solved in twice the digits."""
