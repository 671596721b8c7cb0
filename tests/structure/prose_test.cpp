// Checks that Markdown, comments and string literals avoid phrases that readers stumble over.
#include <cctype>

#include "tests/structure/readme_lines.h"

namespace difftape::test {
namespace {

/// A passage of prose with the place where it begins.
struct Passage {
  std::string file;
  int line;
  std::string text;
};

std::string place(const Passage& passage) {
  return passage.file + ":" + std::to_string(passage.line) + ": " + passage.text;
}

bool is_generated(const std::string& path) {
  static const std::regex generated(
      "(build|data|runs|\\.git|results|bench/results|tests/fuzz/corpus)/.*|"
      "tests/structure/prose_test\\.cpp|LICENSE");
  return std::regex_match(path, generated);
}

/// Returns the paths, relative to the root, of all files with one of the extensions.
std::vector<std::string> files_with(const std::vector<std::string>& extensions) {
  std::vector<std::string> found;
  for (const auto& top : fs::directory_iterator(kRoot)) {
    const std::string name = top.path().filename();
    if (is_generated(name + "/")) continue;
    const auto add = [&](const fs::path& path) {
      const std::string relative = fs::relative(path, kRoot);
      if (std::ranges::count(extensions, path.extension().string()) > 0 &&
          !is_generated(relative)) {
        found.push_back(relative);
      }
    };
    if (top.is_regular_file()) add(top.path());
    if (!top.is_directory()) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top.path())) {
      if (entry.is_regular_file()) add(entry.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> raw_lines(const std::string& path) {
  std::ifstream in(kRoot / path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string without_code(const std::string& text) {
  static const std::regex code("`[^`]*`");
  return std::regex_replace(text, code, "X");
}

/// Returns paragraphs and list items of a Markdown file, without code, and its table cells.
void read_markdown(const std::string& path, std::vector<Passage>& prose,
                   std::vector<Passage>& cells) {
  bool in_code = false;
  Passage open{path, 0, ""};
  const auto close = [&] {
    if (!open.text.empty()) prose.push_back(open);
    open.text.clear();
  };
  int number = 0;
  for (const std::string& line : raw_lines(path)) {
    ++number;
    if (line.find("```") != std::string::npos) {
      close();
      in_code = !in_code;
      continue;
    }
    if (in_code || line.starts_with("    ")) continue;
    if (line.starts_with("|")) {
      close();
      std::stringstream row(line.substr(1));
      for (std::string cell; std::getline(row, cell, '|');) cells.push_back({path, number, cell});
      continue;
    }
    static const std::regex begins("\\s*([-*#]|[0-9]+\\.|>|$).*");
    if (std::regex_match(line, begins)) close();
    if (open.text.empty()) open.line = number;
    open.text += (open.text.empty() ? "" : " ") + line;
  }
  close();
}

/// Returns the comments of a source file, adjacent lines joined, and its string literals.
void read_source(const std::string& path, std::vector<Passage>& comments,
                 std::vector<Passage>& literals) {
  static const std::regex comment("(.*?)//[/<]*\\s?(.*)");
  static const std::regex literal("\"((?:[^\"\\\\]|\\\\.)*)\"");
  Passage open{path, 0, ""};
  const auto close = [&] {
    if (!open.text.empty()) comments.push_back(open);
    open.text.clear();
  };
  int number = 0;
  for (const std::string& line : raw_lines(path)) {
    ++number;
    const std::string code = std::regex_replace(line, literal, "\"\"");
    for (std::sregex_iterator each(line.begin(), line.end(), literal), none; each != none; ++each) {
      literals.push_back({path, number, (*each)[1]});
    }
    std::smatch parts;
    const bool formula = std::regex_match(code, parts, comment) && parts[2].str().starts_with("  ");
    if (parts.empty() || formula) {
      close();
      continue;
    }
    if (code.find_first_not_of(' ') != code.find("//") || parts[2].length() == 0) close();
    if (open.text.empty()) open.line = number;
    open.text += (open.text.empty() ? "" : " ") + parts[2].str();
  }
  close();
}

/// Returns whether a comment begins with a relative clause instead of a verb or a noun.
bool begins_with_clause(const std::string& text) {
  static const std::regex clause("(What|Where|Whether|Those|Who|Of)\\b.*");
  return std::regex_match(text, clause);
}

/// Returns what is wrong with the words of a passage, or nothing.
std::string objection(const std::string& text) {
  static const std::regex dialect(
      "\\b(is|are) no\\b(?! longer)|\\btexts\\b|whole number|\\bof ours\\b|what is said|is there;");
  static const std::regex there("[Tt]here (is|are) no\\b");
  static const std::regex british(
      "\\b(behaviour|colour|neighbour|favour|honour|centre|licence|optimiser|artefact|grey|"
      "labelled|modelling|(normal|initial|optim|serial|special|organ|recogn|summar|minim|maxim|"
      "random|regular|general|util|penal|real)is(e|ed|es|ing|ation)s?)\\b",
      std::regex::icase);
  std::smatch match;
  const std::string checked = std::regex_replace(text, there, "there lacks");
  if (std::regex_search(checked, match, dialect)) return "the phrase '" + match[0].str() + "'";
  if (std::regex_search(text, match, british)) return "the spelling '" + match[0].str() + "'";
  return "";
}

/// Returns the first sentence with more than 40 words, or nothing.
std::string long_sentence(const std::string& text) {
  static const std::regex end("[.!?:;](\\s|$)|\\s-\\s");
  std::sregex_token_iterator sentence(text.begin(), text.end(), end, -1), none;
  for (; sentence != none; ++sentence) {
    std::stringstream words(sentence->str());
    int count = 0;
    for (std::string word; words >> word;) ++count;
    if (count > 40) return sentence->str();
  }
  return "";
}

/// Returns the objections of all passages, one per line.
std::string objections(const std::vector<Passage>& passages) {
  std::string found;
  for (const Passage& passage : passages) {
    const std::string text = without_code(passage.text);
    const std::string words = objection(text);
    if (!words.empty()) found += place(passage) + "\n  has " + words + "\n";
    const std::string sentence = long_sentence(text);
    if (!sentence.empty()) found += place(passage) + "\n  has a sentence of over 40 words\n";
  }
  return found;
}

TEST(Prose, markdown_is_plain) {
  std::vector<Passage> prose, cells;
  for (const std::string& path : files_with({".md"})) read_markdown(path, prose, cells);
  ASSERT_GT(prose.size(), 100U);
  ASSERT_GT(cells.size(), 200U);
  EXPECT_EQ(objections(prose), "");
  EXPECT_EQ(objections(cells), "");
  for (const Passage& cell : cells) EXPECT_LE(cell.text.size(), 162U) << place(cell);
}

TEST(Prose, comments_and_messages_are_plain) {
  std::vector<Passage> comments, literals;
  for (const std::string& path : files_with({".h", ".cpp"})) read_source(path, comments, literals);
  ASSERT_GT(comments.size(), 100U);
  EXPECT_EQ(objections(comments), "");
  EXPECT_EQ(objections(literals), "");
  for (const Passage& each : comments) EXPECT_FALSE(begins_with_clause(each.text)) << place(each);
}

TEST(Prose, detects_each_kind_of_defect) {
  EXPECT_TRUE(begins_with_clause("Of these, the first"));
  EXPECT_FALSE(begins_with_clause("Offers the first"));
  EXPECT_NE(objection("it is no directory"), "");
  EXPECT_NE(objection("two texts"), "");
  EXPECT_NE(objection("a normalised behaviour"), "");
  EXPECT_EQ(objection("there is no directory, and it is no longer needed"), "");
  std::string words;
  for (int i = 0; i < 41; ++i) words += "word ";
  EXPECT_NE(long_sentence(words), "");
  EXPECT_EQ(long_sentence("a short one. " + words.substr(0, 200)), "");
}

}  // namespace
}  // namespace difftape::test
