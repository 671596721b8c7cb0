#include "train/run/config/writer.h"

#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>
#include <yaml-cpp/node/convert.h>

#include <algorithm>

#include "train/run/config/sweep_settings.h"
#include "train/system/text_table.h"

namespace difftape::run {
namespace {

/// Text that a YAML reader would take for a number or a boolean is quoted.
void emit(YAML::Emitter& out, const std::string& text) {
  const YAML::Node node(text);
  double number;
  bool boolean;
  if (YAML::convert<double>::decode(node, number) || YAML::convert<bool>::decode(node, boolean)) {
    out << YAML::DoubleQuoted;
  }
  out << text;
}
void emit(YAML::Emitter& out, bool value) { out << value; }
void emit(YAML::Emitter& out, Index value) { out << value; }
void emit(YAML::Emitter& out, double value) { out << exact_number(value); }
template <class T>
void emit(YAML::Emitter& out, const std::vector<T>& values) {
  out << YAML::Flow << YAML::BeginSeq;
  for (const T& value : values) emit(out, value);
  out << YAML::EndSeq;
}

std::string flow_text(const ConfigValue& value) {
  YAML::Emitter out;
  std::visit([&](const auto& v) { emit(out, v); }, value);
  return out.c_str();
}

std::vector<std::string> split(const std::string& key) {
  std::vector<std::string> parts;
  for (size_t begin = 0, dot; begin <= key.size(); begin = dot + 1) {
    dot = std::min(key.find('.', begin), key.size());
    parts.push_back(key.substr(begin, dot - begin));
  }
  return parts;
}

/// `origins` may be null: no comments.
std::string write(const Config& config, const ResolvedConfig* origins) {
  constexpr size_t kCommentColumn = 32;
  YAML::Emitter out;
  std::vector<std::string> open;  // sections of the current map
  out << YAML::BeginMap;
  for (const Field& field : fields()) {
    std::vector<std::string> section = split(field.key);
    const std::string name = section.back();
    section.pop_back();
    size_t shared = 0;
    while (shared < std::min(open.size(), section.size()) && open[shared] == section[shared]) {
      ++shared;
    }
    for (; open.size() > shared; open.pop_back()) out << YAML::EndMap;
    for (; open.size() < section.size(); open.push_back(section[open.size()])) {
      out << YAML::Key << section[open.size()] << YAML::Value << YAML::BeginMap;
    }
    out << YAML::Key << name << YAML::Value;
    const ConfigValue value = field.get(config);
    std::visit([&](const auto& v) { emit(out, v); }, value);
    if (origins) {
      const size_t width = 2 * section.size() + name.size() + 2 + flow_text(value).size();
      out.SetPreCommentIndent(width + 2 > kCommentColumn ? 2 : kCommentColumn - width);
      out << YAML::Comment(origins->origin(field.key).location.origin());
    }
  }
  for (; !open.empty(); open.pop_back()) out << YAML::EndMap;
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace

std::string to_yaml(const Config& config) { return write(config, nullptr); }

std::string to_yaml_with_origins(const ResolvedConfig& resolved) {
  return write(resolved.config, &resolved);
}

FlatConfig flat_config(const Config& config) {
  FlatConfig flat;
  for (const Field& field : fields()) flat.emplace_back(field.key, flow_text(field.get(config)));
  return flat;
}

std::string describe_keys() {
  system::Table table;
  for (const char* name : {"KEY", "TYPE", "DEFAULT", "RANGE", "UNIT", "MEANING"}) {
    table.columns.push_back({"", name, true});
  }
  const auto add = [&](const KeyInfo& k) {
    table.rows.push_back({k.key, k.spec.type(),
                          k.spec.form.empty() ? flow_text(k.spec.initial) : "-",
                          k.spec.constraint.str(), k.unit.empty() ? "-" : k.unit, k.help});
  };
  for (const Field& field : fields()) add(field);
  for (const SweepField& field : sweep_fields()) add(field);
  return to_text(table);
}

}  // namespace difftape::run
