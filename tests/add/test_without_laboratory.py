"""A build by VECADD_LAB=0: what needs the laboratory says that it is not there, and how to get it."""

import numpy as np
import pytest

import vecadd
from vecadd import _core, cli

pytestmark = pytest.mark.skipif(_core.LAB_BUILD, reason="this build has the laboratory")
SAYS = r"this vecadd was built without the laboratory \(VECADD_LAB=0\): to get it, run pip install"


def test_the_ladder_says_so() -> None:
    for call in (
        vecadd.ladder.names,
        lambda: vecadd.ladder.run("threads", np.ones(2), np.ones(2)),
        lambda: vecadd.ladder.source("naive"),
        lambda: vecadd.ladder.judge(np.add),
    ):
        with pytest.raises(RuntimeError, match=SAYS):
            call()


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["bench"], 1), (["profile", "naive"], 1), (["tune"], 1), (["check"], 2), (["judge", "mine.py"], 2),
        (["notebooks", "new"], 1),
    ],
)  # fmt: skip
def test_a_command_that_measures_says_so(command: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    """By the status of an error: where 1 is a verdict it is 2."""
    assert cli.main(command) == status
    assert f"vecadd {command[0]}: this vecadd was built without the laboratory" in capsys.readouterr().err


def test_what_only_prints_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--schema"]) == 0
    with pytest.raises(SystemExit, match="0"):
        cli.main(["profile", "--help"])
    assert capsys.readouterr().err == ""
