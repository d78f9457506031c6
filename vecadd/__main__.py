"""python -m vecadd"""

import sys

from vecadd.cli import main

if __name__ == "__main__":
    sys.exit(main())
