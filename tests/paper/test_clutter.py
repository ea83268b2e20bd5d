"""Section VI-C: iterations, convergence, speed and accuracy in clutter."""

from __future__ import annotations

from sap_paper import clutter
from sap_paper.setting import Setting


def test_claims_of_the_paper_hold_but_for_the_contacts_without_walls(setting: Setting) -> None:
    unmet = [claim.what for claim in clutter.run(setting).unmet()]
    assert unmet == ["contacts at rest: more without walls than with"]
