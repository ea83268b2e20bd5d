"""Section VI-C: iterations, convergence, speed and accuracy in clutter."""

from __future__ import annotations

from sap_paper import clutter
from sap_paper.setting import Setting


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert clutter.run(setting).unmet() == []
