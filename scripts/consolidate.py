#!/usr/bin/env python3
"""The nightly job, for cron: what has faded is archived, what keeps recurring becomes a fact.

    15 3 * * *  /path/to/.venv/bin/python /path/to/scripts/consolidate.py >> nights.log

The same as `trimem consolidate`, with its options (--dry-run, --user, --tenant, --home, --json) and
its exit codes: 0 done, 1 not done, 3 failed for some users, 4 a night is running already. Running
it twice changes nothing; a night that was killed is finished by the next one.
"""

from __future__ import annotations

import sys

from memory.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "consolidate")
    main()
