"""setuptools' build backend, which also asks for NVIDIA's compiler where no nvcc works, and for the disassembler that
records the rungs' machine code in a wheel."""

from collections.abc import Mapping

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from build_native.toolkit import DISASSEMBLER, laboratory_wanted, missing_requirements, wanted

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = Mapping[str, str | list[str] | None] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    disassembler = DISASSEMBLER if wanted() and laboratory_wanted() else ()
    return [*build_meta.get_requires_for_build_wheel(config_settings), *missing_requirements(), *disassembler]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return [*build_meta.get_requires_for_build_editable(config_settings), *missing_requirements()]
