"""The one extension, compiled by build_native, and what the package carries for the laboratory. The rest is in
pyproject.toml."""

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

from build_native.flags import free_threaded
from build_native.incremental import BuildError
from build_native.targets import Build, install
from build_native.toolkit import ToolkitError, laboratory_wanted


class BuildNative(build_ext):
    def build_extension(self, ext: Extension) -> None:
        path = Path(self.get_ext_fullpath(ext.name))
        try:
            install(Build().extension(), path)
        except (BuildError, ToolkitError) as error:
            raise CompileError(str(error)) from error
        package = path.resolve().parent
        # code.py is written by BuildPython; an editable installation reads the sources.
        if laboratory_wanted() and (package / "code.py").is_file():
            _record_machine_code(package)


class BuildPython(build_py):
    def run(self) -> None:
        super().run()
        try:
            laboratory = laboratory_wanted()
        except ToolkitError as error:
            raise CompileError(str(error)) from error
        if self.editable_mode:  # which has the sources themselves
            return
        carried = _alone("vecadd/_carried.py")
        archive = Path(self.build_lib, carried.ARCHIVE)
        for of_an_earlier_build in (archive, *archive.parent.glob("*.json.xz")):  # the second is machine code
            of_an_earlier_build.unlink(missing_ok=True)
        if laboratory:
            carried.write_archive(archive)


def _record_machine_code(package: Path) -> None:
    """Has the package that was just built write down its rungs' machine code, where there is a disassembler."""
    paths = (str(package.parent), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    subprocess.run([sys.executable, "-P", "-B", "-m", "vecadd.code"], env=environment, check=True)


def _alone(path: str) -> ModuleType:
    """A file of the package by itself: the package around it needs the extension, which may not be built yet."""
    spec = spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup(
    ext_modules=[Extension("vecadd._core", sources=[], py_limited_api=not free_threaded())],
    cmdclass={"build_ext": BuildNative, "build_py": BuildPython},
    options={} if free_threaded() else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
