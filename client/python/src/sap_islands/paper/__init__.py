"""The test cases of the paper, run through the service, each figure beside the paper's.

    python -m sap_islands.paper [CASE...] [--full] [--out DIR]

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"], whose
equations, symbols and order are kept. Needs matplotlib, scipy, clarabel, gurobipy, mujoco and
drake.
"""
