"""Viewer in the browser: bodies colored by island, contact forces, solver statistics.

The page is served by viser (extra "view"). It shows a simulation while it runs, or a saved one. It
can be paused, and a slider shows any step.
"""

from __future__ import annotations

import colorsys
import contextlib
import io
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import viser
from viser import uplot

from sap_islands.tools.shape_meshes import mesh_of
from sap_islands.tools.trajectory import Floats, Frame, Ints, Shape, Trajectory

_FREE_COLOR = (170, 170, 175)
_ARROW_COLOR = (30, 30, 30)
_MAX_LISTED_ISLANDS = 8
_MAX_PLOTTED_STEPS = 500
_FRAMES_PER_S = 30.0
_MAX_FRAMES = 20_000  # older frames of a running simulation are dropped
# Seven columns in a panel of 20 em.
_STYLE = """
.islands { padding: 0 0.75em; font-size: 0.65em; line-height: 1.3; }
.islands table { width: 100%; border-spacing: 0; }
.islands th, .islands td { text-align: right; vertical-align: bottom; padding-left: 0.3em; }
.islands td { white-space: nowrap; }
"""


def island_color(island: int) -> tuple[int, int, int]:
    """RGB color of an island, 0 to 255; consecutive islands differ strongly in hue."""
    if island < 0:
        return _FREE_COLOR
    red, green, blue = colorsys.hsv_to_rgb(island * 0.618034 % 1.0, 0.9, 0.75)
    return round(255 * red), round(255 * green), round(255 * blue)


