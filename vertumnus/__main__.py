"""``python -m vertumnus``: the same as the command ``vertumnus``."""

import sys

from vertumnus.cli import main

sys.exit(main())
