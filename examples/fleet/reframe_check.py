"""The acceptance test as a ReFrame test: every figure of ``vecadd check`` becomes one that ReFrame keeps and compares.

    reframe --checkpath reframe_check.py --run --performance-report

``--setvar VecaddCheck.accept=passed,failed`` keeps the figures of a machine that fails too.
"""

import json
import re
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable


@rfm.simple_test
class VecaddCheck(rfm.RunOnlyRegressionTest):
    """Passes where the check does."""

    descr = "vecadd check: host, link, device and launches"
    valid_systems = ["*"]  # noqa: RUF012  as ReFrame has it
    valid_prog_environs = ["*"]  # noqa: RUF012
    executable = "vecadd"
    executable_opts = ["check", "--json", "check.json"]  # noqa: RUF012
    accept = variable(str, value="passed")
    time_limit = "10m"

    def content(self):
        """What the check has written."""
        return json.loads(Path(self.stagedir, "check.json").read_text())

    @sanity_function
    def passed(self):
        """By the file and not by the exit status, which is 1 for a machine that fails."""
        status = self.content()["status"]
        return sn.assert_in(status, self.accept.split(","), f"the check says {status}")

    @run_before("performance")
    def figures(self):
        """Each finding with a figure under its id, in its own unit."""
        self.perf_variables = {
            re.sub(r"\W+", "_", finding["id"]): sn.make_performance_function(
                sn.defer(float(finding["value"])), finding["unit"]
            )
            for finding in self.content()["findings"]
            if finding["value"] is not None and finding["unit"]
        }
