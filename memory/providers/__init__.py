"""The last step out: a context's messages as a request that OpenAI or Anthropic accepts. Pure.

Messages are read from OpenAI's chat shape, their content parts from whichever provider or framework
wrote them, into turns: who speaks, what is said, and each call together with its result. The turns
are then written by the rules of one provider. So every shape that can be read can be written for
both, and a request is sound whatever the history was: every call is answered directly after it,
and a result without its call is told as text.

What is changed on the way, because the provider would refuse it:

- Lone surrogates become U+FFFD; halves of one character that stand apart are joined.
- Texts of nothing but white space are left out, and messages that hold nothing then.
- Ids of calls that a provider does not take, or has seen already, become hashes of themselves, the
  same in call and result. Names of called tools lose the characters that names cannot have.
- Pictures, files and sounds that a provider has no shape for (or not from this speaker) are named
  in a text in their place. Thinking is for the provider that thought it; others never see it.
- OpenAI takes no pictures from tools: they follow the results, in a message of the user.
- Anthropic has no system messages between others: all go to `system`, in their order.
- Anthropic has no names of speakers: what a user says under a name begins with it. (Not only where
  several speak: the second one to come would change all that was said before.)
- Arguments of a call that are no JSON object stand whole, as text, under RAW_ARGUMENTS.
- Cache marks that stood in stored parts are taken out: four are allowed, a history may bring more.

What is put in here is counted before (memory/tokens.py), so that no request needs more tokens than
the context that it is made of.
"""

from __future__ import annotations

from memory.providers.anthropic import NOT_SHOWN, anthropic_request
from memory.providers.openai import openai_request
from memory.providers.wire import RAW_ARGUMENTS

__all__ = ["NOT_SHOWN", "RAW_ARGUMENTS", "anthropic_request", "openai_request"]
