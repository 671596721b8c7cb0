#include "tests/structure/types.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace difftape::test {
namespace {

using Tokens = std::vector<std::string>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Where the literal that begins with the quote at `begin` ends.
std::size_t end_of_literal(std::string_view text, std::size_t begin) {
  if (begin > 0 && text[begin - 1] == 'R') {  // R"x( ... )x"
    const std::size_t open = text.find('(', begin);
    const std::string close = ")" + std::string(text.substr(begin + 1, open - begin - 1)) + "\"";
    return text.find(close, open) + close.size();
  }
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != text[begin]) end += text[end] == '\\' ? 2 : 1;
  return end + 1;
}

/// Where the directive that begins at `begin` ends; a backslash continues it on the next line.
std::size_t end_of_directive(std::string_view text, std::size_t begin) {
  std::size_t end = text.find('\n', begin);
  while (end != std::string_view::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return end;
}

/// Words and punctuation, each literal as its opening quote; without comments and directives.
Tokens tokens_of(std::string_view text) {
  Tokens tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::size_t end = at + 1;
    if (rest.starts_with("//")) {
      end = text.find('\n', at);
    } else if (rest.starts_with("/*")) {
      end = text.find("*/", at) + 2;
    } else if (rest[0] == '#') {
      end = end_of_directive(text, at);
    } else if (rest[0] == '"' || rest[0] == '\'') {
      tokens.emplace_back(1, rest[0]);
      end = end_of_literal(text, at);
    } else if (is_word(rest[0])) {  // a number may hold quotes: 1'000
      const bool number = std::isdigit(static_cast<unsigned char>(rest[0])) != 0;
      while (end < text.size() && (is_word(text[end]) || (number && text[end] == '\''))) ++end;
      tokens.emplace_back(text.substr(at, end - at));
    } else if (std::isspace(static_cast<unsigned char>(rest[0])) == 0) {
      if (rest.starts_with("::") || rest.starts_with("[[") || rest.starts_with("]]")) ++end;
      tokens.emplace_back(text.substr(at, end - at));
    }
    at = end;
  }
  return tokens;
}

/// What stands between a brace and its partner.
struct Scope {
  enum class Kind { named, unnamed, linkage, body } kind;
  std::string name = {};
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : tokens_(tokens_of(text)) { scan(); }
  std::vector<TypeName> types;
  std::vector<std::string> namespaces;

 private:
  void scan() {
    while (at_ < tokens_.size()) {
      const std::string token = next();
      if (token == "}") {
        if (!scopes_.empty()) scopes_.pop_back();
      } else if (token == "{") {
        scopes_.push_back({Scope::Kind::body});
      } else if (in_namespace()) {
        declaration(token);
      }
    }
  }

  void declaration(const std::string& token) {
    if (token == "namespace") open_namespace();
    if (token == "extern" && peek() == "\"" && peek(1) == "{") {
      at_ += 2;
      scopes_.push_back({Scope::Kind::linkage});
    }
    if (token == "template") skip_balanced("<", ">");
    if (token == "(") {
      --at_;
      skip_balanced("(", ")");
    }
    if (token == "using" && peek(1) == "=") add(peek());
    if (token == "struct" || token == "class" || token == "enum") definition();
  }

  void open_namespace() {
    std::string name;
    while (peek() != "{" && peek() != "=" && at_ < tokens_.size()) name += next();
    if (next() == "=") return;  // an alias
    scopes_.push_back({name.empty() ? Scope::Kind::unnamed : Scope::Kind::named, name});
    if (!name.empty()) namespaces.push_back(scope());
  }

  void definition() {
    if (peek() == "class" || peek() == "struct") next();  // enum class
    while (peek() == "[[" || peek() == "alignas") {
      peek() == "alignas" ? (next(), skip_balanced("(", ")")) : skip_balanced("[[", "]]");
    }
    const std::string name = peek();
    if (peek(1) != "{" && peek(1) != ":" && peek(1) != "final") return;
    std::size_t end = at_;
    while (end < tokens_.size() && tokens_[end] != "{" && tokens_[end] != ";") ++end;
    if (end == tokens_.size() || tokens_[end] == ";") return;
    add(name);
    at_ = end;
  }

  void add(const std::string& name) {
    const auto unnamed = [](const Scope& scope) { return scope.kind == Scope::Kind::unnamed; };
    types.push_back({scope(), name, std::ranges::any_of(scopes_, unnamed)});
  }

  bool in_namespace() const {
    const auto body = [](const Scope& scope) { return scope.kind == Scope::Kind::body; };
    return std::ranges::none_of(scopes_, body);
  }

  std::string scope() const {
    std::string all;
    for (const Scope& scope : scopes_) {
      if (scope.kind == Scope::Kind::named) all += (all.empty() ? "" : "::") + scope.name;
    }
    return all;
  }

  /// Skips what follows from `open` to its partner, if `open` follows.
  void skip_balanced(const std::string& open, const std::string& close) {
    if (peek() != open) return;
    int depth = 0;
    do {
      const std::string token = next();
      depth += token == open ? 1 : token == close ? -1 : 0;
    } while (depth > 0 && at_ < tokens_.size());
  }

  std::string next() { return at_ < tokens_.size() ? tokens_[at_++] : ""; }
  std::string peek(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : "";
  }

  Tokens tokens_;
  std::size_t at_ = 0;
  std::vector<Scope> scopes_;
};

}  // namespace

std::vector<TypeName> types_in(std::string_view text) { return Scanner(text).types; }

std::vector<std::string> namespaces_in(std::string_view text) { return Scanner(text).namespaces; }

std::vector<std::string> conflicting_types(std::span<const Source> sources) {
  struct Local {
    std::string file;
    TypeName type;
  };
  std::map<std::string, std::string> shared, of_headers;  // file by full name
  std::vector<Local> locals;
  std::vector<std::string> conflicts;
  for (const Source& source : sources) {
    for (const TypeName& type : types_in(source.text)) {
      if (type.local) {
        locals.push_back({source.path, type});
        continue;
      }
      const auto [first, added] = shared.emplace(type.full(), source.path);
      if (!added && first->second != source.path) {
        conflicts.push_back(type.full() + " is defined in " + first->second + " and in " +
                            source.path);
      }
      if (source.is_header()) of_headers.emplace(type.full(), source.path);
    }
  }
  for (auto& [file, type] : locals) {
    for (TypeName outer = type;; outer.scope.resize(outer.scope.rfind("::"))) {
      if (const auto found = of_headers.find(outer.full()); found != of_headers.end()) {
        conflicts.push_back(type.full() + " of an unnamed namespace in " + file + " hides " +
                            found->first + " of " + found->second);
      }
      if (outer.scope.find("::") == std::string::npos) break;
    }
  }
  return conflicts;
}

}  // namespace difftape::test
