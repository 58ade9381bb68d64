"""Every script: what was said is found by its words, and what is no proper text breaks nothing."""

from __future__ import annotations

import unicodedata
from datetime import timedelta

import pytest

from memory import Memory
from memory.memory import UserMemory
from memory.models import Recall
from tests.behaviour.conftest import Open
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=60)


def texts(recalled: Recall) -> list[str]:
    return [item.text for item in recalled.items if item.tier == "episodic"]


async def keep(memory: Memory, name: str, said: list[str]) -> UserMemory:
    """A user who said these, each in a session of its own."""
    user = memory.user(name)
    for number, text in enumerate(said):
        await user.session(f"s{number}").record(user=text)
    assert await memory.settled(PATIENCE)
    return user


SCRIPTS = {
    "Arabic": {
        "المفتاح تحت السجادة عند الباب.": ["المفتاح", "أين المفتاح؟", "السجادة"],
        "اشتريت دراجة حمراء من السوق.": ["دراجة", "ماذا اشتريت من السوق؟"],
        "موعد الطبيب يوم الخميس في التاسعة.": ["الطبيب", "متى موعد الطبيب؟"],
    },
    "Hebrew": {
        "המפתח נמצא מתחת לשטיח ליד הדלת.": ["המפתח", "איפה המפתח?", "לשטיח"],
        "קניתי אופניים אדומים בשוק.": ["אופניים", "מה קניתי בשוק?"],
        "התור לרופא ביום חמישי בתשע.": ["לרופא", "מתי התור לרופא?"],
    },
    "Persian": {
        "کلید زیر فرش کنار در است.": ["کلید", "کلید کجاست؟ زیر فرش"],
        "می‌خواهم یک دوچرخهٔ قرمز بخرم.": ["دوچرخهٔ قرمز", "می‌خواهم بخرم"],
    },
    "Hindi": {
        "चाबी दरवाज़े के पास कालीन के नीचे है।": ["चाबी", "चाबी कहाँ है?", "कालीन"],
        "मैंने बाज़ार से लाल साइकिल खरीदी।": ["साइकिल", "लाल साइकिल"],
    },
    "Thai": {
        "กุญแจอยู่ใต้พรมข้างประตู": ["กุญแจ", "กุญแจอยู่ที่ไหน"],
        "ฉันซื้อจักรยานสีแดงจากตลาด": ["จักรยาน", "จักรยานสีแดง"],
    },
    "Korean": {
        "열쇠는 문 옆 깔개 밑에 있어요.": ["열쇠", "열쇠가 어디 있어요?"],
        "시장에서 빨간 자전거를 샀어요.": ["자전거", "빨간 자전거"],
    },
    "Japanese": {
        "鍵は玄関のマットの下にあります。": ["鍵", "鍵はどこですか？", "マット"],
        "市場で赤い自転車を買いました。": ["自転車", "赤い自転車はどこで買いましたか"],
    },
    "Russian": {
        "Ключ лежит под ковриком у двери.": ["ключ", "Где ключ?", "КЛЮЧ"],
        "Я купил красный велосипед на рынке.": ["велосипед", "красный велосипед"],
    },
    "Greek": {
        "Το κλειδί είναι κάτω από το χαλί.": ["κλειδί", "ΚΛΕΙΔΙ", "Πού είναι το κλειδί;"],
        "Αγόρασα ένα κόκκινο ποδήλατο.": ["ποδήλατο", "κόκκινο ποδήλατο"],
    },
    "Vietnamese": {
        "Chìa khóa nằm dưới tấm thảm cạnh cửa.": ["chìa khóa", "Chìa khóa ở đâu?"],
        "Tôi mua một chiếc xe đạp đỏ ở chợ.": ["xe đạp", "xe đạp đỏ"],
    },
    "traditional Chinese": {
        "鑰匙放在門口的地毯下面。": ["鑰匙", "鑰匙在哪裡？"],
        "我在市場買了一輛紅色的腳踏車。": ["腳踏車", "紅色的腳踏車"],
    },
}


@pytest.mark.parametrize("script", SCRIPTS)
async def test_what_was_said_in_a_script_is_found_by_its_words(memory: Memory, script: str) -> None:
    """UNI-01, of every script: by a word, and by a question."""
    said = SCRIPTS[script]
    user = await keep(memory, "u1", [*said, "The backup of the mail server runs at noon.", "🎈"])
    for text, queries in said.items():
        for query in queries:
            for form in ("NFC", "NFD"):
                asked = unicodedata.normalize(form, query)
                assert texts(await user.recall(asked))[:1] == [text], (asked, form)
    assert texts(await user.recall("mail server"))[:1] == [
        "The backup of the mail server runs at noon."
    ]
    for query in ("zebra crossing", "flurb qwzx"):
        assert texts(await user.recall(query)) == []


