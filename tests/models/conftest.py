"""These tests run in an environment of their own, by `make test-models`, and nowhere else."""

from __future__ import annotations

import importlib.util
import os
import sys

if importlib.util.find_spec("sentence_transformers") is None:
    collect_ignore_glob = ["test_*.py"]
elif sys.platform == "linux":
    # torch's CUDA build is linked to stand-ins that hold no functions (see stand_ins.py), and
    # Python would look all of them up when it loads an extension.
    sys.setdlopenflags(os.RTLD_LAZY)
