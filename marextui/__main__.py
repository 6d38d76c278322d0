"""`python -m marextui`."""

import sys

from marextui.cli import main

sys.exit(main())
