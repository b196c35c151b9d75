"""``python -m tailmark_conformance`` is ``tailmark``, for where the script is not on the path."""

import sys

from tailmark_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
