#include "train/run/config/reader.h"

#include "train/run/config/assignments.h"

namespace difftape::run {

Origin ResolvedConfig::origin(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? Origin{} : found->second;
}

ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigErrors errors;
  Assignments assignments(errors);
  assignments.add_file(path);
  for (const std::string& text : overrides) assignments.add_override(text);
  ResolvedConfig resolved = assignments.resolve();
  errors.throw_if_any();
  return resolved;
}

Config config_from_yaml(const std::string& text, const std::string& where) {
  ConfigErrors errors;
  Assignments assignments(errors);
  assignments.add_text(text, where);
  const ResolvedConfig resolved = assignments.resolve();
  errors.throw_if_any();
  return resolved.config;
}

}  // namespace difftape::run
