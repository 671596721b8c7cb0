#include "train/run/config/reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <variant>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/system/files.h"
#include "train/system/suggest.h"

namespace difftape::run {

std::string Origin::str() const { return share + (share.empty() ? "" : ", ") + location.origin(); }

Origin ResolvedConfig::origin(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? Origin{} : found->second;
}

ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigErrors errors;
  Assignments assignments(errors);
  const std::filesystem::path dir(path), of_run = dir / "config.yaml";
  if (system::is_there(dir / "env.json"))
    assignments.add_text(system::read_text(of_run), of_run.string());
  else
    assignments.add_file(system::is_there(of_run) ? of_run.string() : path);
  for (const std::string& text : overrides) assignments.add_override(text);
  ResolvedConfig resolved = assignments.resolve();
  errors.throw_if_any();
  return resolved;
}

Config config_from_yaml(const std::string& text, const std::string& where,
                        const std::vector<std::string>& overrides) {
  ConfigErrors errors;
  Assignments assignments(errors);
  assignments.add_text(text, where);
  for (const std::string& each : overrides) assignments.add_override(each);
  const ResolvedConfig resolved = assignments.resolve();
  errors.throw_if_any();
  return resolved.config;
}

void set_value(Config& config, const std::string& key, const std::string& yaml) {
  const Field* field = find_field(key);
  throw_if<ConfigError>(!field, "unknown key '{}'", key);
  ConfigErrors errors;
  const auto node = parse_yaml(yaml, key, YamlSource::command_line, errors);
  const auto value = node ? read_value(*node, key, field->spec, errors) : std::nullopt;
  errors.throw_if_any();
  field->set(config, *value);
}

namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFileBytes = 1 << 16;

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// Reads a file into `text`. Returns an empty string, or the reason why it cannot be read.
/// Rejects a device or a pipe that a file names, because reading it can block forever.
std::string read_text(const std::string& path, bool named_by_a_file, std::string& text) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::none) return "cannot be read: " + error.message();
  if (!fs::exists(status)) return "no such file" + system::did_you_mean_file(path);
  if (fs::is_directory(status)) return "is a folder, but must be a YAML file";
  if (named_by_a_file && !fs::is_regular_file(status))
    return "is a device or a pipe, but must be a YAML file";
  std::ifstream file(path, std::ios::binary);
  text.resize(kMaxFileBytes + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) return "cannot be read; check its permissions";
  text.resize(file.gcount());
  if (text.size() > kMaxFileBytes) return "is longer than 64 KiB, but must be a YAML file";
  if (text.find('\0') != std::string::npos) return "is binary, but must be a YAML file";
  return "";
}

void make_absolute(ConfigValue& paths, const SourceLocation& said_at) {
  const fs::path folder = said_at.line > 0 ? fs::path(said_at.source).parent_path() : fs::path();
  if (auto* one = std::get_if<std::string>(&paths)) *one = system::absolute_path(*one, folder);
  if (auto* several = std::get_if<std::vector<std::string>>(&paths))
    for (std::string& path : *several) path = system::absolute_path(path, folder);
}

constexpr double kMaxPart = 1e15;  // below 2^53, so every integer is exact in a double

double number_of(const ConfigValue& value) {
  const Index* whole = std::get_if<Index>(&value);
  return whole ? static_cast<double>(*whole) : std::get<double>(value);
}

double part_of(const ConfigValue& whole, double percent, bool rounds) {
  const double part = number_of(whole) * percent / 100;
  return rounds ? std::round(part) : std::strtod(fmt::format("{:.15g}", part).c_str(), nullptr);
}

/// Keys whose value is a percentage of another key, such as 10% of train.steps, while a
/// configuration is read. It starts with the defaults.
class Shares {
 public:
  Shares() {
    for (const Field& field : fields())
      if (!field.spec.constraint.share_of.empty()) take(field, field.spec.standard());
  }

  /// Takes the value that was read for a key. Returns true if it is a percentage, which apply()
  /// resolves, and false for any other value.
  bool take(const Field& field, const ConfigValue& value) {
    if (field.spec.constraint.share_of.empty()) return false;
    const std::string* share = std::get_if<std::string>(&value);
    if (share)
      text_of_[field.key] = *share;
    else
      text_of_.erase(field.key);
    return share != nullptr;
  }

