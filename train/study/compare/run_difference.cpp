#include "train/study/compare/run_difference.h"

#include "train/system/json.h"

namespace difftape::study {

namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> text_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : system::json_text(*found);
}

/// The keys in which two flat objects differ: in the order of `a`, then those of `b` alone.
std::vector<DifferentValue> different_values(const Json& a, const Json& b) {
  std::vector<DifferentValue> found;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || b.at(key) != value)
      found.push_back({key, text_of(a, key), text_of(b, key)});
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) found.push_back({key, std::nullopt, text_of(b, key)});
  }
  return found;
}

/// All of env.json but the configuration and the command that asked for it, with paths for keys.
Json environment_of(const RunRecord& run) {
  Json env = run.env, flat = Json::object();
  for (const char* key : {"config", "command"}) env.erase(key);
  if (env.empty()) return flat;  // of which nlohmann makes a null without a path
  const Json paths = env.flatten();
  for (const auto& [path, value] : paths.items()) flat[path.substr(1)] = value;
  return flat;
}

}  // namespace

RunDifference difference(const RunRecord& a, const RunRecord& b) {
  return {difference(a.metrics, b.metrics),
          different_values(a.env.at("config"), b.env.at("config")),
          different_values(environment_of(a), environment_of(b))};
}

}  // namespace difftape::study
