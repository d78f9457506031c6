"""What each target is built from.

C is compiled once and linked several times: with the static CUDA runtime into the extension, with the CUDA-runtime
double into a second module of the same name and into the C tests. The kernels are compiled twice, by nvcc for GPUs and
by the C++ compiler for the double.
"""

import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from build_native import flags, toolkit
from build_native.incremental import ROOT, BuildError, Step, run, warnings


class Build:
    """One variant, with CUDA or without. Each public method brings one thing up to date and says where it is."""

    def __init__(self, variant: str = "release") -> None:
        self.variant = flags.VARIANTS[variant]
        self.cuda = toolkit.wanted() and not self.variant.machine
        parts = [variant] + ["host"] * (not toolkit.wanted()) + ["core"] * (not toolkit.laboratory_wanted())
        self.folder = Path("build", "-".join(parts))
        self.cc = _compiler("CC", "cc", "gcc")
        self.cxx = _compiler("CXX", "c++", "g++")
        if self.variant.machine:
            self.cc = self.cxx = (f"{self.variant.machine}-linux-gnu-gcc",)
        if not toolkit.wanted():
            print("*** vecadd: VECADD_CUDA=0: built for the host alone, without any GPU support ***", flush=True)

    def extension(self) -> Path:
        """The module with the CUDA runtime inside: it needs libc and nothing else."""
        objects = self.objects()
        link = self._link(self.cc, self.folder / "_core.so", objects, *flags.MODULE_LINK, cudart=self.cuda)
        run([link])
        return ROOT / link.output

    def objects(self) -> list[Step]:
        """What the extension is linked from. Kernels first: they take longest."""
        objects = (self._kernels() if self.cuda else []) + self._core() + self._module()
        run(objects)
        return objects

    def double(self) -> Path:
        """The module on the CUDA-runtime double."""
        objects = self._core() + self._module() + self._double()
        run(objects)
        link = self._link(
            self.cxx, self._place("double/_core.abi3.so"), objects, *flags.MODULE_LINK, *flags.DOUBLE_LINK
        )
        run([link])
        return ROOT / link.output

    def ctests(self, names: Iterable[str] = ()) -> list[Path]:
        """One program a file of tests/c: the core without Python, on the double. Without CUDA those of the host.
        With names, those alone: "threads" is the folder tests/c/threads, "wakes" its test_wakes.c."""
        sources = flags.sources(flags.TESTS if self.cuda else flags.HOST_TESTS)
        if not self.variant.kernels:
            sources = [source for source in sources if source.parent.name != "kernels"]
        if names := list(names):
            if missing := [name for name in names if not any(_is_named(source, name) for source in sources)]:
                raise BuildError(f"tests/c has no folder and no test named {', '.join(missing)}")
            sources = [source for source in sources if any(_is_named(source, name) for name in names)]
        return self._programs("tests", sources, self._core() + (self._double() if self.cuda else []))

    def conformance(self) -> list[Path]:
        """The double's rules, one program a file, run on the double."""
        return self._programs("conformance", flags.sources(flags.CONFORMANCE), self._core() + self._double())

    def conformance_gpu(self) -> list[Path]:
        """The conformance programs on the real runtime, and the rungs' own tests: they need a GPU."""
        sources = flags.sources((*flags.CONFORMANCE, *flags.GPU_TESTS))
        return self._programs("conformance-gpu", sources, self._core() + self._kernels(), gpu=True)

    def exact(self) -> Path:
        """The exact sums of benchmarks/proof: a library that is linked with nothing of vecadd's."""
        objects = self._exact()
        run(objects)
        link = self._link(self.cc, self._place("proof") / "exact.so", objects, *flags.MODULE_LINK)
        run([link])
        return ROOT / link.output

    def warnings(self) -> list[str]:
        """Compiles everything and links nothing; gives the compilers' output, of now or of their last run."""
        steps = [*self._core(), *self._module(), *self._exact()]
        if self.cuda:
            programs = flags.sources((*flags.TESTS, *flags.CONFORMANCE))
            steps += self._kernels() + self._double() + [self._program(source) for source in programs]
        run(steps)
        return warnings(steps)

    def _core(self) -> list[Step]:
        return [self._c(source) for source in flags.core_sources(cuda=self.cuda, machine=_machine(self.cc))]

    def _module(self) -> list[Step]:
        python = flags.python_flags()
        return [self._c(source, *python) for source in flags.module_sources(cuda=self.cuda)]

    def _exact(self) -> list[Step]:
        """Without the options of the CUDA toolkit, which need not be there."""
        found = flags.sources(flags.EXACT)
        return [_compile_step(self.cc, source, self.folder / "obj", flags.C_FLAGS) for source in found]

    def _kernels(self) -> list[Step]:
        return [self._nvcc(source) for source in flags.sources(flags.KERNELS)]

    def _double(self) -> list[Step]:
        if not self.cuda:
            raise BuildError("the CUDA-runtime double needs CUDA's headers: build it without VECADD_CUDA=0")
        kernels = self if self.variant.kernels else Build("release")
        return [kernels._cxx(source, *flags.DOUBLE_FLAGS) for source in flags.sources(flags.KERNELS)] + [
            self._cxx(source, *flags.DOUBLE_FLAGS) for source in flags.sources(flags.DOUBLE)
        ]

    def _programs(self, kind: str, sources: list[Path], objects: list[Step], *, gpu: bool = False) -> list[Path]:
        mains = [self._program(source, gpu=gpu) for source in sources]
        run([*objects, *mains])
        options = flags.DOUBLE_LINK if self.cuda and not gpu else ()
        links = [
            self._link(self.cxx, self._place(kind) / source.stem, [main, *objects], *options, cudart=gpu)
            for source, main in zip(sources, mains, strict=True)
        ]
        run(links)
        return [ROOT / link.output for link in links]

    def _program(self, source: Path, *, gpu: bool = False) -> Step:
        if source.suffix == ".c":
            return self._c(source, *flags.TEST_INCLUDES)
        return self._nvcc(source) if gpu else self._cxx(source, *flags.DOUBLE_FLAGS)

    def _c(self, source: Path, *more: str) -> Step:
        return self._compile(self.cc, source, "obj", *flags.C_FLAGS, *flags.simd_flags(source), *more)

    def _cxx(self, source: Path, *more: str) -> Step:
        return self._compile((*self.cxx, "-x", "c++"), source, "obj-double", *flags.CXX_FLAGS, *more)

    def _nvcc(self, source: Path) -> Step:
        # Sanitizers do not check nvcc's objects: those variants share the release's.
        options = (*flags.NVCC_FLAGS, *flags.gencode_flags(source))
        return _compile_step((str(_toolkit().nvcc),), source, Path("build", "release", "obj"), options)

    def _compile(self, compiler: tuple[str, ...], source: Path, folder: str, *options: str) -> Step:
        cuda = ("-DVECADD_CUDA=1", "-isystem", str(_toolkit().include)) if self.cuda else ("-DVECADD_CUDA=0",)
        options = (*options, *cuda, *self.variant.compile_flags, *_from_environment("CFLAGS"))
        return _compile_step(compiler, source, self.folder / folder, options)

    def _link(
        self, compiler: tuple[str, ...], output: Path, objects: list[Step], *options: str, cudart: bool = False
    ) -> Step:
        inputs = [step.output for step in objects]
        if cudart:
            inputs.append(_toolkit().cudart_static)
        before = (*compiler, "-pthread", *self.variant.link_flags, *options, "-o", str(output))
        command = (*before, *map(str, inputs), *flags.LIBC, *_from_environment("LDFLAGS"))
        return Step(f"link {output}", command, output, tuple(inputs))

    def _place(self, name: str) -> Path:
        """build/name for the release, build/VARIANT/name for the others."""
        return Path("build", name) if self.folder.name == "release" else self.folder / name