  /// Sets each key that holds a percentage, and records it in the key's origin. Integers are
  /// rounded to the nearest, others to 15 digits: 10% of 0.003 is 0.0003. Adds values out of range
  /// to `errors` and their keys to `broken`. Percentages of a broken key are left alone.
  void apply(ResolvedConfig& resolved, std::set<std::string>& broken, ConfigErrors& errors) const {
    for (const auto& [key, text] : text_of_) {
      const Field& field = *find_field(key);
      const Field& whole = *find_field(field.spec.constraint.share_of);
      Origin& origin = resolved.origins[key];
      origin.share = fmt::format("{} of {}", text, whole.key);
      if (broken.contains(key) || broken.contains(whole.key)) continue;
      const bool rounds = std::holds_alternative<Index>(field.spec.initial);
      const ConfigValue of = whole.get(resolved.config);
      const double part = part_of(of, percent_of(text).value(), rounds);
      if ((rounds && part > kMaxPart) || !field.spec.constraint.allows(part)) {
        errors.add(origin.location,
                   fmt::format("{}: {} (which is {}) is {}, out of range; need {}", key,
                               origin.share, number_of(of), part, field.spec.constraint.range()));
        broken.insert(key);
        continue;
      }
      field.set(resolved.config,
                rounds ? ConfigValue(static_cast<Index>(part)) : ConfigValue(part));
    }
  }

 private:
  std::map<std::string, std::string> text_of_;  ///< "10%" by key
};

}  // namespace

Assignments::Assignments(ConfigErrors& errors, std::vector<std::string> extra_keys)
    : errors_(&errors) {
  Names names{std::move(extra_keys), {}};
  for (const Field& field : fields()) names.keys.push_back(field.key);
  for (const std::string& key : names.keys) {
    for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
      const std::string section = key.substr(0, dot);
      if (!contains(names.sections, section)) names.sections.push_back(section);
    }
  }
  known_ = std::make_shared<const Names>(std::move(names));
}

void Assignments::add_file(const std::string& path) { load(system::here_or_shared(path), nullptr); }

/// `named_at` is the location of the `base:` that names the file; null for the file that the user
/// named.
void Assignments::load(const std::string& path, const SourceLocation* named_at) {
  std::string text;
  if (const std::string problem = read_text(path, named_at != nullptr, text); !problem.empty()) {
    complete_ = false;
    throw_if<MissingInput>(!named_at, "{}: {}", path, problem);
    errors_->add(*named_at, fmt::format("base: {}: {}", path, problem));
    return;
  }
  const std::string identity = fs::weakly_canonical(path).string();
  if (contains(loading_, identity)) {
    errors_->add(*named_at,
                 fmt::format("base: {} is its own base; remove one 'base:' of the cycle", path));
    return;
  }
  if (!loaded_.insert(identity).second) return;
  const auto root = parse_yaml(text, path, YamlSource::file, *errors_);
  complete_ = complete_ && root.has_value();
  if (!root) return;
  loading_.push_back(identity);
  add_root(*root, true);
  loading_.pop_back();
}

void Assignments::add_text(const std::string& text, const std::string& where) {
  texts_.insert(where);
  const auto root = parse_yaml(text, where, YamlSource::file, *errors_);
  complete_ = complete_ && root.has_value();
  if (root) add_root(*root, false);
}

void Assignments::add_map(const YamlNode& map) { add_root(map, true); }

void Assignments::add_node(const std::string& key, const YamlNode& value) {
  assignments_.push_back({key, value, value.location});
}

void Assignments::add_value(const std::string& key, const std::string& text,
                            const SourceLocation& location) {
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.location = location;
  value.text = text;
  assignments_.push_back({key, std::move(value), location});
}

void Assignments::add_root(const YamlNode& root, bool may_have_bases) {
  if (root.kind == YamlNode::Kind::null) return;
  if (root.kind != YamlNode::Kind::map) {
    errors_->add(root.location, fmt::format("expected keys and values, got {}", root.describe()));
    return;
  }
  YamlNode own = root;
  std::erase_if(own.pairs, [&](const YamlPair& pair) { return pair.key.text == "base"; });
  const YamlNode* base = nullptr;
  for (const auto& [key, value] : root.pairs) {
    if (key.text != "base") continue;
    if (!may_have_bases) {
      errors_->add(key.location, "base: only a configuration file can name bases; remove it");
    } else if (base) {
      errors_->add(key.location, "duplicate key 'base'; write several bases as one list");
    } else {
      base = &value;
      add_bases(value);
    }
  }
  Seen seen;
  flatten(own, "", seen);
}

void Assignments::add_bases(const YamlNode& value) {
  const auto paths = read_value(value, "base", {std::vector<std::string>{}, {}}, *errors_);
  if (!paths) return;
  const bool alone = value.kind == YamlNode::Kind::scalar;
  const auto& names = std::get<std::vector<std::string>>(*paths);
  for (size_t i = 0; i < names.size(); ++i) {
    const SourceLocation location = alone ? value.location : value.items[i].location;
    load(system::here_or_shared(names[i], fs::path(location.source).parent_path()), &location);
  }
}

