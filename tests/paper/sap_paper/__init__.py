"""Test cases of the paper, run through the service, and the report that compares the figures.

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"]. The
equations, symbols and order are the paper's.
"""
