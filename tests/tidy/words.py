"""Words that do not belong: banned calls and what to use, leftovers, paths of one machine, and in
comments and documents the fragments that a reader has to decode."""

import re

from cpp_text import code_only
from finding import Finding
from prose import paragraphs

# (pattern in code, what to do instead, where it is banned, where it is allowed all the same)
BANNED_CODE = (
    (r"(?<![\w.>])s?rand\s*\(", "use <random> with a fixed seed", ("",), ()),
    (r"\brandom_device\b", "use a fixed seed: answers and tests repeat", ("",), ()),
    (r"\b(v?sprintf|str(n?cpy|n?cat|tok)|gets)\s*\(", "use std::string", ("",), ()),
    (r"\bato(i|l|ll|f)\s*\(", "use std::from_chars, which reports errors", ("",), ()),
    (r"\busing\s+namespace\s+std\b", "name what is used", ("",), ()),
    (r"\b(usleep|nanosleep|sleep_for|sleep_until)\s*\(", "the solver never waits", ("solver/",),
     ()),
    (r"\bthrow\b", "errors are values", ("solver/", "server/"), ()),
    (r"\bstd::(j?thread|async)\b", "threads are those of TaskArena", ("solver/",),
     (r"solver/parallel/(forked_threads|idle_spinners)\.", r"solver/engine/engine_limits\.cc")),
    (r"\bstd::(cout|cerr|clog)\b|(?<![\w.>])(f?printf|f?puts|putchar)\s*\(",
     "libraries return what they have to say", ("solver/", "server/", "client/cpp/"),
     (r"server/(worlds/worker/)?main\.cc", r"client/cpp/(commands|examples)/")),
    (r"(?<![\w.>:])(std::)?(exit|abort|quick_exit|getenv|system)\s*\(", "only main decides",
     ("solver/", "server/", "client/cpp/"), (r"server/main\.cc",)),
    (r"\b(GTEST_SKIP|DISABLED_\w+)", "a test that does not run tests nothing", ("tests/",), ()),
)

# In any text, comments included.
BANNED_TEXT = (
    (r"\b(TODO|FIXME|XXX|HACK)\b", "file an issue or do it now"),
    (r"^[ \t]*#[ \t]*if[ \t]+0\b", "git remembers old code"),
    (r"\bNOLINT|clang-format off", "mend the code, or the configuration with a reason"),
    (r"-ffast-math|-Ofast|-march=native|-funsafe-math", "bits have to be reproducible"),
    (r"/(work|root|home)/\w", "no path of one machine"),
)
OUTSIDE_CI = (r"\.\./+shared\b", "only .ci/run knows what lies beside the repository")

# At the beginning of a comment, a docstring or a paragraph.
BANNED_OPENINGS = (
    (r"Of (?!course\b)", "begin with a verb or a noun phrase that stands alone"),
    (r"The same of\b", "say what it does; where two things are the same, make them one"),
    (r"As `[^`]+`[.,:;]", "say what it does"),
)
# At the beginning of a comment or a docstring. Tests have sentences for names: "What a client sends
# is bounded."
BANNED_IN_COMMENTS = (
    (r"(That|Those)\b", "name it: a comment does not begin with a pronoun"),
    (r"(And|Nor|Or|So that)\b", "begin with a verb or a noun phrase that stands alone"),
)
BANNED_OUTSIDE_TESTS = ((r"What\b", "name the thing: 'Workspace of ...', 'Outcome of ...'"),)
# Anywhere in a comment or a document.
BANNED_PHRASES = (
    (r"\bbut for\b", "except for"),
    (r"\bbeside\b", "compared with, next to, in addition to"),
    (r"\b(of|from) (above|below)\b(?= *($|[.,;:)]|and\b))", "above; below"),
    (r"\bfrom the begin\b|\bthe begin of\b", "the beginning"),
    (r"\banew\b", "again"),
    (r"\b(of|with|for|to|each|takes) so many\b(?! that)", "name the number: 'of `rows` rows'"),
    (r"\bin the place of\b", "in place of, instead of"),
    (r"\b(by|for|of) who\b", "name them: clients, callers"),
    (r"\w+ excepted\b|\bfor want of\b", "except for; without"),
)
# These say what they ban, or show it.
EXEMPT = ("tests/tidy/",)
TEXT_FILES = (".h", ".cc", ".c", ".inc", ".rs", ".py", ".sh", ".md", ".proto", ".txt", ".cmake",
              ".json", ".yaml", ".yml", "Dockerfile", "run", ".clang-tidy", ".clang-format",
              ".gitignore")


def check(tree):
    """All findings about words in the tree, a dict of path to text."""
    for path, text in tree.items():
        if path.startswith(EXEMPT) or not path.endswith(TEXT_FILES):
            continue
        if path.endswith((".h", ".cc")):
            yield from _check_code(path, code_only(text))
        for pattern, instead in BANNED_TEXT:
            yield from _matches(path, text, pattern, instead)
        if path != ".ci/run":
            yield from _matches(path, text, *OUTSIDE_CI)
        yield from _check_prose(path, text)


def _check_code(path, code):
    for pattern, instead, places, exceptions in BANNED_CODE:
        if path.startswith(places) and not any(re.match(e, path) for e in exceptions):
            yield from _matches(path, code, pattern, instead)


def _openings(path):
    """The openings that are banned in a file."""
    if path.endswith(".md"):
        return BANNED_OPENINGS
    outside_tests = () if path.startswith("tests/") else BANNED_OUTSIDE_TESTS
    return BANNED_OPENINGS + BANNED_IN_COMMENTS + outside_tests


def _check_prose(path, text):
    openings = _openings(path)
    for line, paragraph in paragraphs(path, text):
        found = [(re.match(opening, paragraph), instead) for opening, instead in openings]
        found += [(re.search(phrase, paragraph, re.IGNORECASE), instead)
                  for phrase, instead in BANNED_PHRASES]
        for match, instead in found:
            if match:
                yield Finding(path, line, "words", f"'{match.group(0).strip()}': {instead}")


def _matches(path, text, pattern, instead):
    for match in re.finditer(pattern, text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        yield Finding(path, line, "word", f"'{match.group(0).strip()}': {instead}")