void Assignments::flatten(const YamlNode& map, const std::string& section, Seen& seen) {
  for (const auto& [name, value] : map.pairs) {
    const std::string key = section + name.text;
    const auto [first, fresh] = seen.emplace(key, name.location);
    if (!fresh) {
      const int line = first->second.line;
      errors_->add(name.location,
                   fmt::format("duplicate key '{}'{}", key,
                               line == 0 ? "" : fmt::format("; first given in line {}", line)));
    }
    if (contains(known_->keys, key)) {
      assignments_.push_back({key, value, name.location});
    } else if (!contains(known_->sections, key)) {
      if (fresh) unknown(key, value, name.location);
    } else if (value.kind == YamlNode::Kind::map) {
      flatten(value, key + ".", seen);
    } else if (value.kind != YamlNode::Kind::null) {
      const auto inside =
          std::find_if(known_->keys.begin(), known_->keys.end(),
                       [&](const std::string& k) { return k.starts_with(key + "."); });
      errors_->add(value.location,
                   fmt::format("{}: expected a section, got {}; set its keys, for example {}", key,
                               value.describe(), *inside));
    }
  }
}

namespace {

/// Keys of earlier versions. Configurations that a run or a checkpoint stores may still have them.
/// They decided what was logged and kept, and `none` was the value of optim.on_spike without
/// effect.
bool is_of_the_past(const std::string& key, const YamlNode& value) {
  static const std::set<std::string_view> keys{"log.sample_interval", "log.sample_prompt",
                                               "log.sample_tokens",   "log.spike_min_history",
                                               "log.spike_rule",      "log.spike_threshold",
                                               "log.spike_window",    "train.keep_best",
                                               "train.keep_interval", "train.checkpoint_minutes"};
  return keys.contains(key) || (key == "optim.on_spike" && value.text == "none");
}

}  // namespace

void Assignments::unknown(const std::string& key, const YamlNode& value,
                          const SourceLocation& location) {
  if (texts_.contains(location.source) && is_of_the_past(key, value)) return;
  if (errors_->full()) return errors_->add(location, fmt::format("unknown key '{}'", key));
  const bool of_sweep = key == "sweep" || key.starts_with("sweep.");
  if (of_sweep && !std::ranges::count(known_->sections, "sweep")) {
    errors_->add(location, location.line == 0
                               ? fmt::format("{}: only 'difftape sweep' reads this key; leave it "
                                             "out",
                                             key)
                               : fmt::format("{}: this file is a sweep; run it with 'difftape "
                                             "sweep {}'",
                                             key, location.source));
    complete_ = false;
    return;
  }
  const bool section = value.kind == YamlNode::Kind::map;
  if (const FrameworkAlias* foreign = find_framework_alias(key, section)) {
    suspects_.emplace(foreign->key);
    errors_->add(location, fmt::format("unknown {} '{}'; {}", section ? "section" : "key", key,
                                       foreign->description()));
    return;
  }
  std::vector<std::string> candidates = section ? known_->sections : known_->keys;
  if (section && of_sweep) candidates = known_->keys;  // values of some sweep keys are maps
  if (!of_sweep)
    std::erase_if(candidates, [](const std::string& k) { return k.starts_with("sweep."); });
  candidates.push_back("base");
  const std::string guess = system::nearest_key(key, candidates);
  suspects_.insert(guess);
  errors_->add(location, fmt::format("unknown {} '{}'; {}", section ? "section" : "key", key,
                                     guess.empty() ? "'difftape config keys' lists all keys"
                                                   : "did you mean '" + guess + "'?"));
}

void Assignments::remove_extra() {
  std::erase_if(assignments_, [](const Assignment& given) { return !find_field(given.key); });
}

const Assignment* Assignments::find(const std::string& key) const {
  const auto last = std::find_if(assignments_.rbegin(), assignments_.rend(),
                                 [&](const Assignment& a) { return a.key == key; });
  return last == assignments_.rend() ? nullptr : &*last;
}

ResolvedConfig Assignments::resolve() const {
  ResolvedConfig resolved;
  std::set<std::string> broken = suspects_;
  Shares shares;
  int rank = 0;
  for (const auto& [key, value, location] : assignments_) {
    const Field* field = find_field(key);
    if (!field) continue;
    resolved.origins[key] = {location, ++rank};
    if (auto read = read_value(value, key, field->spec, *errors_)) {
      const bool as_is = texts_.contains(value.location.source);
      if (field->spec.constraint.path && !as_is) make_absolute(*read, value.location);
      if (!shares.take(*field, *read)) field->set(resolved.config, *read);
    } else {
      broken.insert(key);
    }
  }
  shares.apply(resolved, broken, *errors_);
  if (!texts_.empty()) broken.insert("data.path");  // may be missing in a stored configuration
  if (complete_) validate(resolved, broken, *errors_);
  return resolved;
}

}  // namespace difftape::run
