"""The projects of users, copied to a place outside this repository, and what they build."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"VERSION ([0-9.]+) LANG", (ROOT / "CMakeLists.txt").read_text()).group(1)
PROGRAMS = ("gear", "fall", "shafts")
# Programs of DART, which tests/packaging/dart is given.
STACK = ROOT / "client/dart/examples/stack.cc"
PLAIN = ROOT / "tests/client/dart/plain_program.cc"


def run(*command, **options):
    """Runs a command; raises with its output where it fails."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


class Consumer:
    """A copy of tests/packaging in which a project is configured."""

    def __init__(self, project, *cmake_arguments):
        self._directory = tempfile.TemporaryDirectory()
        self.source = pathlib.Path(self._directory.name) / "packaging"
        self.build = self.source / "build"
        shutil.copytree(ROOT / "tests/packaging", self.source)
        run("cmake", "-G", "Ninja", "-S", self.source / project, "-B", self.build,
            "-DCMAKE_BUILD_TYPE=Release", *cmake_arguments)

    def close(self):
        self._directory.cleanup()

    def compile_commands(self):
        """The command that compiles each file, as a list of arguments."""
        text = (self.build / "compile_commands.json").read_text()
        return {pathlib.Path(command["file"]).resolve(): shlex.split(command["command"])
                for command in json.loads(text)}

    def build_and_run(self):
        """What each program prints; each says by its exit code whether the answer is right."""
        run("cmake", "--build", self.build)
        return {program: run(self.build / program) for program in PROGRAMS}


def own_flags(command):
    """The flags that change warnings or the code, in a command that compiles."""
    return [flag for flag in command if flag.startswith(("-W", "-m", "-f"))]
