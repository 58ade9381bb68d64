"""Whether a message asks something, in any script. Pure, and deliberately simple.

A question mark counts where it ends something: not inside an address (`x/?q=1`) or code (`a?.b`).
Without one, English and Chinese words that ask count: in English only where a sentence begins.
"""

from __future__ import annotations

import re
from typing import Final

_LOOKED_AT: Final = 4_000
"""Characters at each end of a message that are looked at: long ones are pasted text."""

_MARK: Final = re.compile(
    "[？؟⁇⁈⁉❓❔՞፧⸮\u037e︖﹖꘏⳺]"  # of scripts where it stands nowhere else
    "|\\?+!*[\"'”’»)\\]*_]*(?:\\s|$)"
    "|[\u0370-\u03ff\u1f00-\u1fff];(?:\\s|$)",  # Greek as it is typed
)
_ENGLISH: Final = re.compile(
    r"(?:^|[.!\n,;:]\s*|\b(?:and|so|but|hi|hey|please|ok|okay)\s+)"
    r"(?:(?:what|who|whom|whose|where|when|which|why|how)(?:['’]?(?:s|re|d|ll))?\b"
    r"|(?:do|does|did|am|is|are|was|were|can|could|will|would|should|shall|have|has|had|may)\s+"
    r"(?:i|you|we|he|she|it|they|there|this|that|these|those|my|your|our|his|her|their|the|any)\b"
    r"|(?:remind|tell)\s+me\b)",
    re.IGNORECASE,
)
_CHINESE: Final = re.compile(
    "什么|甚么|为何|为啥|干嘛|谁|哪|怎么|怎样|如何|多少|多久|多大|多远|几[个点号岁时天月年次位]|吗|"
    "是否|是不是|有没有|能不能|会不会|可不可以|记不记得|还记得|请问|告诉我|提醒我|什麼|誰|嗎|幾|怎麼"
)


def asks(text: str) -> bool:
    """Whether somebody who says this wants to know something."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    return any(words.search(text) for words in (_MARK, _ENGLISH, _CHINESE))
