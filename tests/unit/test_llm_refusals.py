"""What models say instead of an answer, and answers that look a little like it."""

from __future__ import annotations

import pytest

from memory.llm.refusals import asks_back, declines, says_nothing, tells_an_error

REFUSALS = [
    "I can't help with that.",
    "I can’t help with that.",
    "I cannot assist with this request.",
    "I'm sorry, but I can't help with that.",
    "I am sorry, but I am unable to summarise this conversation.",
    "I'm sorry, I can't do that, Dave.",
    "Sorry, but I can't assist with that.",
    "I'm really sorry.",
    "Unfortunately, I'm not able to process this content.",
    "I apologize, but I cannot provide a summary of this conversation.",
    "As an AI language model, I don't have opinions.",
    "I won't be able to continue with this.",
    "I must decline to summarise this.",
    "**I'm sorry, but I can't comply with that.**",
    "抱歉，我无法处理这个请求。",
    "很抱歉，我不能协助完成此请求。",
    "对不起，我无法提供该内容的摘要。",
    "我无法满足您的请求。",
    "作为一个人工智能语言模型，我没有个人观点。",
    "Lo siento, pero no puedo ayudar con eso.",
    "Je suis désolé, mais je ne peux pas vous aider.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Извините, но я не могу помочь с этим.",
    "Desculpe, mas não posso ajudar com isso.",
    "Mi dispiace, ma non posso aiutarti.",
    "申し訳ありませんが、そのリクエストにはお応えできません。",
    "죄송합니다. 해당 요청은 도와드릴 수 없습니다.",
    "क्षमा करें, मैं इसमें मदद नहीं कर सकता।",
    "عذراً، لا أستطيع المساعدة في ذلك.",
]

QUESTIONS = [
    "Could you provide the conversation you would like me to summarise?",
    "Sure! What would you like me to summarise?",
    "Of course. Please share the messages.",
    "I'd be happy to help! Could you please paste the text?",
    "It looks like you haven't included any messages.",
    "It seems the conversation is empty. Could you share it?",
    "You haven't provided any text to summarise.",
    "I don't see any conversation here.",
    "I need more information to write this summary.",
    "There is no text provided to summarise.",
    "Which messages do you mean?",
    "Who is Anna?",
    "请提供需要总结的对话内容。",
    "好的，请问您想总结哪段对话？",
    "您能提供更多信息吗？",
    "¿Podrías compartir la conversación?",
    "Pourriez-vous me fournir la conversation ?",
    "Können Sie mir das Gespräch geben?",
    "Не могли бы вы прислать текст?",
    "要約する会話を教えていただけますか？",
]

ANSWERS = [
    "The user asked for help with a lock; the assistant said: I can't help with that.",
    "User lives in Oslo and is sorry that they cannot come to the party.",
    "Ada apologised for being late. She is unable to eat nuts.",
    "The request has been declined by the bank; the user will try another one.",
    "The user asked: when does the train leave?",
    'Open question: "Where shall we meet?"',
    "User wants to know which visa they need. They fly on 3 May.",
    "Planning a trip to Lisbon. Still open: who books the hotel?",
    "The user is happy to help with the move on Saturday.",
    "Sorry Dave is the name of the user's band.",
    "用户抱歉地说他不能来参加聚会。",
    "用户问：火车什么时候出发？",
    "用户请同事提供报告。",
    "助手说它无法访问该文件。",
    "Пользователь извинился, что не может прийти.",
    "利用者は会議に参加できません。",
    "Certainly the trip to Rome is on. The user books it on Monday.",
    "I " * 2_000,
    "a" * 1_000_000,
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_told(text: str) -> None:
    assert declines(text)
    assert declines(f"\n  {text}\n")


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_back_is_told(text: str) -> None:
    assert asks_back(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_that_reports_a_refusal_or_a_question_is_an_answer(text: str) -> None:
    assert not declines(text)
    assert not asks_back(text)


@pytest.mark.parametrize(
    "text",
    ["sorry " * 100_000, "I'm sorry" + " " * 500_000, "抱歉" * 200_000, "thank you" * 90_000],
)
def test_long_nonsense_is_judged_at_once(text: str) -> None:
    assert not declines(text) or len(" ".join(text.split())) < 1_000
    asks_back(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error: upstream connect error or disconnect/reset before headers",
        "Error code: 429 - {'error': {'message': 'slow down'}}",
        "TimeoutError: the read operation timed out",
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool",
        "Traceback (most recent call last):\n  File",
        '{"error": {"message": "context_length_exceeded"}}',
        "```\n{'detail': 'Not Found'}\n```",
        "<!DOCTYPE html><title>502</title>",
        "502 Bad Gateway",
        "Rate limit exceeded, try again in 20 s.",
        "Internal Server Error",
        "错误：请求超时",
    ],
)
def test_what_a_server_says_when_something_went_wrong_is_an_error(text: str) -> None:
    assert tells_an_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "Errors in the deploy were found by Ada; the first was 'Error: no disk'.",
        "Error handling was discussed: Ada wants retries.",
        "Service unavailable in Oslo, said the operator, so Ada goes by train.",
        "Rate limiting was decided on: 40 requests a minute.",
        "404 people came to the fair.",
        "Ada saw 'TimeoutError: x' and asked what it means.",
        "错误处理已经讨论过：Ada 想要重试。",
    ],
)
def test_what_tells_of_errors_is_none(text: str) -> None:
    assert not tells_an_error(text)


def test_a_word_that_says_nothing_is_told_from_one_that_does() -> None:
    for text in (
        "N/A",
        "-",
        "None.",
        "null",
        "OK.",
        "**Done!**",
        "…",
        "No summary needed.",
        "无。",
    ):
        assert says_nothing(text), text
    for text in ("Tea.", "None of them came.", "OK was what Ada said.", "没有人来。", "无锡"):
        assert not says_nothing(text), text
