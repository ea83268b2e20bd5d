"""Former name of `sap_islands.unsolved_policy`."""

from sap_islands.unsolved_policy import OnUnsolved, Unsolved, UnsolvedWarning

__all__ = ["OnUnsolved", "Unsolved", "UnsolvedWarning"]
