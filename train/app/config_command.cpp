// `difftape config` and `difftape init`: show, list and create configurations.

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/config/sweep_settings.h"
#include "train/run/config/writer.h"
#include "train/study/sweep/sweep_config.h"
#include "train/system/files.h"
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

/// Returns the configuration in a checkpoint.
run::Config config_of_checkpoint(const ShowArguments& a) {
  throw_if<UsageError>(
      a.origin || !a.arm.empty(),
      "{}: {} is a checkpoint, which has neither arms nor origins of values; remove the option",
      a.origin ? "--origin" : "--arm", a.path);
  const run::Checkpoint checkpoint(run::find_checkpoint(a.path));
  return run::config_from_yaml(checkpoint.meta().config_yaml, checkpoint.path().string(),
                               a.overrides);
}

/// Returns whether a path names a checkpoint and not a run directory with its configuration.
bool is_of_checkpoint(const std::filesystem::path& path) {
  return run::names_checkpoint(path) && !system::is_there(path / "config.yaml");
}

std::string shown(const ShowArguments& a) {
  throw_if<UsageError>(a.origin && a.json,
                       "config show: JSON has no comments for --origin; remove --origin or --json");
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

/// Returns the keys that begin with `prefix`, keys of sweeps last. Throws UsageError with a
/// suggestion if there are none.
KeyList keys_that_begin(std::string_view prefix) {
  const KeyList all = all_keys();
  KeyList keys;
  std::ranges::copy_if(all, std::back_inserter(keys),
                       [&](const run::KeyInfo* key) { return key->key.starts_with(prefix); });
  if (!keys.empty()) return keys;
  std::string advice = "'difftape config keys' lists all";
  if (const run::FrameworkAlias* foreign = run::find_framework_alias(prefix, false)) {
    advice = foreign->description();
  } else {
    std::vector<std::string> names;
    for (const run::KeyInfo* key : all) names.push_back(key->key);
    const std::string nearest = system::nearest_key(prefix, names);
    if (!nearest.empty()) advice = fmt::format("did you mean '{}'?", nearest);
  }
  throw UsageError(fmt::format("config keys: no key begins with '{}'; {}", prefix, advice));
}

/// Formats one line per key in aligned columns: key, type, default, range, unit and a sentence. If
/// that is wider than `width`, each key has three paragraphs, the last two indented and wrapped.
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
  CLI::App& command =
      add_command(above, "show", "Print the resolved configuration of a file, run or checkpoint",
                  {"config show my.yaml --origin", "config show sweep.yaml --arm diff_v2",
                   "config show my.yaml --set train.steps=20 --json"});
  add_option(command, "CONFIG_OR_CKPT", a->path,
             "Configuration, sweep, run directory or checkpoint")
      ->required();
  add_set(command, a->overrides);
  add_arm(command, a->arm);
  command.add_flag("--origin", a->origin, "Append the origin of each value");
  command.add_flag("--json", a->json, "Print one JSON object");
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
  add_option(command, "PREFIX", a->prefix, "Prefix of the keys to list, such as optim");
  command.add_flag("--json", a->json, "Print one JSON array");
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
             "For a sweep: the name of a run, or of an arm to use its first run");
}

void config_command(CLI::App& program, Context&) {
  CLI::App& command = add_command(program, "config", "Show and explain configurations",
                                  {"config show my.yaml", "config keys train"});
  show_command(command);
  keys_command(command);
  add_command(command, "schema", "Print the JSON Schema of configuration files", {"config schema"})
      .callback([] { fmt::print("{}", run::config_schema()); });
}

