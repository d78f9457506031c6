"""torch.compile is told of vecadd.add when its compiler is imported, whichever comes first; here of a stand-in."""

import pytest

PACKAGE = {
    "torch/__init__.py": "from torch import compiler",
    "torch/compiler.py": """
told = []
def substitute_in_graph(original, *, skip_signature_check):
    def tell(traceable):
        told.append((original, traceable))
    return tell
""",
    "torch/_dynamo.py": "imports = 1",
}
FINDERS = "import sys; before = list(sys.meta_path)\n"


@pytest.fixture
def stand_in(tmp_path):
    """The code that puts a stand-in for PyTorch where it is imported from; keywords replace its files."""

    def make(**files):
        for name, text in {**PACKAGE, **files}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        return f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"

    return make


@pytest.mark.parametrize(
    "imports",
    ["import vecadd, torch, torch._dynamo", "import torch, vecadd, torch._dynamo", "import torch._dynamo, vecadd"],
)
def test_the_compiler_is_told_once_whatever_is_imported_first(child, stand_in, imports):
    child(
        f"{stand_in()}{FINDERS}{imports}\n"
        "assert [original for original, _ in torch.compiler.told] == [vecadd.add]\n"
        "assert torch._dynamo.imports == 1 and torch._dynamo.__spec__.name == 'torch._dynamo'\n"
        "assert sys.meta_path == before\n"
    )


def test_it_is_not_imported_for_this(child, stand_in):
    child(f"{stand_in()}import torch, vecadd, sys; vecadd.add([1], [2]); assert 'torch._dynamo' not in sys.modules")


def test_a_compiler_that_takes_no_advice_is_imported_all_the_same(child, stand_in):
    child(f"{stand_in(**{'torch/compiler.py': ''})}import vecadd, torch._dynamo; assert torch._dynamo.imports == 1")


def test_without_a_compiler_its_import_fails_as_ever(child, stand_in, tmp_path):
    code = stand_in()
    (tmp_path / "torch/_dynamo.py").unlink()
    child(
        f"{code}import vecadd, torch\n"
        "try:\n"
        "    import torch._dynamo\n"
        "except ModuleNotFoundError as error:\n"
        "    assert error.name == 'torch._dynamo'\n"
        "else:\n"
        "    raise AssertionError\n"
    )


def test_the_graph_gets_the_sum_of_its_own_kind(child, stand_in):
    """Tensors get torch.add and NumPy's arrays numpy.add; all else breaks the graph and is vecadd's own."""
    torch = """
from torch import compiler
class Tensor: pass
def add(*operands, out): return "torch", operands, out
"""
    dynamo = "broken = []\ngraph_break = broken.append"
    child(
        f"{stand_in(**{'torch/__init__.py': torch, 'torch/_dynamo.py': dynamo})}"
        "import numpy as np, vecadd, torch._dynamo\n"
        "((_, traced),) = torch.compiler.told\n"
        "x, a = torch.Tensor(), np.ones(2)\n"
        "assert traced(x, 2) == ('torch', (x, 2), None) and traced(2, x, out=x) == ('torch', (2, x), x)\n"
        "assert (traced(a, 1) == 2).all() and not torch._dynamo.broken\n"
        "assert (traced([1, 2], [3, 4]) == [4, 6]).all() and len(torch._dynamo.broken) == 1\n"
        "assert (traced(a, a, device='cpu') == 2).all() and len(torch._dynamo.broken) == 2\n"
        "assert (traced(a, a, where=True) == 2).all() and len(torch._dynamo.broken) == 3\n"
    )
