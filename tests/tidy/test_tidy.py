"""The style rules see what they are for, and nothing else: each on a tree of a few lines."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cpp_text
import folders
import layers
import python_layers
import sizes
import tidy
import words


def rules(findings):
    return [(finding.path, finding.line, finding.rule) for finding in findings]


def built(tree):
    """The tree with a CMakeLists.txt that builds all of its sources."""
    sources = [path for path in tree if path.endswith(".cc")]
    for folder in {path.split("/")[0] for path in sources}:
        tree[f"{folder}/CMakeLists.txt"] = " ".join(
            path.split("/", 1)[1] for path in sources if path.startswith(folder + "/"))
    return tree


class CppTextTest(unittest.TestCase):
    def test_comments_and_strings_are_no_code(self):
        code = cpp_text.code_only('a("rand()"); // rand()\n/* rand()\n */ b(R"(rand())", \'"\');\n')
        self.assertNotIn("rand", code)
        self.assertEqual(code.count("\n"), 3)
        self.assertIn("b(", code)

    def test_digit_separators_open_no_character(self):
        self.assertIn("rand", cpp_text.code_only("int a = 1'000; rand(); int b = 2'000;"))

    def test_functions_are_found_with_their_length(self):
        text = """namespace sap {
class A {
 public:
  A() : a_{1}, b_(2) {
    Run();
  }
  int Get() const { return a_; }
  std::vector<int> values{1, 2};
};
template <typename T>
auto Twice(T x) -> T {
  const auto twice = [](T y) {
    return 2 * y;
  };
  if (x) {
    return x;
  }
  return twice(x);
}
constexpr int kTable[] = {
    Size(1),
};
TEST(ATest, Runs) {
}
}  // namespace sap
"""
        found = [(line, length) for line, length, _ in cpp_text.functions(text)]
        self.assertEqual(found, [(4, 3), (7, 1), (10, 10), (23, 2)])


class LayersTest(unittest.TestCase):
    def test_a_folder_includes_only_what_stands_before_it(self):
        tree = built({
            "solver/solve.h": "",
            "solver/cholesky/fronts.h": '#include "solver/newton/model.h"\n',
            "solver/newton/model.h": '#include "solver/parallel/stop_token.h"\n',
            "solver/parallel/stop_token.h": '#include "solver/solve.h"\n',
            "solver/solve.cc": '#include "solver/cholesky/fronts.h"\n#include "solver/solve.h"\n',
        })
        self.assertEqual(rules(layers.check(tree)), [
            ("solver/cholesky/fronts.h", 1, "direction"),
            ("solver/parallel/stop_token.h", 1, "direction")])

    def test_no_source_is_included(self):
        tree = built({
            "solver/newton/step.cc": '#include "solver/newton/parts.cc"\n',
            "solver/newton/parts.cc": "",
        })
        self.assertEqual(rules(layers.check(tree)), [("solver/newton/step.cc", 1, "source")])

    def test_the_service_knows_no_transport(self):
        tree = built({
            "server/service/request_handler.h": "#include <grpcpp/grpcpp.h>\n",
            "server/service/request_handler.cc": '#include "server/service/request_handler.h"\n'
                                       '#include "server/rpc/call.h"\n'
                                       '#include "server/server_config.h"\n',
            "server/rpc/call.h": '#include <grpcpp/grpcpp.h>\n'
                                 '#include "server/service/request_handler.h"\n',
            "server/server_config.h": '#include "server/scheduling/queue.h"\n',
            "server/scheduling/queue.h": "",
        })
        self.assertEqual(rules(layers.check(tree)), [
            ("server/service/request_handler.h", 1, "library"),
            ("server/service/request_handler.cc", 2, "direction"),
            ("server/server_config.h", 1, "direction")])

    def test_the_solver_sees_no_transport(self):
        tree = built({
            "solver/solve.cc": '#include <grpcpp/grpcpp.h>\n#include "sap/v1/problem.pb.h"\n'
                               '#include "server/main.h"\n#include <spdlog/spdlog.h>\n'})
        self.assertEqual(rules(layers.check(tree)), [
            ("solver/solve.cc", 1, "library"), ("solver/solve.cc", 2, "library"),
            ("solver/solve.cc", 3, "direction"), ("solver/solve.cc", 3, "library"),
            ("solver/solve.cc", 4, "library")])

    def test_metis_and_tbb_are_included_by_one_file_each(self):
        tree = built({
            "solver/cholesky/metis_separator.cc": "#include <metis.h>\n",
            "solver/parallel/task_arena.cc": "#include <tbb/tbb.h>\n",
            "solver/problem/islands.cc": "#include <metis.h>\n"
                                         "#include <oneapi/tbb/task_arena.h>\n"})
        self.assertEqual(rules(layers.check(tree)), [
            ("solver/problem/islands.cc", 1, "library"),
            ("solver/problem/islands.cc", 2, "library")])

    def test_collision_stays_in_the_simulation(self):
        tree = {"client/cpp/simulation/world.cc": "#include <fcl/fcl.h>\n",
                "client/cpp/client.cc": "#include <fcl/fcl.h>\n",
                "client/cpp/CMakeLists.txt": "client.cc simulation/world.cc"}
        self.assertEqual(rules(layers.check(tree)), [("client/cpp/client.cc", 1, "library")])

    def test_users_of_the_client_see_no_transport(self):
        tree = {"client/cpp/client.h": '#include "client/cpp/transport/channel.h"\n',
                "client/cpp/transport/channel.h": "#include <grpcpp/channel.h>\n",
                "client/cpp/transport/call.h": "#include <grpcpp/channel.h>\n",
                "client/cpp/client.cc": '#include "client/cpp/client.h"\n'
                                        '#include "client/cpp/transport/call.h"\n',
                "client/cpp/CMakeLists.txt": "client.cc"}
        self.assertEqual(rules(layers.check(tree)),
                         [("client/cpp/transport/channel.h", 1, "client header")])

    def test_what_nothing_uses_is_named(self):
        tree = {"server/orphan.h": "", "server/orphan.cc": "", "server/main.cc": "",
                "server/CMakeLists.txt": "add_executable(sap-server main.cc)"}
        self.assertEqual(rules(layers.check(tree)),
                         [("server/orphan.h", 1, "unused"), ("server/orphan.cc", 1, "unused")])

    def test_a_loop_over_nouns_builds_their_files(self):
        tree = {"tests/server/a_test.cc": "", "tests/server/b_test.cc": "",
                "tests/server/CMakeLists.txt": "foreach(noun a)\n add(${noun}_test.cc)"}
        self.assertEqual(rules(layers.check(tree)), [("tests/server/b_test.cc", 1, "unused")])


class SizesTest(unittest.TestCase):
    def test_what_fits_is_accepted(self):
        body = "  f();\n" * 68
        self.assertEqual(list(sizes.check({"a.cc": "void F() {\n" + body + "}\n"})), [])

    def test_long_lines_functions_and_files_are_named(self):
        body = "  f();\n" * 69
        tree = {"a.cc": "\nvoid F() {\n" + body + "}\n", "b.h": "/" * 101, "c.sh": ":\n" * 601,
                "d.py": "def f():\n" + "    f()\n" * 70}
        self.assertEqual(rules(sizes.check(tree)), [
            ("a.cc", 2, "function size"), ("b.h", 1, "line length"), ("c.sh", 601, "file size"),
            ("d.py", 1, "function size")])

    def test_prose_and_data_are_not_measured(self):
        tree = {"README.md": "x" * 200, "tests/data/a.json": "1" * 200}
        self.assertEqual(list(sizes.check(tree)), [])


class WordsTest(unittest.TestCase):
    def found(self, path, text):
        return [finding.message.split("'")[1] for finding in words.check({path: text})]

    def test_banned_calls_are_named(self):
        for call in ("rand()", "std::sprintf(b, f)", "strcpy(a, b)", "atoi(s)", "throw 1;",
                     "printf(f)", "std::cout << 1", "usleep(1)", "exit(1)", "std::thread t",
                     "using namespace std;"):
            with self.subTest(call=call):
                self.assertEqual(len(self.found("solver/a.cc", call + "\n")), 1)

    def test_what_only_looks_like_one_is_accepted(self):
        text = "// rand()\nsnprintf_like(x); operand(1); a.exit(1); b->rand(2); rethrow(3);\n"
        self.assertEqual(self.found("solver/a.cc", text), [])

    def test_the_commands_may_print(self):
        self.assertEqual(self.found("server/main.cc", "std::cout << 1; exit(1);"), [])
        self.assertEqual(self.found("client/cpp/commands/main.cc", "std::cout << 1;"), [])
        self.assertEqual(self.found("server/service/batch.cc", "std::cout << 1;"), ["std::cout"])

    def test_leftovers_are_named(self):
        for text in ("// TODO: later", "# FIXME", "#if 0", "f();  // NOLINT"):
            with self.subTest(text=text):
                self.assertEqual(len(self.found("server/a.cc", text)), 1)
        self.assertEqual(len(self.found("tests/a_test.cc", "GTEST_SKIP();")), 1)

    def test_flags_that_change_bits_are_named(self):
        self.assertEqual(self.found("solver/CMakeLists.txt", "-O3 -ffast-math"), ["-ffast-math"])

    def test_paths_of_one_machine_are_named(self):
        self.assertEqual(self.found("README.md", "see /home/me"), ["/home/m"])
        self.assertEqual(self.found("tests/run.sh", "ls ../shared"), ["../shared"])
        self.assertEqual(self.found(".ci/run", "ls ../shared"), [])


class ProseTest(unittest.TestCase):
    def found(self, path, text):
        return [(finding.line, finding.message.split("'")[1])
                for finding in words.check({path: text})]

    def test_fragments_at_the_beginning_of_a_comment_are_named(self):
        for text, words_found in (
                ("int a;\n// Of units [begin, end) of a pool.\nint F();\n", "Of"),
                ("int a;\nint b;  // Of the island.\n", "Of"),
                ("f();\n// The same of the velocities.\n", "The same of"),
                ("int a;  // a number\n// Of the island.\nint b;\n", "Of"),
                ("int a;\n// Those of a contact.\n", "Those"),
                ("f();\n// That bound.\n", "That"),
                ("f();\n// And the size.\n", "And"),
                ("f();\n// What derivatives of an island are computed in\n", "What")):
            with self.subTest(text=text):
                self.assertEqual(self.found("solver/a.h", text), [(2, words_found)])

    def test_a_comment_goes_on_in_the_same_column(self):
        text = "int a;  // with those\n        // Of a row.\n"
        self.assertEqual(self.found("solver/a.h", text), [])

    def test_tests_and_documents_may_begin_with_a_clause(self):
        self.assertEqual(self.found("tests/a_test.cc", "// What is sent is bounded.\n"), [])
        self.assertEqual(self.found("a.md", "What is sent is bounded.\n\nThat is all.\n"), [])

    def test_fragments_in_docstrings_and_documents_are_named(self):
        self.assertEqual(self.found("a.py", 'def f():\n    """As `solve`."""\n'),
                         [(2, "As `solve`.")])
        self.assertEqual(self.found("a.md", "# A\n\n- Of the scene.\n"), [(3, "Of")])

    def test_phrases_are_named_across_lines(self):
        self.assertEqual(self.found("a.cc", "// All but\n// for one.\n"), [(1, "but for")])
        self.assertEqual(self.found("a.md", "Little beside that.\n\nShafts of above.\n"),
                         [(1, "beside"), (3, "of above")])
        self.assertEqual(self.found("a.sh", "f  # from the begin on\n"), [(1, "from the begin")])
        self.assertEqual(self.found("a.inc", "// Made\n// anew for who\n// asks.\n"),
                         [(1, "anew"), (1, "for who")])
        self.assertEqual(self.found("a.c", "// A message of so\n// many bytes.\n"),
                         [(1, "of so many")])
        self.assertEqual(self.found("a.rs", "// In the\n// place of it.\n"),
                         [(1, "In the place of")])

    def test_sentences_are_accepted(self):
        self.assertEqual(self.found("a.md", "Of course.\n\nSome of the same,\nOf a kind.\n"), [])
        self.assertEqual(self.found("a.cc", "// Rows\n// Of a pool, as `X`.\n"), [])

    def test_quotations_of_documents_keep_their_words(self):
        self.assertEqual(self.found("a.md", "> Of above,\n> anew.\n\nAnew.\n"), [(4, "Anew")])

    def test_code_and_strings_are_no_prose(self):
        self.assertEqual(self.found("a.cc", 'f("// beside");  // next\n'), [])
        self.assertEqual(self.found("a.py", "beside = '# but for'\n"), [])
        self.assertEqual(self.found("a.md", "```sh\nfind beside\n```\n"), [])


class PythonLayersTest(unittest.TestCase):
    def test_what_the_page_of_the_package_does_not_name_is_found(self):
        package = python_layers.PACKAGE
        tree = {package + path: "" for path in ("fem/__init__.py", "fem/mesh.py", "tls.py")}
        tree[package + "README.md"] = "| `fem/` | bodies |"
        found = [finding.message for finding in python_layers.check(tree)]
        self.assertEqual(found, ["does not name tls.py"])


class FoldersTest(unittest.TestCase):
    def test_a_map_lists_the_folders_of_its_folder(self):
        text = folders.with_maps("solver/README.md",
                                 "<!-- folders: solver -->\n?\n<!-- end of folders -->\n")
        self.assertIn(f"\n| [newton](newton) | {folders.FOLDERS['solver/newton']} |\n", text)
        self.assertNotIn("server", text)
        self.assertEqual(folders.with_maps("solver/README.md", text), text)

    def test_the_top_level_is_linked_from_where_the_map_stands(self):
        text = folders.with_maps("tests/README.md",
                                 "<!-- folders: . -->\n<!-- end of folders -->\n")
        self.assertIn("| [client/cpp](../client/cpp) |", text)
        self.assertNotIn("newton", text)

    def test_a_map_that_is_not_current_is_named(self):
        tree = dict.fromkeys((folder + "/a" for folder in folders.FOLDERS), "")
        tree["a.md"] = "<!-- folders: server -->\n| rpc |\n<!-- end of folders -->"
        self.assertEqual(rules(folders.check(tree)), [("a.md", 1, "folders")])

    def test_a_folder_that_is_gone_is_named(self):
        tree = dict.fromkeys((folder + "/a" for folder in folders.FOLDERS), "")
        del tree["server/auth/a"]
        self.assertEqual(rules(folders.check(tree)), [("tests/tidy/folders.py", 1, "folders")])


class TopLevelTest(unittest.TestCase):
    def test_an_entry_outside_the_layout_is_named(self):
        tree = {"README.md": "", "notes/a.txt": "", "notes/b.txt": "", "solver/CMakeLists.txt": ""}
        self.assertEqual(rules(tidy.check_top_level(tree)), [("notes", 1, "layout")])


if __name__ == "__main__":
    unittest.main()
