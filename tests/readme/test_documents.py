"""What the documents say holds: the examples are those that are compiled, print what is shown, and
every link leads somewhere.

  test_documents.py BINARY...    of client/cpp/examples
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "client/cpp/examples"
example_binaries = []


def documents():
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.md"], check=True,
                             capture_output=True, text=True).stdout
    return [ROOT / path for path in listing.splitlines()]


def blocks(language, document="README.md"):
    """The code blocks of a language in a document, in their order."""
    text = (ROOT / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class DocumentsTest(unittest.TestCase):
    def test_the_examples_are_those_that_are_compiled(self):
        sources = [EXAMPLES / (pathlib.Path(binary).name + ".cc") for binary in example_binaries]
        texts = [source.read_text() for source in sources]
        self.assertEqual([block for block in blocks("cpp") if block not in texts], [])

    def test_the_examples_print_what_is_shown(self):
        shown = blocks("text") + blocks("text", "client/cpp/README.md")
        for binary in example_binaries:
            with self.subTest(example=pathlib.Path(binary).name):
                done = subprocess.run([binary], capture_output=True, text=True, timeout=600)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(done.stdout, shown)

    def test_links_lead_somewhere(self):
        for document in documents():
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
                with self.subTest(document=document.name, link=link):
                    if "://" not in link:
                        self.assertTrue((document.parent / link).exists())

    def test_scripts_that_are_named_exist(self):
        for document in documents():
            text = document.read_text()
            for name in re.findall(r"(?<![\w/.])((?:deploy|tests)/[\w/]+\.(?:sh|py))", text):
                with self.subTest(document=document.name, name=name):
                    self.assertTrue((ROOT / name).exists())


if __name__ == "__main__":
    example_binaries = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
