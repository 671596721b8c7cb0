// The command about configurations: what one says, and what it can say.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/fields.h"
#include "train/run/config/foreign_names.h"
#include "train/run/config/reader.h"
#include "train/run/config/sweep_settings.h"
#include "train/run/config/writer.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/json.h"
#include "train/system/suggest.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

struct ShowArguments {
  std::string path, arm;
  std::vector<std::string> overrides;
  bool origin = false, json = false;
};

/// The configuration that a checkpoint holds.
run::Config config_of_checkpoint(const ShowArguments& a) {
  if (a.origin || !a.arm.empty())
    throw UsageError(fmt::format(
        "{}: {} is a checkpoint, which holds the values of one run, not where they came from",
        a.origin ? "--origin" : "--arm", a.path));
  const run::Checkpoint checkpoint(run::find_checkpoint(a.path));
  return run::config_from_yaml(checkpoint.meta().config_yaml, checkpoint.path().string(),
                               a.overrides);
}

/// What eval takes for a checkpoint is one, but for a directory that has a configuration of its
/// own.
bool is_of_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  return run::names_checkpoint(path) && !std::filesystem::exists(path / "config.yaml", ignored);
}

std::string shown(const ShowArguments& a) {
  if (a.origin && a.json)
    throw UsageError("config show: JSON has no comments; leave out --origin or --json");
  const auto text = [&](const run::Config& config) {
    return a.json ? run::to_json(config) : to_yaml(config);
  };
  if (is_of_checkpoint(a.path)) return text(config_of_checkpoint(a));
  const run::ResolvedConfig resolved = study::config_of_arm(a.path, a.overrides, a.arm);
  return a.origin ? to_yaml_with_origins(resolved) : text(resolved.config);
}

using KeyList = std::vector<const run::KeyInfo*>;

KeyList all_keys() {
  KeyList keys;
  for (const run::Field& field : run::fields()) keys.push_back(&field);
  for (const run::SweepField& field : run::sweep_fields()) keys.push_back(&field);
  return keys;
}

std::string default_of(const run::KeyInfo& key) {
  return key.spec.form.empty() ? run::yaml_text(key.spec.standard()) : "-";
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

/// Keys that begin with `prefix`, those of sweeps last; all if it is empty. Throws UsageError if
/// there are none, with the key that may be meant.
KeyList keys_that_begin(std::string_view prefix) {
  const KeyList all = all_keys();
  KeyList keys;
  std::ranges::copy_if(all, std::back_inserter(keys),
                       [&](const run::KeyInfo* key) { return key->key.starts_with(prefix); });
  if (!keys.empty()) return keys;
  std::string advice = "'difftape config keys' lists all";
  if (const run::ForeignName* foreign = run::find_foreign_name(prefix, false)) {
    advice = foreign->description();
  } else {
    std::vector<std::string> names;
    for (const run::KeyInfo* key : all) names.push_back(key->key);
    const std::string nearest = system::nearest_key(prefix, names);
    if (!nearest.empty()) advice = fmt::format("did you mean '{}'?", nearest);
  }
  throw UsageError(fmt::format("config keys: no key begins with '{}'; {}", prefix, advice));
}

/// One line a key in aligned columns: key, type, default, range, unit and a sentence. Where that is
/// wider than `width`, three lines a key, the later two indented, broken between words.
std::string describe_keys(const KeyList& keys, std::size_t width) {
  system::Table table;
  for (const char* name : {"KEY", "TYPE", "DEFAULT", "RANGE", "UNIT", "MEANING"})
    table.columns.push_back({"", name, true});
  std::string narrow;
  for (const run::KeyInfo* k : keys) {
    const std::string type = k->spec.type(), range = k->spec.constraint.str();
    table.rows.push_back(
        {k->key, type, default_of(*k), range, k->unit.empty() ? "-" : k->unit, k->help});
    narrow += fmt::format("{}: {}\n", k->key, default_of(*k)) +
              system::wrapped(type + (range == "any" ? "" : ", " + range) +
                                  (k->unit.empty() ? "" : ", in " + k->unit),
                              width, "    ") +
              system::wrapped(k->help, width, "    ");
  }
  const std::string wide = to_text(table);
  return longest_line(wide) <= width ? wide : narrow;
}

std::string keys_json(const KeyList& keys) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const run::KeyInfo* k : keys) {
    nlohmann::ordered_json key{{"key", k->key}, {"type", k->spec.type()}};
    if (k->spec.form.empty()) key["default"] = run::json_of(k->spec.standard());
    key["range"] = k->spec.constraint.str();
    key["unit"] = k->unit;
    key["meaning"] = k->help;
    list.push_back(std::move(key));
  }
  return system::json_text(list, 2) + "\n";
}

void show_command(CLI::App& above) {
  auto a = std::make_shared<ShowArguments>();
  CLI::App& command = add_command(
      above, "show", "Print the resolved configuration, or that of a checkpoint, which runs as is",
      {"config show my.yaml --origin", "config show sweep.yaml --arm diff_v2",
       "config show my.yaml --set train.steps=20 --json"});
  add_option(command, "CONFIG_OR_CKPT", a->path,
             "Configuration file (YAML), run directory or sweep, or a checkpoint: what eval takes")
      ->required();
  add_set(command, a->overrides);
  add_arm(command, a->arm);
  command.add_flag("--origin", a->origin, "Say after every value where it came from");
  command.add_flag("--json", a->json, "Print one JSON object, for scripts");
  command.callback([a] { fmt::print("{}", shown(*a)); });
}

void keys_command(CLI::App& above) {
  struct Arguments {
    std::string prefix;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App& command =
      add_command(above, "keys", "List every key: type, default, range, unit, meaning",
                  {"config keys optim", "config keys --json"});
  add_option(command, "PREFIX", a->prefix, "Only keys that begin like this, such as optim");
  command.add_flag("--json", a->json, "Print one JSON array, for scripts");
  command.callback([a] {
    const KeyList keys = keys_that_begin(a->prefix);
    const std::size_t width =
        system::terminal_width(STDOUT_FILENO, std::numeric_limits<std::size_t>::max());
    fmt::print("{}", a->json ? keys_json(keys) : describe_keys(keys, width));
  });
}

}  // namespace

void add_arm(CLI::App& command, std::string& arm) {
  add_option(command, "--arm", arm,
             "Of a sweep: an arm, whose first run it is, or the name of a run");
}

void config_command(CLI::App& program, Context&) {
  CLI::App& command = add_command(program, "config", "Show and explain configurations",
                                  {"config show my.yaml", "config keys train"});
  show_command(command);
  keys_command(command);
  add_command(command, "schema", "Print the JSON Schema of configuration files", {"config schema"})
      .callback([] { fmt::print("{}", run::config_schema()); });
}

}  // namespace difftape::app
