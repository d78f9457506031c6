"""Every mutant: a text that stands once in a file, what takes its place, and the test that must fail then."""

from tests.mutants.calls import CALLS
from tests.mutants.device import DEVICE
from tests.mutants.files import FILES
from tests.mutants.fleet import FLEET
from tests.mutants.host import HOST
from tests.mutants.operands import OPERANDS
from tests.mutants.package import PACKAGE
from tests.mutants.stores import STORES

MUTANTS = (*HOST, *DEVICE, *CALLS, *OPERANDS, *FILES, *STORES, *PACKAGE, *FLEET)
