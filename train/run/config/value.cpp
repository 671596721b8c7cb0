#include "train/run/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "train/system/suggest.h"

namespace difftape::run {
namespace {

/// Exception for a bad value; read_value turns it into an error at the location of the node.
struct BadValue {
  const YamlNode& node;
  std::string message;
};

/// Parses all of `text` as a T, with an optional sign; returns an error code if it does not fit.
template <class T>
std::errc parse_all(const std::string& text, T& out) {
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  const char *begin = text.data() + (plus ? 1 : 0), *stop = text.data() + text.size();
  const auto [end, status] = std::from_chars(begin, stop, out);
  return status == std::errc() && end != stop ? std::errc::invalid_argument : status;
}

/// Returns true for the empty value of `--set KEY=`, which is an empty string or list.
bool is_empty_override(const YamlNode& node) {
  return node.kind == YamlNode::Kind::null && node.location.line == 0;
}

class ValueReader {
 public:
  explicit ValueReader(const ValueSpec& spec) : spec_(spec) {}

  ConfigValue read(const YamlNode& node) const {
    if (is_share(node)) return node.text;
    if (spec_.constraint.or_number && looks_like_number(node)) return read_as(node, 0.0);
    return std::visit([&](const auto& like) { return ConfigValue(read_as(node, like)); },
                      spec_.initial);
  }

 private:
  static bool looks_like_number(const YamlNode& node) {
    return node.kind == YamlNode::Kind::scalar && !node.quoted &&
           node.text.find_first_of("+-.0123456789") == 0;
  }

  bool is_share(const YamlNode& node) const {
    return !spec_.constraint.share_of.empty() && node.kind == YamlNode::Kind::scalar &&
           percent_of(node.text).has_value();
  }

  BadValue mistyped(const YamlNode& node, const std::string& expected,
                    const std::string& advice = "") const {
    const std::string& whole = spec_.constraint.share_of;
    const std::string or_share =
        whole.empty() ? "" : fmt::format(", or a fraction of {} such as 10%", whole);
    return {node,
            fmt::format("expected {}{}, got {}{}", expected, or_share, node.describe(), advice)};
  }

  const std::string& plain_scalar(const YamlNode& node, const std::string& expected) const {
    if (node.kind != YamlNode::Kind::scalar) throw mistyped(node, expected);
    if (node.quoted) throw mistyped(node, expected, "; remove the quotes");
    return node.text;
  }

  void check_range(const YamlNode& node, double number) const {
    if (spec_.constraint.allows(number)) return;
    throw BadValue{node,
                   fmt::format("{} is out of range; need {}", node.text, spec_.constraint.range())};
  }

  bool read_as(const YamlNode& node, bool) const {
    const std::string& text = plain_scalar(node, "true or false");
    if (text != "true" && text != "false") throw mistyped(node, "true or false");
    return text == "true";
  }

  Index read_as(const YamlNode& node, Index) const {
    const std::string& text = plain_scalar(node, "an integer");
    Index value = 0;
    const std::errc status = parse_all(text, value);
    if (status == std::errc::result_out_of_range)
      throw BadValue{node, fmt::format("{} is out of range; need a 64-bit integer", text)};
    if (status != std::errc()) {
      double number = 0;
      const bool whole = parse_all(text, number) == std::errc() &&
                         std::nearbyint(number) == number && std::abs(number) < 1e15;
      throw mistyped(node, "an integer", whole ? fmt::format("; write {:.0f}", number) : "");
    }
    check_range(node, static_cast<double>(value));
    return value;
  }

  double read_as(const YamlNode& node, double) const {
    const std::string& text = plain_scalar(node, "a number");
    double value = 0;
    const std::errc status = parse_all(text, value);
    if (status == std::errc::result_out_of_range)
      throw BadValue{node, fmt::format("{} is out of range; need a 64-bit float", text)};
    const bool not_finite = text == ".inf" || text == "-.inf" || text == ".nan";
    if (not_finite || (status == std::errc() && !std::isfinite(value)))
      throw BadValue{node, fmt::format("{} is not allowed; need a finite number", text)};
    if (status != std::errc()) throw mistyped(node, "a number");
    check_range(node, value);
    return value;
  }