def _is_named(source: Path, name: str) -> bool:
    """Whether `name` means this C test: it is the test's own or its folder's."""
    return name in (source.stem.removeprefix("test_"), source.parent.name)


def install(built: Path, target: Path) -> None:
    """Copies to another name, then renames: a process that has the old target mapped keeps it."""
    beside = target.with_name(target.name + ".new")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built, beside)
    beside.replace(target)


def _compile_step(compiler: tuple[str, ...], source: Path, folder: Path, options: Iterable[str]) -> Step:
    output = folder / f"{source}.o"
    depfile = folder / f"{source}.d"
    command = (*compiler, *options, "-MD", "-MF", str(depfile), "-c", str(source), "-o", str(output))
    return Step(f"{Path(compiler[0]).name} {source}", command, output, (source,), depfile)


@functools.cache
def _toolkit() -> toolkit.Toolkit:
    found = toolkit.find()
    print(f"nvcc {found.version[0]}.{found.version[1]}: {found.nvcc}", flush=True)
    return found


def _compiler(variable: str, *names: str) -> tuple[str, ...]:
    if chosen := _from_environment(variable):
        return chosen
    for name in names:
        if shutil.which(name):
            return (name,)
    raise BuildError(
        f"vecadd needs a C and a C++ compiler, and {names[0]} is not on PATH: install one, or set {variable}"
    )


@functools.cache
def _machine(compiler: tuple[str, ...]) -> str:
    """The processor that the compiler makes code for: not always the one it runs on."""
    target = subprocess.run([*compiler, "-dumpmachine"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return target.partition("-")[0]


def _from_environment(variable: str) -> tuple[str, ...]:
    return tuple(shlex.split(os.environ.get(variable, "")))
