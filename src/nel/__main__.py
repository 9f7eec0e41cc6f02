"""`python -m nel`: the same as the `nel` command, with this interpreter."""

import sys

from nel.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
