"""The SQL that a suite may use: a query over `{batch}` only.

A suite is a file that somebody else may have written, and Spark's SQL reads files, calls Java and drops tables. So the text
is parsed before it is run, and everything outside lists of harmless elements is refused: the words after FROM and JOIN, the functions,
the characters. It is done without Spark, because Spark's parser is not available in a session outside this process. If this
parser might read a text differently from Spark (comments, raw strings, characters of scripts), the text is refused, so that an
accepted text means the same to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from schemas.sql_functions import FUNCTIONS

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>--|/\*)
  | (?P<batch>\{batch\})
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[lLsSyYfFdD]|[bB][dD])?(?![A-Za-z0-9_.'"`{]))
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>->|\|\||\|(?!>)|<=>|<>|!=|<=|>=|==|::|[-+*/%<>=!~&^.,()\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
# What follows `{batch}`: nothing that would make another name of it, a part of one, or a call.
_STANDS_ALONE = re.compile(r"[ \t\r\n]*(?:\Z|\))|[ \t\r\n]+[A-Za-z_]")
# Words after which a parenthesis opens no call.
_WORDS_BEFORE_PARENTHESIS = """
all and any as between by cross cube distinct else except exists filter from full group having in inner intersect is join left
like limit minus not on or order over partition qualify rlike rollup select sets some then union using varchar when where with
"""
# Words that name a table, a program or a target of writes, at any position; a column with such a name can be quoted.
_WORDS_REFUSED = """
directory identifier insert into lateral map match_recognize overwrite pivot recordreader recordwriter reduce serde stream
table tablesample transform unpivot values
"""
_BEFORE_PARENTHESIS = frozenset(_WORDS_BEFORE_PARENTHESIS.split())
_REFUSED = frozenset(_WORDS_REFUSED.split())
_ALSO_FUNCTIONS = frozenset({"map", "reduce", "transform"})
# After these words and BY come columns, several of them; after FROM, JOIN, ON, WHERE and all others a comma names a table.
_LISTED = frozenset({"group", "order", "sort"})
_BEFORE_SELECT = frozenset({"union", "all", "distinct", "except", "minus", "intersect"})


class Token(NamedTuple):
    """A piece of the text: its kind (a group of the expression), and the piece itself; words in small letters."""

    kind: str
    text: str


class QueryError(ValueError):
    """A text that a suite may not use. The message names the refused part, in a few words."""


def check_query(text: str) -> None:
    """Raise QueryError unless the text is one query (SELECT, or WITH … SELECT) that reads `{batch}` alone."""
    tokens = _tokens(text.strip().removesuffix(";"))
    _Query(tokens).check()
    if not any(token.kind == "batch" for token in tokens):
        raise QueryError("it does not read {batch}")


def check_condition(text: str) -> None:
    """Raise QueryError unless the text is one condition on a row's columns, without a query in it."""
    tokens = _tokens(text)
    for token, previous in zip(tokens, [Token("start", ""), *tokens], strict=False):
        compared = token.text == "from" and previous == Token("word", "distinct")
        if token.kind == "batch" or (token.text in {"select", "from", "with", "join"} and not compared):
            raise QueryError(f"it must be a condition on a row's columns, and has {_shown(token)}")
    _check_words(tokens)
    _check_parentheses(tokens)


def _tokens(text: str) -> list[Token]:
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[Token]:
    if "${" in text:
        # Spark puts variables of the environment there, in texts, too.
        raise QueryError("${ is not allowed")
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        kind = None if found is None else found.lastgroup
        if found is None or kind is None:
            raise QueryError(f"`{text[at : at + 20]}` is not understood here")
        piece, at = found[0], found.end()
        if kind == "comment":
            raise QueryError("comments are not allowed; use `meta.why`")
        if kind in {"string", "quoted"} and "{" in piece.replace("{{", ""):
            raise QueryError("double a brace in a string: {{")
        if kind == "word" and text[at : at + 1] in {"'", '"'} and piece.lower() == "r":
            raise QueryError(f"a text that begins with {piece}{text[at]} is not allowed")
        if kind == "batch" and not _STANDS_ALONE.match(text, at):
            raise QueryError("nothing may be joined to {batch}")
        if kind != "space":
            yield Token(kind, piece.lower() if kind == "word" else piece)


def _check_words(tokens: Sequence[Token]) -> None:
    """No word that reads or changes something else, no call of a function that is not on the list of harmless functions."""
    after = [*tokens[1:], Token("end", "")]
    before = [Token("start", ""), *tokens]
    for token, previous, following in zip(tokens, before, after, strict=False):
        called = following.text == "(" and following.kind == "sign"
        if called:
            _check_call(token, previous)
        elif token.kind == "word" and token.text in _REFUSED and previous.text != ".":
            raise QueryError(f"{token.text.upper()} is not allowed (quote it if it is a column: `{token.text}`)")
        if token == Token("word", "using") and not called:
            raise QueryError("USING is allowed only with the columns of a JOIN")


