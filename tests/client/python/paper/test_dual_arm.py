"""Section VI-E: two arms open a jar, pour its marbles into a bowl, and close it."""

from __future__ import annotations

from sap_paper import dual_arm
from sap_paper.setting import Setting


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert dual_arm.run(setting).unmet() == []
