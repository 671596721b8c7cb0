// The documents that configs/corpora/documents.pl extracts from each kind of text.
#include "tests/train/app/program.h"

namespace difftape::test {
namespace {

const std::string kScript = DIFFTAPE_TEST_SOURCE_DIR "/configs/corpora/documents.pl";
/// Longer than what is left out as a stub.
const std::string kLong = std::string(200, 'x') + "\n";

/// The lines that documents.pl prints for files of these paths and contents.
std::vector<std::string> lines_of(const std::string& kind,
                                  const std::vector<std::pair<std::string, std::string>>& files) {
  const ScratchDir dir;
  std::string paths;
  for (const auto& [path, text] : files) {
    fs::create_directories((dir / path).parent_path());
    put(dir / path, text);
    paths += path + "\n";
  }
  put(dir / "paths", paths);
  const Outcome outcome = run({"-c", "perl " + kScript + " " + kind + " . <paths"},
                              {.directory = dir.path(), .program = "/bin/bash"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  std::istringstream out(outcome.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(out, line);) lines.push_back(line);
  return lines;
}

/// The text of the only document of a file, to which a long line is added that is taken off again.
std::string text_of(const std::string& kind, const std::string& source) {
  const auto lines = lines_of(kind, {{"file", source + "\n" + kLong}});
  if (lines.size() != 1) return "not one document";
  std::string text = nlohmann::json::parse(lines[0])["text"];
  const std::size_t end = text.rfind(kLong);
  return end == std::string::npos ? text : text.substr(0, end);
}

TEST(CorpusDocuments, of_restructured_text_have_no_roles_links_labels_or_directives) {
  EXPECT_EQ(text_of("rest",
                    ".. SPDX-License-Identifier: GPL-2.0\n"
                    ".. _label:\n"
                    "\n"
                    "Title\n"
                    "=====\n"
                    "See :ref:`the tutorial <tut>`, :c:func:`kmalloc` and :class:`~a.B`,\n"
                    "``x = 1``, **bold** and *slanted*, `a site <https://a.b>`_, 2 * 3 * 4.\n"
                    "\n"
                    ".. function:: open(file)\n"
                    "   :noindex:\n"
                    "\n"
                    "   Opens it.\n"
                    "\n"
                    "   .. versionadded:: 3.2\n"
                    "\n"
                    ".. toctree::\n"
                    "   :maxdepth: 1\n"
                    "\n"
                    "   other\n"
                    "\n"
                    "Code::\n"
                    "\n"
                    "   *p = :ref:`q`;\n"
                    "\n"
                    "End.\n"),
            "Title\n"
            "=====\n"
            "See the tutorial, kmalloc and a.B,\n"
            "x = 1, bold and slanted, a site, 2 * 3 * 4.\n"
            "\n"
            "open(file)\n"
            "\n"
            "   Opens it.\n"
            "\n"
            "   New in version 3.2:\n"
            "\n"
            "Code:\n"
            "\n"
            "   *p = :ref:`q`;\n"
            "\n"
            "End.\n"
            "\n");
}

TEST(CorpusDocuments, of_pod_have_no_commands_or_codes) {
  EXPECT_EQ(text_of("pod",
                    "=encoding utf8\n"
                    "\n"
                    "=head1 A B<bold> head\n"
                    "X<index>\n"
                    "\n"
                    "Use C<< $a->{x} >> or L<the manual|perlop/\"Terms\">, L<perlfunc/open>,\n"
                    "if 1 E<lt> 2, caf\303\251 or cafE<eacute>.\n"
                    "\n"
                    "    my $x = C<verbatim>;\n"
                    "\n"
                    "=over 4\n"
                    "\n"
                    "=item *\n"
                    "\n"
                    "first\n"
                    "\n"
                    "=back\n"
                    "\n"
                    "=begin comment\n"
                    "\n"
                    "hidden\n"
                    "\n"
                    "=end comment\n"
                    "\n"
                    "=for comment hidden\n"),
            "A bold head\n"
            "\n"
            "Use $a->{x} or the manual, \"open\" in perlfunc,\n"
            "if 1 < 2, caf\303\251 or caf\303\251.\n"
            "\n"
            "    my $x = C<verbatim>;\n"
            "\n"
            "* first\n"
            "\n");
}

TEST(CorpusDocuments, of_html_are_its_sections_without_tags_and_entities) {
  const auto lines = lines_of(
      "html", {{"a.html",
                "<html><head><title>no</title></head><body><h1>One</h1>\n<p>a &amp; <b>b</b>"
                "&nbsp;&#8212;\nc<br/>d</p>" +
                    kLong +
                    "<h2><a name=\"x\">Two</a></h2>"
                    "<ul><li>e</li></ul>" +
                    kLong + "</body></html>"}});
  ASSERT_EQ(lines.size(), 2);
  const auto one = nlohmann::json::parse(lines[0]), two = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(one["id"], "a.html");
  EXPECT_EQ(one["text"], "One\n\na & b \342\200\224 c\nd\n\n" + kLong);
  EXPECT_EQ(two["id"], "a.html#2");
  EXPECT_EQ(two["text"], "Two\n\n* e\n\n" + kLong);
}

TEST(CorpusDocuments, of_the_dictionary_have_no_pronunciation_and_marks_become_letters) {
  EXPECT_EQ(text_of("gcide",
                    "00-database-info\n"
                    "   A notice.\n"
                    "Lark \\Lark\\ (l[aum]rk), n. [AS. l[=a]werce; cf. {Lake}.]\n"
                    "   A frolic. [Colloq.] --Dickens.\n"
                    "   [1913 Webster +PJC]\n"
                    "\n"
                    "Larky \\Lark\"y\\, a.\n"
                    "   Gay, as a caf['e]. -- {Lark\"i*ly}, adv.\n"
                    "   [WordNet 1.5]\n"),
            "Lark, n. [AS. l\304\201werce; cf. Lake.]\n"
            "   A frolic. [Colloq.] --Dickens.\n"
            "\n"
            "Larky, a.\n"
            "   Gay, as a caf\303\251. -- Larkily, adv.\n"
            "\n");
}

TEST(CorpusDocuments, of_the_dictionary_end_only_between_different_headwords) {
  std::string source;
  for (int i = 0; i < 3000; ++i) {
    const std::string headword = "Word" + std::to_string(i / 3);
    source +=
        headword + " \\" + headword + "\\, n.\n   Sense of word " + std::to_string(i) + ".\n\n";
  }
  const auto lines = lines_of("gcide", {{"gcide", source}});
  ASSERT_EQ(lines.size(), 4);  // of 32,000 bytes each but the last
  std::string all;
  for (const std::string& line : lines) {
    const std::string text = nlohmann::json::parse(line)["text"];
    const std::string first = text.substr(0, text.find(','));
    EXPECT_EQ(all.find(first + ","), std::string::npos) << first << " is in two documents";
    all += text;
  }
  EXPECT_NE(all.find("Sense of word 2999."), std::string::npos);
}

TEST(CorpusDocuments, of_c_are_files_in_the_group_of_their_folder) {
  const auto lines =
      lines_of("c", {{"net/ipv4/tcp.c", "int a;  \n\n\n\n\n\nchar b = '\\\\';\t\n" + kLong}});
  ASSERT_THAT(lines, ElementsAre(R"({"id":"net/ipv4/tcp.c","group":"net/ipv4","text":)"
                                 R"("int a;\n\n\nchar b = '\\\\';\n)" +
                                 kLong.substr(0, 200) + R"(\n"})"));
}

TEST(CorpusDocuments, are_valid_utf8_without_control_characters_for_any_file) {
  const std::string text =
      text_of("c", std::string("a\0b\001c\r\nd\f\x7f", 10) + "caf\351 \x93quoted\x94");
  EXPECT_EQ(text, "abc\nd\ncaf\303\251 \342\200\234quoted\342\200\235\n");
}

TEST(CorpusDocuments, that_are_stubs_are_left_out) {
  EXPECT_THAT(lines_of("c", {{"a/stub.c", "int a;\n"}, {"a/b.c", kLong}}),
              ElementsAre(HasSubstr("a/b.c")));
}

}  // namespace
}  // namespace difftape::test