def _check_call(token: Token, previous: Token) -> None:
    if token.kind in {"string", "quoted"} and (token.kind == "quoted" or previous.text == "."):
        raise QueryError(f"the function {token.text} is not on the list of harmless functions")
    if token.kind != "word" or (token.text in _BEFORE_PARENTHESIS and previous.text != "."):
        return
    qualified = previous.text == "."
    if qualified or token.text not in FUNCTIONS or (token.text in _REFUSED and token.text not in _ALSO_FUNCTIONS):
        raise QueryError(f"the function {token.text} is not on the list of harmless functions")


def _check_parentheses(tokens: Sequence[Token]) -> None:
    open_ones: list[str] = []
    for token in tokens:
        if token.kind == "sign" and token.text in "([":
            open_ones.append(")" if token.text == "(" else "]")
        elif token.kind == "sign" and token.text in ")]" and (not open_ones or open_ones.pop() != token.text):
            raise QueryError(f"a {token.text} closes nothing")
    if open_ones:
        raise QueryError(f"a {open_ones[-1]} is missing")


def _shown(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else token.text


class _Query:
    """Reads the tokens once, and tracks for each depth of parentheses whether it is in a FROM clause."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        # Names of WITH that stand from here on.
        self.named: set[str] = set()

    def check(self) -> None:
        if self._at(0).text != "with":
            self._check_begin(0)
        _check_words(self.tokens)
        _check_parentheses(self.tokens)
        start = self._after_with()
        self._check_begin(start)
        self._check_from(start, len(self.tokens))

    def _at(self, index: int) -> Token:
        return self.tokens[index] if index < len(self.tokens) else Token("end", "its end")

    def _check_begin(self, index: int) -> None:
        while self._at(index).text == "(":
            index += 1
        if self._at(index) != Token("word", "select"):
            raise QueryError(f"it must begin with SELECT or WITH, and has {_shown(self._at(index))}")

    def _after_with(self) -> int:
        """Check the queries of WITH at the beginning, each by the names before it; returns where they end."""
        if self._at(0) != Token("word", "with"):
            return 0
        index = 1
        while True:
            name = self._at(index)
            if name.kind != "word" or self._at(index + 1) != Token("word", "as") or self._at(index + 2).text != "(":
                raise QueryError("WITH must be followed by `name AS (SELECT …)`")
            end = self._closing(index + 2)
            self._check_begin(index + 3)
            self._check_from(index + 3, end)
            self.named.add(name.text)
            index = end + 2
            if self._at(end + 1).text != ",":
                return end + 1

    def _closing(self, index: int) -> int:
        depth = 0
        for place in range(index, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[place].text, 0) if self.tokens[place].kind == "sign" else 0
            if depth == 0:
                return place
        raise QueryError("a ) is missing")

    def _check_from(self, start: int, end: int) -> None:
        """What follows FROM and JOIN between two places is `{batch}`, a name of WITH, or a query in parentheses."""
        in_from = [False]
        for index in range(start, end):
            token = self.tokens[index]
            if token.kind == "sign":
                self._sign(token.text, in_from, index)
            elif token.kind == "word" and self._at(index - 1).text != ".":
                self._word(token.text, in_from, index)

    def _sign(self, sign: str, in_from: list[bool], index: int) -> None:
        if sign in "([":
            in_from.append(self._opens_relations(index))
        elif sign in ")]":
            in_from.pop()
        elif sign == "," and in_from[-1]:
            raise QueryError("several tables after FROM are not allowed; write JOIN")

    def _word(self, word: str, in_from: list[bool], index: int) -> None:
        before = self._at(index - 1).text if index else "("
        if word == "with":
            raise QueryError("WITH is allowed only at the beginning")
        if word in {"from", "join"}:
            if word == "from" and before == "distinct" and in_from[-1] and self._compares(index - 2):
                return
            in_from[-1] = True
            self._check_relation(index + 1)
        elif (word == "by" and before in _LISTED) or (word == "select" and before in {"(", *_BEFORE_SELECT}):
            in_from[-1] = False

    def _compares(self, index: int) -> bool:
        """True for the IS of IS DISTINCT FROM, with or without NOT, at a place or before it."""
        word = self._at(index).text
        return word == "is" or (word == "not" and self._at(index - 1).text == "is")

    def _opens_relations(self, index: int) -> bool:
        """True for a parenthesis that holds tables: it is where a table may be."""
        while index >= 0 and self._at(index).text == "(":
            index -= 1
        return index >= 0 and self._at(index) in {Token("word", "from"), Token("word", "join")}

    def _check_relation(self, index: int) -> None:
        while self._at(index) == Token("sign", "("):
            index += 1
        token = self._at(index)
        if token.kind == "batch" or token == Token("word", "select"):
            return
        known = token.kind == "word" and token.text in self.named and self._at(index + 1).text not in {".", "("}
        if not known:
            raise QueryError(f"it reads {_shown(token)}, and may read only {{batch}}")
