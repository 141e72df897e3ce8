"""Which strings of a module are listed for a reader of all messages."""

from __future__ import annotations

from herdkeeper_e2e.strings import longest_sentence, texts

MODULE = '''
"""A docstring of a module."""
LIMIT = 3
def why(name):
    """A docstring of a function."""
    if name == "a-b":
        return f"the resource {name + 'of three words'} does " "not exist"
    return [f"{LIMIT} {name}", "two words", "this one is a message"]
'''


def test_messages_are_listed_whole_with_what_is_put_in_and_docstrings_are_not() -> None:
    assert list(texts(MODULE)) == [(7, "the resource {name + 'of three words'} does not exist"), (8, "this one is a message")]


def test_the_longest_sentence_of_a_text_is_counted() -> None:
    assert longest_sentence("It is one. The field {spec.a.b(1, 2)} is wrong: set another one") == 5
