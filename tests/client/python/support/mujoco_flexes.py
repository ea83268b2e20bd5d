"""Models with flexes: cables, cloths and solids, in contact with bodies and with each other."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

PLANE = '<geom type="plane" size="3 3 .1"/>'
SPHERE = '<geom size=".15" pos="0 0 .15"/>'
BALL = '<body pos=".01 .02 .42"><freejoint/><geom size=".06" mass=".2"/></body>'
EDGES = '<edge equality="true"/>'
SHELL = """<elasticity young="3e4" poisson=".1" thickness="1e-2" damping="1e-3"
elastic2d="both"/>"""
SOFT_SHELL = SHELL.replace("3e4", "3e3")
SOLID = '<elasticity young="5e3" poisson=".2" damping="1e-3"/>'
ARM = """<body name="arm" pos="-.3 0 .6"><joint name="a" axis="0 1 0" damping="1"/>
<geom type="capsule" size=".02" fromto="0 0 0 .15 0 0" contype="0" conaffinity="0"/>
<body name="fore" pos=".15 0 0"><joint name="b" axis="0 1 0" damping="1"/>
<geom type="capsule" size=".02" fromto="0 0 0 .1 0 0" contype="0" conaffinity="0"/>{}
</body></body>"""


def _flex(name: str, dim: int, count: str, pos: str, inside: str, **attributes: str) -> str:
    more = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"""<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" pos="{pos}"
    spacing=".06 .06 .06" radius=".01" mass=".4" {more}>{inside}
    {"" if "<contact" in inside else '<contact selfcollide="none"/>'}</flexcomp>"""


def _cable(pos: str, inside: str) -> str:
    return _flex("cable", 1, "10 1 1", pos, inside)


def _cloth(pos: str, inside: str, name: str = "cloth", size: int = 6) -> str:
    return _flex(name, 2, f"{size} {size} 1", pos, inside)


def _block(pos: str, inside: str = SOLID, name: str = "block", **attributes: str) -> str:
    return _flex(name, 3, "4 4 4", pos, inside, **attributes)


# Bodies of each scene, and what is outside of the world.
_SCENES: dict[str, tuple[str, str]] = {
    "cable on a sphere": (PLANE + SPHERE + _cable("-.1 .02 .309", EDGES), ""),
    "cable held at an end": (PLANE + _cable("0 0 .0101", EDGES + '<pin id="0"/>'), ""),
    "cable that stretches": (
        PLANE + SPHERE + _cable("-.1 .02 .309", '<edge stiffness="100" damping=".1"/>'),
        "",
    ),
    "cloth on a sphere": (PLANE + SPHERE + _cloth("0 0 .309", EDGES), ""),
    "elastic cloth on a sphere": (PLANE + SPHERE + _cloth("0 0 .309", SOFT_SHELL), ""),
    "cloth that bends": (
        PLANE + SPHERE + _cloth("0 0 .309", EDGES + SHELL.replace('"both"', '"bend"')),
        "",
    ),
    "cloth that touches itself": (
        PLANE
        + _cloth("0 0 .04", SOFT_SHELL + '<contact selfcollide="auto"/>').replace(
            'name="cloth"', 'name="cloth" euler="88 0 0"'
        ),
        "",
    ),
    "cloth held by an arm": (
        PLANE + SPHERE + ARM.format(_cloth(".2 0 -.291", EDGES + '<pin id="0 1 2"/>')),
        '<actuator><position joint="b" kp="10"/></actuator>',
    ),
    "elastic cloth on an arm": (
        PLANE + SPHERE + ARM.format(_cloth(".2 0 -.291", SHELL + '<pin id="0 1 2"/>')),
        "",
    ),
    "elastic cloth on free bodies": (
        PLANE
        + "".join(
            f'''<body name="{name}" pos="{x} {y} .045"><freejoint/>
            <geom type="box" size=".02 .03 .04" mass=".1" euler="10 20 30"/></body>'''
            for name, x, y in (("p", 0, 0), ("q", 0.2, 0), ("r", 0, 0.2), ("s", 0.2, 0.2))
        ),
        """<deformable><flex name="cloth" dim="2" radius=".01" body="p q r s" element="0 1 2 1 3 2">
        <elasticity young="3e4" poisson=".1" thickness="1e-2" damping="1e-3" elastic2d="both"/>
        </flex></deformable>""",
    ),
    "block on a plane": (PLANE + _block("0 0 .0995"), ""),
    "ball on a block": (PLANE + _block("0 0 .0995") + BALL.replace(".42", ".2585"), ""),
    "friction about the normal": (
        PLANE
        + _block("0 0 .0995", SOLID + '<contact condim="4" selfcollide="none"/>')
        + BALL.replace(".42", ".2585"),
        "",
    ),
    "block on a block": (PLANE + _block("0 0 .0995") + _block("0.03 .02 .299", name="upper"), ""),
    "cable on a cloth": (
        SPHERE + _cloth("0 0 .309", EDGES) + _cable("-.2 .01 .328", EDGES),
        "",
    ),
    "rigid block": (
        PLANE + '<body name="hub" pos="0 0 .0995"><freejoint/>'
        '<geom size=".02" mass=".1"/>' + _block("0 0 0", "", rigid="true") + "</body>",
        "",
    ),
    "trilinear block": (
        PLANE + _block("0 0 .0995", dof="trilinear") + BALL.replace(".42", ".2585"),
        "",
    ),
    "quadratic block": (
        PLANE + _block("0 0 .0995", dof="quadratic") + BALL.replace(".42", ".2585"),
        "",
    ),
    "strain of a trilinear block": (
        PLANE + _block("0 0 .0995", '<edge equality="strain"/>', dof="trilinear"),
        "",
    ),
}
NAMES = tuple(_SCENES)

# Scenes that need the integrator `discrete`, or are refused under it.
_SCENES["passive contacts"] = (
    PLANE
    + _block("0 0 .0995", SOLID + '<contact selfcollide="none" passive="true"/>')
    + BALL.replace(".42", ".2585"),
    "",
)
OF_DISCRETE = ("passive contacts",)
_SCENES["cable that twists"] = (
    PLANE + _cable("0 0 .1", '<elasticity young="1e5" poisson="0" damping="1e-3"/>'),
    "",
)


def flex_model(name: str, options: str = "") -> Any:
    """A model, with a tight tolerance."""
    bodies, more = _SCENES[name]
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="1e-3" iterations="400" ls_iterations="200" tolerance="1e-14"
        ls_tolerance="1e-12" {options}/><size memory="100M"/><worldbody>{bodies}</worldbody>{more}
        </mujoco>"""
    )


def large_cloth(cone: str) -> Any:
    """A cloth that is one island, on a sphere."""
    bodies = SPHERE + _cloth("0 0 .309", EDGES, size=16)
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option cone="{cone}" timestep="1e-3"/><size memory="100M"/>
        <worldbody>{bodies}</worldbody></mujoco>"""
    )


def in_motion(model: mujoco.MjModel) -> mujoco.MjData:
    """A state from which bodies touch each other soon."""
    data = mujoco.MjData(model)
    data.qvel[:] = 0.05 * np.random.default_rng(1).normal(size=model.nv)
    data.ctrl[:] = 0.3
    return data
