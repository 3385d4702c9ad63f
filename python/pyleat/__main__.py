"""python -m pyleat: the command leat."""

import sys

from ._command import main

sys.exit(main())
