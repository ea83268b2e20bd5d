"""Recipe of Conan 2 for the libraries and the programs, from the clone that it is in.

  conan create deploy/conan

Dependencies are Debian's packages; deploy/install_packages.sh installs those that are missing.
"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

SOURCES = ("CMakeLists.txt", "LICENSE", "client/*", "deploy/*", "proto/*", "server/*", "solver/*")


class SapIslands(ConanFile):
    name = "sap-islands"
    description = "Solver of frictional contact by islands, with its server and clients"
    license = "Apache-2.0"
    topics = ("physics", "contact", "robotics", "simulation", "grpc")
    settings = "os", "arch", "compiler", "build_type"
    options = {"portable": [True, False]}  # for processors without AVX2
    default_options = {"portable": False}
    test_package_folder = "../../tests/packaging/installed"

    @property
    def _clone(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        cmake = load(self, os.path.join(self._clone, "CMakeLists.txt"))
        self.version = re.search(r"project\(sap_islands VERSION ([0-9.]+)", cmake).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, src=self._clone, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["SAP_BUILD_TESTS"] = False
        toolchain.cache_variables["SAP_PORTABLE"] = bool(self.options.portable)
        toolchain.generate()

    def build(self):
        self.run(os.path.join(self.source_folder, "deploy", "install_packages.sh"))
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=f"{self.package_folder}/licenses")

    def package_info(self):
        # The installed package of CMake says what to link, for sap_islands::client and the others.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/sap_islands"]
