"""What the documents say holds: the example is the one that is compiled, prints what is shown, and
every link leads somewhere.

  test_documents.py EXAMPLE    the binary of client/cpp/examples/first_solve.cc
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE_SOURCE = ROOT / "client/cpp/examples/first_solve.cc"
example_binary = None


def documents():
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.md"], check=True,
                             capture_output=True, text=True).stdout
    return [ROOT / path for path in listing.splitlines()]


def blocks(language):
    """The code blocks of a language in README.md, in their order."""
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class DocumentsTest(unittest.TestCase):
    def test_the_example_is_the_one_that_is_compiled(self):
        self.assertEqual(blocks("cpp"), [EXAMPLE_SOURCE.read_text()])

    def test_the_example_prints_what_is_shown(self):
        done = subprocess.run([example_binary], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(done.stdout, blocks("text"))

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
    example_binary = sys.argv.pop(1)
    unittest.main()