  std::string read_as(const YamlNode& node, const std::string&) const {
    const auto& names = spec_.constraint.names;
    if (names.empty() && is_empty_override(node)) return "";
    if (node.kind != YamlNode::Kind::scalar) {
      const bool empty = names.empty() && node.kind == YamlNode::Kind::null;
      throw mistyped(node, names.empty() ? "a string" : "a word",
                     empty ? "; write \"\" for an empty string" : "");
    }
    if (names.empty() || std::find(names.begin(), names.end(), node.text) != names.end())
      return node.text;
    throw BadValue{node, fmt::format("'{}' is not one of {}{}{}", node.text, fmt::join(names, ", "),
                                     spec_.constraint.or_number ? ", or a number" : "",
                                     system::did_you_mean(node.text, names))};
  }

  template <class T>
  std::vector<T> read_as(const YamlNode& node, const std::vector<T>&) const {
    // One path may stand alone: `path: a.txt`.
    if (std::is_same_v<T, std::string> && is_empty_override(node)) return {};
    const bool alone = std::is_same_v<T, std::string> && node.kind == YamlNode::Kind::scalar;
    if (alone) return {read_as(node, T{})};
    const bool fits = node.kind == YamlNode::Kind::list &&
                      (spec_.length == 0 || node.items.size() == spec_.length);
    if (!fits) {
      const bool list = node.kind == YamlNode::Kind::list;
      throw BadValue{node, fmt::format("expected a {}, got {}", spec_.type(),
                                       list ? fmt::format("a list of {}", node.items.size())
                                            : node.describe())};
    }
    std::vector<T> values;
    for (const YamlNode& item : node.items) values.push_back(read_as(item, T{}));
    return values;
  }

  const ValueSpec& spec_;
};

}  // namespace

bool Constraint::allows(double number) const {
  return (above_min ? number > min : number >= min) && (below_max ? number < max : number <= max);
}

Constraint Constraint::or_share_of(std::string key, double percent) const {
  Constraint both = *this;
  both.share_of = std::move(key);
  both.default_percent = percent;
  return both;
}

std::optional<double> percent_of(const std::string& text) {
  double percent = 0;
  const std::string number = text.substr(0, text.find('%'));
  const bool fits = text == number + "%" && !number.empty() && number.back() != '.' &&
                    number.find_first_not_of("0123456789.") == std::string::npos;
  if (!fits || parse_all(number, percent) != std::errc() || !std::isfinite(percent))
    return std::nullopt;
  return percent;
}

std::string Constraint::str() const {
  if (!share_of.empty()) return fmt::format("{} | % of {}", range(), share_of);
  if (names.empty()) return range();
  return fmt::format("{}{}", fmt::join(names, " | "), or_number ? " | " + range() : "");
}

std::string Constraint::range() const {
  const bool low = std::isfinite(min), high = std::isfinite(max);
  if (low && high)
    return fmt::format("in {}{}, {}{}", above_min ? '(' : '[', min, max, below_max ? ')' : ']');
  if (low) return fmt::format("{} {}", above_min ? ">" : ">=", min);
  if (high) return fmt::format("{} {}", below_max ? "<" : "<=", max);
  return "any";
}

ConfigValue ValueSpec::standard() const {
  if (constraint.default_percent == 0) return initial;
  return fmt::format("{}%", constraint.default_percent);
}

std::string ValueSpec::type() const {
  if (!form.empty()) return form;
  const std::string count = length == 0 ? "" : fmt::format("{} ", length);
  switch (initial.index()) {
    case 0:
      return "boolean";
    case 1:
      return constraint.share_of.empty() ? "integer" : "integer or fraction";
    case 2:
      return constraint.share_of.empty() ? "number" : "number or fraction";
    case 3:
      return constraint.or_number ? "number or word" : constraint.names.empty() ? "string" : "word";
    case 4:
      return fmt::format("list of {}integers", count);
    case 5:
      return fmt::format("list of {}numbers", count);
    default:
      return fmt::format("list of {}strings", count);
  }
}

std::optional<ConfigValue> read_value(const YamlNode& node, const std::string& key,
                                      const ValueSpec& spec, ConfigErrors& errors) {
  try {
    return ValueReader(spec).read(node);
  } catch (const BadValue& bad) {
    errors.add(bad.node.location, fmt::format("{}: {}", key, bad.message));
  }
  return std::nullopt;
}

}  // namespace difftape::run
