#include "train/run/config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"

namespace difftape::run {

std::string SourceLocation::str() const {
  return line == 0 ? source : fmt::format("{}:{}:{}", source, line, column);
}

std::string SourceLocation::origin() const {
  if (source.empty()) return "default";
  return line == 0 ? source.substr(0, source.find(' ')) : fmt::format("{}:{}", source, line);
}

namespace {

constexpr std::size_t kMostErrors = 50;
constexpr std::size_t kHead = 700, kTail = 300;  // bytes of a long message that are shown

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Shortens a message that quotes a long value. UTF-8 is cut between characters.
std::string without_middle(const std::string& message) {
  if (message.size() <= kHead + kTail) return message;
  std::size_t head = kHead, tail = message.size() - kTail;
  while (head > 0 && continues_character(message[head])) --head;
  while (tail < message.size() && continues_character(message[tail])) ++tail;
  return fmt::format("{} ... {}", message.substr(0, head), message.substr(tail));
}

}  // namespace

void ConfigErrors::add(const SourceLocation& location, const std::string& message) {
  std::string line = fmt::format("{}: error: {}", location.str(), without_middle(message));
  if (std::find(lines_.begin(), lines_.end(), line) != lines_.end()) return;
  if (full())
    ++more_;
  else
    lines_.push_back(std::move(line));
}

bool ConfigErrors::full() const { return lines_.size() == kMostErrors; }

void ConfigErrors::throw_if_any() const {
  if (!any()) return;
  const std::string more = more_ == 0 ? "" : fmt::format("\nand {} more", more_);
  throw ConfigError(fmt::format("{}{}", fmt::join(lines_, "\n"), more));
}

namespace {

struct YamlProblem {
  SourceLocation location;
  const char* message;
};

/// Builds the tree from the parser's events. YAML::Node hides duplicate keys and the locations of
/// empty values, and expands aliases without bound.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string source, YamlSource kind) : source_(std::move(source)), kind_(kind) {}

  SourceLocation location(const YAML::Mark& mark) const {
    if (kind_ == YamlSource::command_line) return {source_, 0, 0};
    return {source_, mark.line + 1, mark.column + 1};
  }

  YamlNode take_root() { return std::move(root_); }

 private:
  using Kind = YamlNode::Kind;
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key;  ///< in a map, the key of the next value
  };

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(leaf(Kind::null, mark)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YamlProblem{location(mark),
                      "aliases (*name) are not supported; repeat the value, or share "
                      "it through 'base:'"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    YamlNode node = leaf(Kind::scalar, mark);
    node.text = text;
    node.quoted = tag == "!" || tag.ends_with(":str");
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open_.push_back({leaf(Kind::list, mark), {}});
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open_.push_back({leaf(Kind::map, mark), {}});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  YamlNode leaf(Kind kind, const YAML::Mark& mark) const {
    YamlNode node;
    node.kind = kind;
    node.location = location(mark);
    return node;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.kind == Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      // An empty value has the location of its key.
      if (node.kind == Kind::null) node.location = parent.key->location;
      parent.node.pairs.push_back({std::move(*parent.key), std::move(node)});
      parent.key.reset();
    } else if (node.kind == Kind::scalar) {
      parent.key = std::move(node);
    } else {
      throw YamlProblem{node.location,
                        "a key is empty, a list or a map, but must be a single word"};
    }
  }

  std::string source_;
  YamlSource kind_;
  std::vector<Open> open_;
  YamlNode root_;
};

/// Returns a hint on a cause that the parser's message does not mention: tabs, or an open bracket,
/// which it notices only where the next key begins; else an empty string.
std::string advice(const std::string& text, const YAML::Exception& error) {
  if (error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) return "; a '}' or ',' is missing before this";
  if (error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "; a ']' or ',' is missing before this";
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= error.mark.line; ++i) std::getline(lines, line);
  const auto first = line.find_first_not_of(' ');
  const bool tab = first != std::string::npos && line[first] == '\t';
  return tab ? "; tabs cannot indent YAML, use spaces" : "";
}

}  // namespace

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::scalar:
      break;
  }
  return fmt::format("{}'{}'", quoted ? "the string " : "", text);
}

std::optional<YamlNode> parse_yaml(const std::string& text, const std::string& source,
                                   YamlSource kind, ConfigErrors& errors) {
  TreeBuilder tree(source, kind), rest(source, kind);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(tree);
    if (parser.HandleNextDocument(rest)) {
      errors.add(
          rest.take_root().location,
          "a second YAML document begins ('---'), but a file must have exactly one; remove it");
      return std::nullopt;
    }
    return tree.take_root();
  } catch (const YAML::DeepRecursion& e) {
    errors.add(tree.location(e.mark), "invalid YAML: nested too deeply");
  } catch (const YAML::Exception& e) {
    errors.add(tree.location(e.mark), "invalid YAML: " + e.msg + advice(text, e));
  } catch (const YamlProblem& problem) {
    errors.add(problem.location, problem.message);
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

namespace {

bool in_brackets(std::string_view text) {
  return text.size() >= 2 && text.front() == '[' && text.back() == ']';
}

/// Splits the inside of a list at the commas outside quotes.
std::vector<std::string_view> items_in(std::string_view inside) {
  std::vector<std::string_view> items;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const bool opens = quote == 0 && trimmed(inside.substr(begin, i - begin)).empty();
    if (quote != 0 && inside[i] == quote) {
      quote = 0;
    } else if (opens && (inside[i] == '"' || inside[i] == '\'')) {
      quote = inside[i];
    } else if (quote == 0 && inside[i] == ',') {
      items.push_back(trimmed(inside.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  const std::string_view last = trimmed(inside.substr(begin));
  if (!last.empty()) items.push_back(last);  // [a, b,] has two items
  return items;
}

YamlNode scalar(std::string_view text, const SourceLocation& location) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.location = location;
  node.text = text;
  return node;
}

YamlNode item_of_list(std::string_view text, const SourceLocation& location) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '"' || text.front() == '\'');
  YamlNode node = scalar(quoted ? text.substr(1, text.size() - 2) : text, location);
  node.quoted = quoted;
  return node;
}

}  // namespace

YamlNode literal_value(std::string_view text, const SourceLocation& location) {
  YamlNode node = scalar(text, location);
  if (text.empty()) node.kind = YamlNode::Kind::null;
  const std::string_view bare = trimmed(text);
  if (!in_brackets(bare)) return node;
  const std::vector<std::string_view> items = items_in(bare.substr(1, bare.size() - 2));
  if (std::ranges::any_of(items, &std::string_view::empty)) return node;  // "[,]" is not a list
  node.kind = YamlNode::Kind::list;
  for (const std::string_view item : items) node.items.push_back(item_of_list(item, location));
  return node;
}

}  // namespace difftape::run