SAME = {
    "The café in Zürich opens at nine.": [
        *("café", "cafe\u0301", "CAFÉ", "ZÜRICH", "Zu\u0308rich", "ｃａｆé"),
        *("ca\u00adfé", "\u200bcafé\u200b", "\ufeffcafé", "\u202ecafé\u202c", "𝐜𝐚𝐟é"),
    ],
    "Die Straße nach Gießen ist gesperrt.": ["STRASSE", "Strasse", "straße", "Gießen", "GIESSEN"],
    "The ﬁnal oﬃce key is number Ⅷ.": ["final office", "ﬁnal", "OFFICE KEY"],
    "İstanbul uçağı saat dokuzda.": ["İstanbul", "istanbul", "i\u0307stanbul"],
    "机房在成都，备份在夜里。": ["成都", "备份", "成都 备份"],
    "订单号是１２３４５６７。": ["1234567", "１２３４５６７"],
    "ﾃﾚﾋﾞの保証書は引き出しの中。": ["テレビ", "ﾃﾚﾋﾞ"],
    "كَتَبْتُ الرِّسَالَةَ أَمْسِ.": ["كتبت الرسالة", "الرسالة"],
    "שָׁלַחְתִּי אֶת הַמִּכְתָּב.": ["המכתב", "שלחתי"],
}
"""Texts, and other ways to write words of theirs."""


async def test_a_word_is_the_same_word_however_it_is_encoded(memory: Memory) -> None:
    """UNI-01: composed or not, wide, with marks that nobody sees, with or without vowels."""
    user = await keep(memory, "u1", [*SAME, "It rains.", "Nothing new today."])
    for text, queries in SAME.items():
        for query in queries:
            assert texts(await user.recall(query))[:1] == [text], ascii(query)


EMOJI = ["🦊", "👩‍🚀🚀", "👍🏽", "🇯🇵", "❤️", "🎂🎈🎉"]


async def test_emoji_alone_are_kept_and_found_by_themselves(memory: Memory) -> None:
    """UNI-03, as messages and as questions."""
    said = ["Lunch at noon.", "The fox was here."]
    user = await keep(memory, "u1", [*EMOJI, *said])
    assert {episode.text for episode in await user.episodes()} == {*EMOJI, *said}
    for emoji in EMOJI:
        assert texts(await user.recall(emoji))[:1] == [emoji], emoji
        context = await user.session("asking").build_context(emoji)
        assert context.messages[-1]["content"] == emoji
    assert texts(await user.recall("lunch"))[:1] == ["Lunch at noon."]
    assert not set(texts(await user.recall("lunch"))) & set(EMOJI)


BROKEN = {
    "a lone high surrogate": "the kayak \ud83d is red",
    "a lone low surrogate": "the kayak \ude00 is red",
    "two halves": "the kayak \ud83d\ude00 is red",
    "halves in the wrong order": "the kayak \ude00\ud83d is red",
    "NUL": "the kayak \x00 is red",
    "NUL inside a word": "the kayak is r\x00ed",
    "control characters": "the kayak\x07\x1b[31m is red\x7f",
    "no characters": "the kayak \ufffe\uffff is red",
    "private use": "the kayak \ue000\U0010ffff is red",
    "marks on marks": "the kayak i" + "\u0301" * 500 + "s red",
    "marks first": "\u0301\u0302the kayak is red",
    "overrides": "\u202e\u2066the kayak is red\u2069\u202c",
    "unbalanced overrides": "the kayak\u202e\u202b\u2067 is red",
    "joiners": "the\u200d kayak\u200c is\u2060 red",
    "tags": "the kayak is red\U000e0041\U000e007f",
    "lines of other kinds": "the kayak\x85is\u2028red\u2029",
    "a replacement": "the kayak \ufffd is red",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
async def test_what_is_no_proper_text_is_kept_as_it_is_and_found(memory: Memory, text: str) -> None:
    """UNI-03: as a message, as a question, in a name, in metadata and in a filter."""
    user = memory.user("u1")
    message = {"role": "user", "content": text, "name": f"Ada {text}", "metadata": {"note": text}}
    await user.session("s").record(messages=[message])
    await user.session("t").record(user="It rains in Harlow.")
    assert await memory.settled(PATIENCE)
    for query in (text, "Where is the kayak?", f"kayak? {text[10:]}"):
        found = await user.recall(query)
        assert texts(found)[:1] == [text], ascii(query)
        assert found.items[0].speaker == f"Ada {text}"
        context = await user.session("asking").build_context(query)
        assert context.messages[-1]["content"] == query
        assert (await user.snapshot(context.snapshot_id or "")).messages == context.messages
    assert texts(await user.recall("kayak", where={"note": text})) == [text]
    assert texts(await user.recall("kayak", where={"note": {"$ne": text}})) == []
    assert texts(await user.recall("rain in Harlow"))[:1] == ["It rains in Harlow."]


ONE_CHARACTER = ["a", "的", "👍", "\u0301", "\x00", "\ud83d"]


@pytest.mark.parametrize("character", ONE_CHARACTER, ids=ascii)
async def test_a_megabyte_of_one_character_is_a_message_and_a_question_like_any_other(
    open_memory: Open, character: str
) -> None:
    """UNI-03"""
    text = "kayak " + character * (1_000_000 // len(character.encode(errors="surrogatepass")))
    async with open_memory(embedder=StubEmbedder()) as memory:
        user = memory.user("u1")
        await user.session("s").record(user=text)
        await user.session("t").record(user="The canoe is in Harlow.")
        assert await memory.settled(PATIENCE)
        assert [message.text for message in await user.session("s").messages()] == [text]
        assert texts(await user.recall("Where is the canoe?"))[:1] == ["The canoe is in Harlow."]
        await user.recall(text)
        context = await user.session("asking").build_context("Where is the canoe?", budget=4_000)
        assert "The canoe is in Harlow." in context.text
        assert context.tokens.total <= 4_000
        assert (await user.recall("kayak")).items