namespace {

constexpr std::string_view kAttention = "model.attention.";

constexpr std::string_view kShown[] = {"run.name",
                                       "run.seed",
                                       "model.d_model",
                                       "model.num_layers",
                                       "model.num_heads",
                                       "model.num_kv_heads",
                                       "model.d_ff",
                                       "model.match_params",
                                       "model.attention.kind",
                                       "data.type",
                                       "data.path",
                                       "data.seq_len",
                                       "data.batch_size",
                                       "optim.name",
                                       "optim.lr",
                                       "optim.min_lr",
                                       "optim.schedule",
                                       "optim.warmup_steps",
                                       "optim.weight_decay",
                                       "optim.max_grad_norm",
                                       "train.steps",
                                       "train.eval_interval",
                                       "train.checkpoint_interval",
                                       "train.keep_last"};

std::string section_of(std::string_view key) { return std::string(key.substr(0, key.rfind('.'))); }

/// Formats the meaning of a key as a comment, then "key: value", which `hidden` comments out.
std::string entry(const run::Field& field, const std::string& value, const std::string& indent,
                  bool hidden) {
  std::string about = field.help;
  if (!field.spec.constraint.names.empty())
    about += fmt::format(" One of {}.", fmt::join(field.spec.constraint.names, ", "));
  return system::wrapped(about, system::kTextWidth, indent + "# ") +
         fmt::format("{}{}{}: {}\n", indent, hidden ? "# " : "", run::last_part(field.key), value);
}

/// Formats the fields of the attention as comments.
std::string attention_fields(const std::string& indent) {
  std::string text;
  for (const run::Field& field : run::fields()) {
    if (!field.key.starts_with(kAttention) || field.key == "model.attention.kind") continue;
    text += entry(field, run::yaml_text(field.spec.standard()), indent, true);
  }
  return text;
}

/// Returns a configuration of this attention that trains unchanged. It lists the most important
/// keys with their meanings and defaults, and the fields of the attention as comments. `file` is
/// its name.
std::string starter_config(const AttentionKind& kind, const std::string& file) {
  std::string text = system::wrapped(
      fmt::format("{}: {}. Omitted keys have the defaults that 'difftape config keys' lists.",
                  kind.name(), kind.entry().source),
      system::kTextWidth, "# ");
  text += fmt::format(
      "#   difftape train {}\n#   difftape train {} --set train.steps=20 --out auto\n", file, file);
  std::string open;
  for (const std::string_view key : kShown) {
    const run::Field& field = *run::find_field(std::string(key));
    const std::string section = section_of(key);
    const bool nested = key.starts_with(kAttention);
    const std::string indent = nested ? "    " : "  ";
    if (section != open) text += nested ? "  attention:\n" : fmt::format("\n{}:\n", section);
    open = section;
    const bool is_kind = key == "run.name" || nested;
    text += entry(field, is_kind ? std::string(kind.name()) : run::yaml_text(field.spec.standard()),
                  indent, false);
    if (nested) text += attention_fields(indent);
  }
  return text;
}

struct InitArguments {
  std::string kind = "diff_v2", out;
};

void write_starter(const InitArguments& a) {
  const std::vector<std::string> kinds = attention_kinds();
  throw_if<UsageError>(std::ranges::find(kinds, a.kind) == kinds.end(),
                       "KIND: '{}' is not one of {}{}", a.kind, fmt::join(kinds, ", "),
                       system::did_you_mean(a.kind, kinds));
  const std::string out = a.out.empty() ? a.kind + ".yaml" : a.out;
  system::require_absent(out);
  system::replace_text(out, starter_config(a.kind, out));
  fmt::print("wrote {}; edit it, then run: difftape train {}\n", out, out);
}

}  // namespace

void init_command(CLI::App& program, Context&) {
  auto a = std::make_shared<InitArguments>();
  CLI::App& command = add_command(program, "init", "Write a commented starter configuration",
                                  {"init", "init diff_v1 --out v1.yaml"});
  add_option(command, "KIND", a->kind,
             fmt::format("Attention kind: {}", fmt::join(attention_kinds(), ", ")))
      ->capture_default_str();
  add_option(command, "--out", a->out, "File to write (default: KIND.yaml)");
  command.callback([a] { write_starter(*a); });
}

}  // namespace difftape::app
