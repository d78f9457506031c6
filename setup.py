"""The one extension, compiled by build_native. Everything else that there is to say stands in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from build_native.flags import free_threaded
from build_native.incremental import BuildError
from build_native.targets import Build, install
from build_native.toolkit import ToolkitError


class BuildNative(build_ext):
    def build_extension(self, ext: Extension) -> None:
        try:
            install(Build().extension(), Path(self.get_ext_fullpath(ext.name)))
        except (BuildError, ToolkitError) as error:
            raise CompileError(str(error)) from error


setup(
    ext_modules=[Extension("vecadd._core", sources=[], py_limited_api=not free_threaded())],
    cmdclass={"build_ext": BuildNative},
    options={} if free_threaded() else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
