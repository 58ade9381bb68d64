"""`trimem demo`: six weeks of two people, in under a minute, on the real thing.

The story (maya.jsonl, lin.jsonl) is played by its own clock: every message is recorded at the time
at which it was said, so that what follows (facts, fading, the night) is what those weeks would have
made. Each run has a tenant of its own, so that runs do not meet, on a folder or on shared servers.
"""

from memory.demo.play import run

__all__ = ["run"]
