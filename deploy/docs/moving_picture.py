"""The moving picture of the README: forty boxes and spheres fall into a bin.

  moving_picture.py SAP_CLIENT OUTPUT.webp

Each frame is the end of a simulation of its own, as long as the time of the frame: a simulation
that is repeated has the same bits, so that they join to one motion.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import resvg_py
from PIL import Image

FRAMES_PER_S = 25
DURATION_S = 2.0
REST_S = 1.0  # the last frame stays
WIDTH_PX = 640


def frame(client: str, directory: Path, number: int) -> Image.Image:
    """The bin after `number` frames."""
    picture = directory / f"{number}.svg"
    simulation = ["simulate", "clutter", "--bodies", "40", "--walls", "--picture", str(picture)]
    time = f"{number / FRAMES_PER_S:.3f}"
    subprocess.run([client, *simulation, "--time", time], check=True, stdout=subprocess.DEVNULL)
    drawing = resvg_py.svg_to_bytes(svg_path=str(picture), width=WIDTH_PX)
    image = Image.open(io.BytesIO(bytes(drawing))).convert("RGB")
    # Without the caption, which has the numbers of one step.
    return image.crop((0, 0, image.width, round(image.height * 0.92)))


def main(client: str, output: str) -> None:
    """Writes the picture."""
    numbers = range(1, round(DURATION_S * FRAMES_PER_S) + 1)
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as pool:
        frames = list(pool.map(lambda number: frame(client, Path(directory), number), numbers))
    durations_ms = [round(1000 / FRAMES_PER_S)] * (len(frames) - 1) + [round(1000 * REST_S)]
    frames[0].save(
        output, append_images=frames[1:], duration=durations_ms, loop=0, quality=55, method=6
    )
    print(f"{output}: {len(frames)} frames, {Path(output).stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
