"""Lines of what reads many machines' files: fleet, compare and the pages."""

from tests.mutants.mutant import Mutant

_FLEET, _COMPARE = "tests/lab/test_fleet.py", "tests/lab/test_compare.py"

FLEET = (
    Mutant(
        "noise as wide as the better half shows",
        "vecadd/fleet/outliers.py",
        "BEYOND_THE_BEST * float(best)",
        "0.0 * float(best)",
        _FLEET,
        "planted",
    ),
    Mutant(
        "comparisons that are counted",
        "vecadd/fleet/outliers.py",
        "1 - CHANCE / max(count, comparisons)",
        "1 - CHANCE / 2",
        _FLEET,
        "left_alone",
    ),
    Mutant(
        "peers at the same place",
        "vecadd/fleet/outliers.py",
        "float(np.median(some)) if len(some) >= FEW else of_all",
        "of_all",
        _FLEET,
        "by_their_place",
    ),
    Mutant(
        "more than half of a machine",
        "vecadd/fleet/outliers.py",
        "2 * len(some) > parts",
        "2 * len(some) >= parts",
        _FLEET,
        "more_than_half",
    ),
    Mutant(
        "the version of a check's file",
        "vecadd/check/document.py",
        "    if version != SCHEMA_VERSION or isinstance(version, bool):\n",
        "    if False:\n",
        _FLEET,
        "refused_by_what_is_wrong",
    ),
    Mutant(
        "text of a file that is no HTML",
        "vecadd/pages/__init__.py",
        "        autoescape=True,\n",
        "        autoescape=False,\n",
        _FLEET,
        "believes_no_file",
    ),
    Mutant(
        "surely slower",
        "vecadd/compare.py",
        "    if low > zone:\n",
        "    if low > 0:\n",
        _COMPARE,
        "whole_interval",
    ),
    Mutant(
        "identifiers of one picture",
        "vecadd/pages/pictures.py",
        r'rf"\g<1>{name}-", drawn)',
        r'r"\g<1>", drawn)',
        "tests/lab/test_bench_page.py",
        "have_one_id",
    ),
)
