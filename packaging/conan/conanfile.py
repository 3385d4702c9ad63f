"""leat as a package of Conan 2, built with the libraries of the distribution:

    conan create packaging/conan -s compiler.cppstd=20

Where the profile's compiler is older than GCC 13 and clang 17, as on Debian 12, it has to be another one:

    conan create packaging/conan -s compiler.cppstd=20 -s compiler=clang -s compiler.version=19 \\
      -c tools.build:compiler_executables='{"c": "clang-19", "cpp": "clang++-19"}'

The libraries are not packages of Conan: leat would then be a build of its own with each version of each. What is missing is named, or installed
with -c tools.system.package_manager:mode=install.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.scm import Version
from conan.tools.system.package_manager import Apt


class Leat(ConanFile):
    name = "leat"
    description = "A coroutine-based asynchronous data loader for GPU training"
    license = "Apache-2.0"
    topics = ("training", "data-loader", "io_uring", "coroutines")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "remote": [True, False], "tools": [True, False]}
    default_options = {"shared": False, "remote": True, "tools": False}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "leat", "version.hpp"))
        numbers = re.findall(r"#define LEAT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.version = ".".join(numbers)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for each in ("CMakeLists.txt", "LICENSE", "THIRD-PARTY.txt"):
            copy(self, each, root, self.export_sources_folder)
        for folder in ("cmake", "include", "base", "async", "io", "datasets", "stages", "tools"):
            copy(self, "*", os.path.join(root, folder), os.path.join(self.export_sources_folder, folder))

    def layout(self):
        self.folders.build = "build"
        self.folders.generators = os.path.join("build", "generators")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("leat reads by io_uring: it is for Linux")
        check_min_cppstd(self, 20)
        # Before anything is built; CMake refuses them as well (cmake/refused.cmake).
        compiler = str(self.settings.compiler)
        oldest = {"gcc": "13", "clang": "17"}.get(compiler)
        if oldest is None or Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"leat needs GCC 13, clang 17, or newer, and not {compiler} {self.settings.compiler.version}: "
                                            "-s compiler=clang -s compiler.version=19, for example, as the recipe says")

    def system_requirements(self):
        apt = Apt(self)
        apt.install_substitutes(["libboost1.81-dev"], ["libboost-dev"])
        apt.install(["liburing-dev", "libjpeg-dev", "libpng-dev", "libwebp-dev", "libtiff-dev", "libdeflate-dev", "libzstd-dev", "liblz4-dev",
                     "libsnappy-dev", "libblosc-dev", "libhwy-dev", "libpcre2-dev", "libutf8proc-dev", "libabsl-dev", "libxxhash-dev",
                     "librandom123-dev", "nlohmann-json3-dev"] + ["libssl-dev"] * bool(self.options.remote) +
                    ["libcli11-dev"] * bool(self.options.tools))

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        for name, value in {"BUILD_SHARED_LIBS": self.options.shared, "LEAT_REMOTE": self.options.remote,
                            "LEAT_BUILD_TOOLS": self.options.tools, "LEAT_BUILD_TESTS": False, "LEAT_BUILD_BENCHMARKS": False,
                            "LEAT_BUILD_EXAMPLES": False, "LEAT_MPI": False}.items():
            toolchain.cache_variables[name] = "ON" if value else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # leat's own file of find_package(), which names components, looks for what they link, and refuses what does not go together.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "leat")]
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
