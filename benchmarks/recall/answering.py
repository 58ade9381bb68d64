"""The other end of a peer's pipe: one JSON request a line, one JSON answer a line.

Drivers run by the Python of a peer's own environment import this from beside them, so it needs
nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys


def serve(driver: object) -> None:
    """Answer each request with what the driver's method of that name gives, until there are none.

    What raises is answered as {"error": …}.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(driver, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
