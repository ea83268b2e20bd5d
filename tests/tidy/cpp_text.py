"""What the style rules need to know of C++: code without comments and strings, functions."""

import re

_TOKEN = re.compile(
    r'R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'  # raw string
    r'|//[^\n]*|/\*.*?\*/'  # comments
    r'|"(?:\\.|[^"\\\n])*"'  # string
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",  # character, but not a digit separator
    re.DOTALL,
)


def code_only(text):
    """The text with comments, strings and characters blanked; lines stay where they are."""

    def blank(match):
        token = match.group(0)
        edge = '"' if token[0] in 'R"' else " "
        inner = re.sub(r"[^\n]", " ", token[1:-1])
        return edge + inner + edge if len(token) > 1 else " "

    return _TOKEN.sub(blank, text)


_SCOPE = re.compile(r"^\s*(inline\s+)?(namespace|extern)\b")
_TYPE = re.compile(r"\b(class|struct|union|enum)\b[^()]*$")
_BODY = re.compile(r"(\)|\})\s*(const|noexcept|override|final|mutable|&|->[^{;]*|\s)*$")
_INITIALIZER = re.compile(r"\)\s*(noexcept\s*)?:\s.*[\w>]\s*$|\)\s*:\s*[\w>:]+\s*$", re.DOTALL)


def _matching_brace(code, opening):
    depth = 0
    for i in range(opening, len(code)):
        if code[i] == "{":
            depth += 1
        elif code[i] == "}":
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def functions(text):
    """Yields (first line, number of lines, head) of each function that is defined in the text.

    Braces decide: at namespace or class level, one that follows a closing parenthesis opens a body.
    Macros such as TEST(...) count as functions, lambdas belong to the function around them.
    """
    code = code_only(text)
    # Directives are no code, and their parentheses and braces do not have to match.
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code,
                  flags=re.MULTILINE | re.DOTALL)
    head_start = 0
    i = 0
    while i < len(code):
        c = code[i]
        if c in ";}":
            head_start = i + 1
        elif c == ":" and re.search(r"\b(public|private|protected)\s*$", code[head_start:i]):
            head_start = i + 1
        elif c == "{":
            head = code[head_start:i]
            if _SCOPE.search(head) or _TYPE.search(head):
                head_start = i + 1
            else:
                end = _matching_brace(code, i)
                is_body = _BODY.search(head) and not _INITIALIZER.search(head)
                if is_body and "(" in head:
                    first = head_start + len(head) - len(head.lstrip())
                    line = code.count("\n", 0, first) + 1
                    yield line, code.count("\n", first, end) + 1, " ".join(head.split())
                    head_start = end + 1
                i = end
        i += 1
