"""Stacks under load: depths and iterations of the rules for w."""

from __future__ import annotations

import numpy as np
import pytest
from sap_paper import load_path
from sap_paper.load_path import Rule, Scene, simulate, stack
from sap_paper.setting import Setting


def test_the_case_has_a_row_for_every_scene(setting: Setting) -> None:
    case = load_path.run(setting)
    assert [len(table.rows) for table in case.tables] == [7, 7, 3]
    assert case.unmet() == []


@pytest.mark.parametrize("masses", [[1.0] * 12, [1.0, 1000.0], [0.5, 20.0, 1.0, 300.0]])
def test_stacks_rest_as_deep_as_a_single_mass(setting: Setting, masses: list[float]) -> None:
    outcome = simulate(setting.client, Scene(stack(masses), 1.5), Rule.LOAD_PATH)
    assert 0.2 < outcome.bottom <= 1.05
    assert outcome.deepest <= 1.05
    assert outcome.energy < 1e-12


def test_the_tangential_part_is_that_of_the_full_rule(setting: Setting) -> None:
    """On a slope creep is σ w γ_t: that of FULL grows with the height, as R_n alone leaves it."""
    scene = Scene(load_path.slabs([1.0] * 6, np.deg2rad(10)), 1.0)
    slips = {rule: simulate(setting.client, scene, rule).slip for rule in Rule}
    assert slips[Rule.NORMAL] == pytest.approx(slips[Rule.FULL], rel=0.05)
    assert slips[Rule.LOAD_PATH] < 0.6 * slips[Rule.FULL]
