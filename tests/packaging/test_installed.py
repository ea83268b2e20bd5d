"""A project that finds what `cmake --install` has copied compiles, links and solves.

  test_installed.py BUILD      an existing build of this repository
"""

import gzip
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from consumer import PLAIN, ROOT, STACK, VERSION, Consumer, own_flags, run

build = None


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        # Installed at one place and used at another: an installation can be moved.
        first = pathlib.Path(directory.name) / "first"
        run("cmake", "--install", build, "--prefix", first)
        cls.prefix = first.rename(first.with_name("moved"))

    def why_not_found(self, package, prefix=None):
        """What CMake says of a project whose find_package(package) fails, as one line."""
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch)
            (source / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
                f"find_package({package})\n")
            done = subprocess.run(["cmake", "-S", source, "-B", source / "build",
                                   f"-DCMAKE_PREFIX_PATH={prefix or self.prefix}"],
                                  capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            return " ".join(done.stderr.split())

    def test_a_project_finds_it_and_keeps_its_own_flags(self):
        consumer = Consumer("installed", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.addCleanup(consumer.close)
        program = consumer.compile_commands()[consumer.source / "fall.cc"]
        self.assertEqual(own_flags(program), [])
        self.assertEqual([word for word in program if str(ROOT) in word], [])
        said = consumer.build_and_run()
        self.assertEqual((said["gear"], said["shafts"]), ("fast 0.100 rad/s\n",) * 2)

    def test_pkg_config_says_how_to_compile_and_link(self):
        places = {"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        libraries = {"LD_LIBRARY_PATH": str(self.prefix / "lib")}
        for compiler, source, package in (("c++", "gear.cc", "sap_islands_client"),
                                          ("c++", "fall.cc", "sap_islands_simulation"),
                                          ("cc", "shafts.c", "sap_islands")):
            with self.subTest(package), tempfile.TemporaryDirectory() as scratch:
                flags = run("pkg-config", "--cflags", "--libs", f"{package} = {VERSION}",
                            env=places)
                binary = pathlib.Path(scratch) / "program"
                run(compiler, ROOT / "tests/packaging" / source, *shlex.split(flags), "-lm", "-o",
                    binary)
                run(binary, env=libraries)

    def test_the_c_library_asks_for_no_dependencies_of_the_client(self):
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch)
            (source / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES C)\n"
                "find_package(sap_islands REQUIRED COMPONENTS c)\n"
                "if(TARGET gRPC::grpc OR NOT TARGET sap_islands::c)\n"
                "  message(FATAL_ERROR)\nendif()\n")
            run("cmake", "-S", source, "-B", source / "build",
                f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_steps_of_mujoco_are_in_the_c_library(self):
        with tempfile.TemporaryDirectory() as scratch:
            binary = pathlib.Path(scratch) / "program"
            flags = run("pkg-config", "--cflags", "--libs", "sap_islands",
                        env={"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")})
            program = ("#include <sap_islands.h>\n"
                       "#include <sap_islands/client/mujoco/sap_mujoco.h>\n"
                       "int main(void) {\n"
                       "  sap_mujoco* solver;\n"
                       "  sap_mujoco_outcome outcome;\n"
                       "  return sap_mujoco_open(NULL, NULL, &solver, &outcome) == SAP_OK;\n"
                       "}\n")
            run("cc", "-x", "c", "-", *shlex.split(flags), "-o", binary, input=program)
            run(binary, env={"LD_LIBRARY_PATH": str(self.prefix / "lib")})

    def test_a_part_that_is_not_there_is_named(self):
        reason = self.why_not_found("sap_islands REQUIRED COMPONENTS c neither_this")
        self.assertIn("sap_islands has no component 'neither_this'; it has c, c_client,", reason)
        # Before its dependencies, which nobody needs without it.
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch) / "lib/cmake/sap_islands"
            shutil.copytree(self.prefix / "lib/cmake/sap_islands", copy)
            (copy / "sap_islands-dart.cmake").unlink(missing_ok=True)
            reason = self.why_not_found("sap_islands REQUIRED COMPONENTS c dart", scratch)
            self.assertIn("Reason given by package: sap_islands was installed without dart", reason)

    def test_a_project_finds_the_solver_of_dart(self):
        if not (self.prefix / "lib/cmake/sap_islands/sap_islands-dart.cmake").exists():
            self.skipTest("built without DART (deploy/install_packages.sh dart)")
        with tempfile.TemporaryDirectory() as build_directory:
            run("cmake", "-G", "Ninja", "-S", ROOT / "tests/packaging/dart", "-B", build_directory,
                f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DSTACK={STACK}", f"-DPLAIN={PLAIN}")
            run("cmake", "--build", build_directory, "--target", "stack")
            self.assertIn("solved", run(f"{build_directory}/stack"))

    def test_every_public_header_compiles_by_itself(self):
        include = self.prefix / "include/sap_islands"
        headers = [str(path.relative_to(include)) for path in include.rglob("*.h")]
        self.assertIn("client/cpp/client.h", headers)
        text = "".join(f'#include "{header}"\n' for header in sorted(headers))
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-x", "c++", "-",
                               f"-I{include}", "-I/usr/include/eigen3"],
                              input=text, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_minor_version_is_not_taken(self):
        self.assertIn(f"version: {VERSION}", self.why_not_found("sap_islands 0.0 REQUIRED"))

    def test_shells_complete_the_programs_and_man_shows_them(self):
        share = self.prefix / "share"
        for program in ("sap-server", "sap-client"):
            self.assertTrue((share / "bash-completion/completions" / program).is_file())
            self.assertTrue((share / "fish/vendor_completions.d" / f"{program}.fish").is_file())
            if shutil.which("help2man"):
                manual = gzip.decompress((share / f"man/man1/{program}.1.gz").read_bytes())
                self.assertIn(b"solver of frictional contact", manual)
        self.assertTrue((share / "zsh/vendor-completions/_sap-islands").is_file())

    def test_the_installed_programs_run(self):
        for program in ("sap-server", "sap-client"):
            self.assertIn(VERSION, run(self.prefix / "bin" / program, "--version"))

    def test_worlds_are_stepped_without_grpc_and_mujoco_is_not_installed(self):
        worlds = self.prefix / "bin/sap-worlds"
        self.assertEqual(subprocess.run([worlds], capture_output=True).returncode, 2)
        self.assertNotRegex(run("ldd", worlds), "grpc|protobuf|mujoco")
        names = [path.name for path in self.prefix.rglob("*mujoco*.so*")]
        self.assertEqual(names, ["libsap_islands_mujoco.so"])


if __name__ == "__main__":
    build = sys.argv.pop(1)
    unittest.main()
