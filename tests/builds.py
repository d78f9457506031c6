"""Which build of the extension the tests run on."""

import os

UNDER_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")
