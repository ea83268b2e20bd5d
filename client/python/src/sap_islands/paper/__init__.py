"""Runs the test cases of the paper through the service and compares the figures.

    python -m sap_islands.paper [CASE...] [--full] [--out DIR]

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"]. The
equations, symbols and order are the paper's. Needs the extra "paper": matplotlib, scipy, clarabel,
gurobipy, mujoco and drake.
"""
