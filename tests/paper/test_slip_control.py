"""Section VI-D: a gripper that lets a spatula pitch by loosening its grip."""

from __future__ import annotations

from sap_paper import slip_control
from sap_paper.setting import Setting


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert slip_control.run(setting).unmet() == []
