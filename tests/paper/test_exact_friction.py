"""Exact Coulomb friction on trajectories: closed forms, and bodies in a bin."""

from __future__ import annotations

import numpy as np
from sap_paper import exact_friction
from sap_paper.setting import Setting


def test_closed_forms_hold_and_every_step_is_solved(setting: Setting) -> None:
    case = exact_friction.run(setting)
    assert case.unmet() == []
    assert len(case.claims) >= 10


def test_the_convex_model_throws_up_what_is_put_down_at_speed(setting: Setting) -> None:
    scene = exact_friction.Slide("floor", 0.5, speed=3.0)
    convex = exact_friction.slide(setting.client, scene, exact_friction.LAWS["convex"], 30)
    exact = exact_friction.slide(setting.client, scene, exact_friction.LAWS["exact"], 30)
    assert convex.distance.max() > 0.05
    assert exact.distance.max() <= 0.0
    assert np.all(np.diff(exact.speed) < 0.0)
