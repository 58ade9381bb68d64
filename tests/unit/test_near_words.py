"""Near words: what stands for what in lexical search, and what must not."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import pytest

from memory import near_words
from memory.near_words import near, pack, table, unpack
from memory.text import terms


def are_near(one: str, other: str) -> bool:
    """Whether the second word's term is near that of the first."""
    (term,), (wanted,) = terms(one), terms(other)
    return wanted in dict(near(term))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("car", "vehicle"),
        ("doctor", "hospital"),
        ("doctor", "physician"),
        ("movies", "film"),
        ("bought", "purchased"),
        ("dog", "puppies"),
        ("cooking", "chef"),
        ("job", "career"),
        ("TV", "television"),
        ("photo", "picture"),
        ("wedding", "bride"),
        ("colour", "blue"),
        ("weekend", "vacation"),
        ("apartment", "rent"),
        ("Japan", "Japanese"),
    ],
)
def test_words_of_one_subject_are_near(one: str, other: str) -> None:
    assert are_near(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("car", "hospital"),
        ("dog", "invoice"),
        ("guitar", "kitchen"),
        ("doctor", "garden"),
        ("rain", "money"),
        ("hot", "cold"),
        ("buy", "sold"),
        ("husband", "wife"),
        ("mother", "father"),
        ("red", "blue"),
        ("summer", "winter"),
        ("London", "Birmingham"),
        ("Japan", "China"),
        ("city", "doctor"),
    ],
)
def test_other_subjects_opposites_and_other_places_are_not(one: str, other: str) -> None:
    assert near(*terms(one)), "it is in the table"
    assert not are_near(one, other)


NO_OTHERS = """
    John James Jack Johnny Mary Michael Michelle Susan Emily David Olivia Sofia Carlos Mohammed
    Anderson Thompson Beethoven Monday January three seven fifth hundred
"""


@pytest.mark.parametrize("word", NO_OTHERS.split())
def test_names_of_people_numbers_weekdays_and_months_are_near_nothing(word: str) -> None:
    (term,) = terms(word)
    assert near(term) == ()
    assert term not in table().stems, "or it could be near another"


def test_a_word_that_is_also_a_name_is_a_word() -> None:
    assert all(near(*terms(word)) for word in ("rose", "grace", "hope", "frank", "mark", "art"))


@pytest.mark.parametrize("term", ["", "什", "什么", "7300418826", "plan.md", "didn", "ü", "\x00"])
def test_what_is_no_english_word_is_near_nothing(term: str) -> None:
    assert near(term) == ()


def test_the_nearest_comes_first_and_nothing_is_near_itself() -> None:
    assert near("car")[0][0] == "vehicl"
    for stem in table().stems:
        found = near(stem)
        assert [nearness for _, nearness in found] == sorted(
            (nearness for _, nearness in found), reverse=True
        )
        assert all(0.34 < nearness <= 1 for _, nearness in found)
        assert len({stem, *(other for other, _ in found)}) == len(found) + 1


def test_every_stem_of_the_table_is_what_terms_gives_for_a_word_today() -> None:
    """When this fails, `memory.text` stems otherwise: run scripts/make_near_words.py."""
    tokenizer = resources.files("memory.embedding.minilm").joinpath("tokenizer.json")
    words = json.loads(tokenizer.read_text("utf-8"))["model"]["vocab"]
    stems = {term for word in words if word.isalpha() for term in terms(word)}
    assert len(table().stems) > 10_000
    assert set(table().stems) <= stems


def test_stop_words_and_halves_of_contractions_are_not_in_it() -> None:
    assert not {"the", "and", "you", "what", "didn", "wasn", "couldn"} & set(table().stems)
    assert "car" in table().stems


def test_a_table_comes_out_of_its_file_as_it_went_in() -> None:
    rows = {"b": (("c", 1.0), ("a", 0.4)), "a": (), "c": (("b", 0.8),)}
    read = unpack(pack(rows))
    assert {stem: read.near(stem) for stem in read.stems} == rows
    assert pack(dict(reversed(rows.items()))) == pack(rows)


def test_many_threads_may_be_the_first_to_ask() -> None:
    program = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from memory.near_words import near, table\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    found = list(pool.map(lambda _: (near('car')[0][0], id(table())), range(64)))\n"
        "assert len(set(found)) == 1, found\n"
        "print(found[0][0])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "vehicl", ran.stderr
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(near, ["car"] * 64)) == {near("car")}


def test_the_file_that_is_installed_is_the_one_that_was_made() -> None:
    folder = resources.files(near_words)
    assert folder.joinpath(near_words.FILE).is_file()
    assert folder.joinpath("NOTICE").is_file()
    assert len(folder.joinpath(near_words.FILE).read_bytes()) < 1_000_000
    assert len(near_words.SHA256) == 64
