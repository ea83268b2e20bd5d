"""A plugin of pytest for run_newton.py: keeps the tests of two solvers, and replaces these.

With SAP_PEERS_REPLACED=1 SapSolver takes the place of both; it ignores their options.
"""

import os

import newton.solvers

REPLACED = ("Featherstone", "XPBD")


def pytest_collection_modifyitems(config, items):
    kept = [i for i in items if any(name.lower() in i.name.lower() for name in REPLACED)]
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


def replace():
    from sap_islands.newton import SapSolver

    class Replacement(SapSolver):
        def __init__(self, model, *_, **__):
            super().__init__(model)

    for name in REPLACED:
        setattr(newton.solvers, f"Solver{name}", Replacement)


if os.environ.get("SAP_PEERS_REPLACED") == "1":
    replace()
