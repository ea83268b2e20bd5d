"""What the documents say holds: the examples are those that are compiled, print what is shown, and
every link leads somewhere.

A C++ program in a document follows the comment <!-- This is PATH and what it prints; ... -->, a
program in another language <!-- This is PATH; ... -->.

  test_documents.py BINARY...    of client/cpp/examples
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWN = re.compile(r"^<!-- This is (\S+) and what it prints[^>]*-->\n```cpp\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)
COPIED = re.compile(r"^<!-- This is (\S+); [^>]*-->\n```\w+\n(.*?)^```$",
                    re.MULTILINE | re.DOTALL)
example_binaries = []


def documents():
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.md"], check=True,
                             capture_output=True, text=True).stdout
    return [ROOT / path for path in listing.splitlines()]


def blocks(language, document="README.md"):
    """The code blocks of a language in a document, in their order."""
    text = (ROOT / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def prose_of(document):
    """The text of a document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def headings(document):
    return re.findall(r"^#+ (.*)$", prose_of(document), re.MULTILINE)


def anchor(heading):
    """The name by which GitHub and the site link to a section."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", shown).strip().replace(" ", "-")


class DocumentsTest(unittest.TestCase):
    def test_the_examples_are_those_that_are_compiled(self):
        compiled = [pathlib.Path(binary).name + ".cc" for binary in example_binaries]
        shown = [(document, *match) for document in documents()
                 for match in SHOWN.findall(document.read_text())]
        self.assertGreaterEqual(len(shown), 4)
        for document, path, program in shown:
            with self.subTest(document=document.name, path=path):
                self.assertIn(pathlib.Path(path).name, compiled)
                self.assertEqual(program, (ROOT / path).read_text())

    def test_the_programs_in_other_languages_are_those_of_the_examples(self):
        shown = [match for document in documents()
                 for match in COPIED.findall(document.read_text())]
        self.assertGreaterEqual(len(shown), 5)
        for path, program in shown:
            with self.subTest(path=path):
                self.assertEqual(program, (ROOT / path).read_text())

    def test_the_readme_has_no_program_that_is_not_compiled(self):
        self.assertEqual(blocks("cpp"), [program for _, program in SHOWN.findall(
            (ROOT / "README.md").read_text())])

    def test_the_examples_print_what_is_shown(self):
        shown = [block for document in documents() for block in blocks("text", document)]
        for binary in example_binaries:
            with self.subTest(example=pathlib.Path(binary).name):
                done = subprocess.run([binary], capture_output=True, text=True, timeout=600)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(done.stdout, shown)

    def test_links_lead_somewhere(self):
        for document in documents():
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose_of(document)):
                with self.subTest(document=document.name, link=link):
                    if "://" not in link:
                        self.assertTrue((document.parent / link).exists())

    def test_links_to_sections_lead_to_one(self):
        sections = {document.resolve(): set(map(anchor, headings(document)))
                    for document in documents()}
        for document in documents():
            for link, section in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", prose_of(document)):
                target = (document.parent / link).resolve() if link else document.resolve()
                if "://" not in link and target in sections:
                    with self.subTest(document=document.name, link=f"{link}#{section}"):
                        self.assertIn(section, sections[target])

    def test_scripts_that_are_named_exist(self):
        for document in documents():
            text = document.read_text()
            for name in re.findall(r"(?<![\w/.])((?:deploy|tests)/[\w/]+\.(?:sh|py))", text):
                with self.subTest(document=document.name, name=name):
                    self.assertTrue((ROOT / name).exists())


if __name__ == "__main__":
    example_binaries = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