class Viewer:
    """A page that shows a trajectory.

    Attributes:
        url: Address of the page.
        port: Port of the page.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        title: str = "sap-islands",
    ) -> None:
        """Starts to serve the page.

        Args:
            trajectory: The trajectory to show; `play` may append frames to it.
            host: Address to listen on.
            port: Port to listen on; if it is taken, the next free one.
            title: Title of the page.
        """
        self._trajectory = trajectory
        with contextlib.redirect_stdout(io.StringIO()):  # the caller prints the address
            self._server: Any = viser.ViserServer(host, port, label=title, verbose=False)
        self.port: int = self._server.get_port()
        self.url = f"http://{host}:{self.port}"
        self._server.scene.set_up_direction("+z")
        self._server.initial_camera.position = (0.8, -1.0, 0.9)
        self._server.initial_camera.look_at = (0.0, 0.0, 0.1)
        self._groups: list[_Group | _Deformable] = [
            _Group(self._server, i, g) for i, g in enumerate(_groups(trajectory.shapes))
        ]
        first = 0
        for number, shape in enumerate(trajectory.shapes):
            if shape.kind == "deformable":
                self._groups.append(_Deformable(self._server, number, shape, first))
                first += len(shape.vertices)
        self._lock = threading.Lock()
        self._playing = True
        self._shown = -1
        self._make_panel()

    @property
    def playing(self) -> bool:
        """Whether `play` advances; False while the page is paused."""
        return self._playing

    def close(self) -> None:
        """Stops serving the page."""
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    def play(
        self, next_frame: Callable[[], Frame] | None = None, duration_s: float | None = None
    ) -> None:
        """Shows frames, at most as fast as simulated time.

        Args:
            next_frame: Function that simulates a step; None: the trajectory is shown in a loop.
            duration_s: Time after which to return [s]; None: never.
        """
        stop = None if duration_s is None else time.monotonic() + duration_s
        next_show = 0.0
        while stop is None or time.monotonic() < stop:
            started = time.monotonic()
            if not self._playing:
                time.sleep(1 / _FRAMES_PER_S)
                continue
            if next_frame is not None:
                self._trajectory.frames.append(next_frame())
                del self._trajectory.frames[:-_MAX_FRAMES]
                index = len(self._trajectory.frames) - 1
            else:
                index = (self._shown + 1) % len(self._trajectory.frames)
                self._shown = index
            frame = self._trajectory.frames[index]
            if started >= next_show:
                next_show = started + 1 / _FRAMES_PER_S
                self.show(index)
            before = self._trajectory.frames[index - 1].time if index else frame.time
            time.sleep(max(0.0, frame.time - before - (time.monotonic() - started)))

    def show(self, index: int) -> None:
        """Shows one frame of the trajectory."""
        frame = self._trajectory.frames[index]
        with self._lock, self._server.atomic():
            self._shown = index
            for group in self._groups:
                group.show(frame)
            self._show_forces(frame)
            self._status.content = _status(frame)
            self._table.content = _table(frame)
            self._plot.data = _series(self._trajectory.frames[: index + 1])
            if self._playing:
                self._slider.max = max(1, len(self._trajectory.frames) - 1)
                self._slider.value = index
        self._server.flush()

    def _make_panel(self) -> None:
        gui = self._server.gui
        self._status = gui.add_markdown("Waiting for the first step.")
        self._button = gui.add_button("Pause")
        self._slider = gui.add_slider("Step", min=0, max=1, step=1, initial_value=0)
        self._arrows = gui.add_checkbox("Contact forces", initial_value=True)
        self._table = gui.add_html("")
        self._plot = gui.add_uplot(
            data=_series([]),
            series=(
                uplot.Series(label="time [s]"),
                uplot.Series(label="contacts", stroke="#3366cc", width=1.5),
                uplot.Series(label="islands", stroke="#dc3912", width=1.5),
                uplot.Series(label="most iterations", stroke="#109618", width=1.5),
            ),
            scales={"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)},
            aspect=1.6,
        )

        self._button.on_click(lambda _: self._toggle())
        self._slider.on_update(self._scrub)

    def _toggle(self) -> None:
        self._playing = not self._playing
        self._button.label = "Pause" if self._playing else "Play"

    def _scrub(self, event: Any) -> None:
        # `client` is None if `show` set the slider. Moved by the user, it pauses the page.
        if event.client is not None and self._trajectory.frames:
            self._playing = False
            self._button.label = "Play"
            self.show(min(int(self._slider.value), len(self._trajectory.frames) - 1))

    def _show_forces(self, frame: Frame) -> None:
        strength = np.linalg.norm(frame.contact_force, axis=1)
        keep = strength > 0.01 * strength.max(initial=0.0)
        if not self._arrows.value or not keep.any():
            keep = np.zeros(len(strength), bool)
        point, force, strength = (
            frame.contact_point[keep],
            frame.contact_force[keep],
            strength[keep],
        )
        # The length grows with the square root, so that small and large forces are both visible.
        length = 0.02 * np.sqrt(strength)[:, None]
        tip = point + force / np.maximum(strength, 1e-9)[:, None] * length
        ends = np.stack((point, tip), axis=1) if len(point) else np.zeros((1, 2, 3))
        self._server.scene.add_arrows(
            "/forces",
            ends.astype(np.float32),
            _ARROW_COLOR,
            shaft_radius=0.003,
            head_radius=0.008,
            head_length=0.02,
            visible=bool(len(point)),
        )


class _Group:
    """Shapes that share a mesh, drawn as one object."""

    def __init__(self, server: Any, number: int, group: tuple[Floats, Ints, Floats, Ints]) -> None:
        vertices, faces, scales, self._which = group
        count = len(self._which)
        self._handle = server.scene.add_batched_meshes_simple(
            f"/shapes/{number}",
            vertices,
            faces,
            batched_wxyzs=np.tile(np.array([1.0, 0, 0, 0], np.float32), (count, 1)),
            batched_positions=np.zeros((count, 3), np.float32),
            batched_scales=scales,
            batched_colors=np.tile(np.array(_FREE_COLOR, np.uint8), (count, 1)),
            flat_shading=True,
            lod="off",
        )

    def show(self, frame: Frame) -> None:
        self._handle.batched_positions = frame.position[self._which]
        self._handle.batched_wxyzs = frame.rotation[self._which]
        colors = [island_color(island) for island in frame.island[self._which].tolist()]
        self._handle.batched_colors = np.array(colors, np.uint8)


class _Deformable:
    """A shape whose vertices move, from `first` on in those of a frame."""

    def __init__(self, server: Any, number: int, shape: Shape, first: int) -> None:
        self._number = number
        self._own = slice(first, first + len(shape.vertices))
        self._handle = server.scene.add_mesh_simple(
            f"/deformable/{number}",
            shape.vertices,
            shape.faces,
            color=_FREE_COLOR,
            flat_shading=True,
            side="double",
        )

    def show(self, frame: Frame) -> None:
        self._handle.vertices = frame.deformed[self._own]
        self._handle.color = island_color(int(frame.island[self._number]))


def _groups(shapes: list[Shape]) -> list[tuple[Floats, Ints, Floats, Ints]]:
    """Groups opaque shapes by mesh: (vertices, faces, scale per shape, index per shape)."""
    groups: dict[object, tuple[Floats, Ints, list[Floats], list[int]]] = {}
    for number, shape in enumerate(shapes):
        if shape.color[3] < 0.5 or shape.kind == "deformable":
            continue
        scale = np.ones(3, np.float32)
        key: object
        if shape.kind in ("box", "ellipsoid"):
            key, scale = shape.kind, shape.size
        elif shape.kind == "sphere":
            key, scale = "ellipsoid", np.full(3, shape.size[0], np.float32)
        elif shape.kind == "mesh":
            key = (shape.vertices.tobytes(), shape.faces.tobytes())
        else:
            key = (shape.kind, tuple(shape.size.tolist()))
        if key not in groups:
            groups[key] = (*mesh_of(shape), [], [])
        groups[key][2].append(scale)
        groups[key][3].append(number)
    return [
        (vertices, faces, np.array(scales, np.float32), np.array(which, np.int32))
        for vertices, faces, scales, which in groups.values()
    ]


def _status(frame: Frame) -> str:
    lines = [
        f"**{frame.time:.2f} s**: {len(frame.iterations)} islands, "
        f"{len(frame.contact_point)} contacts",
        f"slowest island {1e3 * frame.solve_time_s.max(initial=0):.2f} ms, "
        f"at most {frame.iterations.max(initial=0)} iterations",
    ]
    if frame.unsolved:
        lines.append(f"**{frame.unsolved} islands not solved**")
    return "\n\n".join(lines)


def _table(frame: Frame) -> str:
    """HTML table of the islands with the most contacts and rows, narrow enough for the panel."""
    header = ("island", "dofs", "contacts", "rows", "iterations", "gap [J]", "time [ms]")
    lines = []
    largest = np.argsort(-frame.contacts - frame.rows, kind="stable")[:_MAX_LISTED_ISLANDS]
    for island in largest.tolist():
        numbers = (frame.dofs, frame.contacts, frame.rows, frame.iterations)
        cells = [island, *(array[island] for array in numbers)]
        gap, time_ms = frame.gap_bound[island], 1e3 * frame.solve_time_s[island]
        lines.append(_row("td", (*map(str, cells), f"{gap:.0e}", f"{time_ms:.3f}")))
    table = f"<table><thead>{_row('th', header)}</thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<style>{_STYLE}</style><div class="islands">{table}</div>'


def _row(kind: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"


def _series(frames: list[Frame]) -> tuple[Floats, ...]:
    stride = max(1, len(frames) // _MAX_PLOTTED_STEPS)
    frames = frames[::stride]
    columns = (
        [frame.time for frame in frames],
        [len(frame.contact_point) for frame in frames],
        [len(frame.iterations) for frame in frames],
        [int(frame.iterations.max(initial=0)) for frame in frames],
    )
    return tuple(np.array(column, np.float64) for column in columns)
