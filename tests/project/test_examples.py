"""The examples of the public docstrings: each has one, and each gives what it says.

They run in a child of its own, because some of them change what the whole process does.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import vecadd

pytestmark = pytest.mark.no_native

MODULES = (vecadd, vecadd.ladder, vecadd.model)


def documented() -> dict[str, object]:
    """Each public module, function and class, and each public method of such a class, by its name. Methods that a class
    inherits, as those of a NamedTuple, have Python's own docstrings."""
    found: dict[str, object] = {}
    for module in MODULES:
        found[module.__name__] = module
        for name in module.__all__:
            entry = getattr(module, name)
            if isinstance(entry, ModuleType):
                continue
            found[f"{module.__name__}.{name}"] = entry
            for method, value in vars(entry).items() if isinstance(entry, type) else ():
                if not method.startswith("_") and (callable(value) or isinstance(value, classmethod)):
                    found[f"{module.__name__}.{name}.{method}"] = value
    return found


NAMES = sorted(documented())

RUN_ALL = """
import doctest, json, sys
import numpy as np, vecadd
from test_examples import documented

failed = {}
for name, entry in documented().items():
    test = doctest.DocTestParser().get_doctest(entry.__doc__, {"np": np, "vecadd": vecadd}, name, None, 0)
    lines = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    result = runner.run(test, out=lines.append)
    failed[name] = "".join(lines) if test.examples else "there is no example"
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def outcomes(
    child: Callable[..., subprocess.CompletedProcess[str]],
    runtime: str | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """What went wrong in the examples, by the name that they are of: nothing where all is well."""
    if runtime is None:
        pytest.skip("needs a GPU or the CUDA-runtime double")
    folder, here = str(tmp_path_factory.mktemp("examples")), str(Path(__file__).parent)
    return dict(json.loads(child(f"import os, sys; os.chdir({folder!r}); sys.path.append({here!r})\n{RUN_ALL}").stdout))


@pytest.mark.parametrize("name", NAMES)
def test_it_has_examples_that_give_what_they_say(name: str, outcomes: dict[str, str]) -> None:
    assert outcomes[name] == ""
