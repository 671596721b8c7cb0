// The command that writes a first configuration.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "train/app/commands.h"
#include "train/run/config/fields.h"
#include "train/run/config/foreign_names.h"
#include "train/run/config/writer.h"
#include "train/system/files.h"
#include "train/system/suggest.h"
#include "train/system/text_table.h"

namespace difftape::app {

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
                                       "train.keep_best",
                                       "log.sample_interval"};

std::string section_of(std::string_view key) { return std::string(key.substr(0, key.rfind('.'))); }

/// What the key means, then "key: value", both indented; `hidden` makes a comment of it.
std::string entry(const run::Field& field, const std::string& value, const std::string& indent,
                  bool hidden) {
  std::string about = field.help;
  if (!field.spec.constraint.names.empty())
    about += fmt::format(" One of {}.", fmt::join(field.spec.constraint.names, ", "));
  return system::wrapped(about, system::kTextWidth, indent + "# ") +
         fmt::format("{}{}{}: {}\n", indent, hidden ? "# " : "", run::last_part(field.key), value);
}

/// The fields that the kind presets, and those beside them.
std::string attention_fields(const std::string& indent) {
  std::string text;
  for (const run::Field& field : run::fields()) {
    if (!field.key.starts_with(kAttention) || field.key == "model.attention.kind") continue;
    text += entry(field, run::yaml_text(field.spec.standard()), indent, true);
  }
  return text;
}

/// A configuration of this attention, YAML of what people change first, each key with its default
/// below what it means; the fields of the attention are there as comments. `file` is what it will
/// be called. It trains as it is.
std::string starter_config(const AttentionKind& kind, const std::string& file) {
  std::string text = system::wrapped(
      fmt::format("{}: {}. What is left out has the value that 'difftape config keys' shows.",
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
  if (std::ranges::find(kinds, a.kind) == kinds.end()) {
    throw UsageError(fmt::format("KIND: '{}' is not one of {}{}", a.kind, fmt::join(kinds, ", "),
                                 system::did_you_mean(a.kind, kinds)));
  }
  const std::string out = a.out.empty() ? a.kind + ".yaml" : a.out;
  system::require_absent(out);
  system::replace_text(out, starter_config(a.kind, out));
  fmt::print("{}: change what you like, then: difftape train {}\n", out, out);
}

}  // namespace

void init_command(CLI::App& program, Context&) {
  auto a = std::make_shared<InitArguments>();
  CLI::App& command = add_command(
      program, "init", "Write a configuration with comments to begin with, which trains as it is",
      {"init", "init diff_v1 --out v1.yaml"});
  add_option(command, "KIND", a->kind,
             fmt::format("Attention kind: {}", fmt::join(attention_kinds(), ", ")))
      ->capture_default_str();
  add_option(command, "--out", a->out, "File to write (default: KIND.yaml)");
  command.callback([a] { write_starter(*a); });
}

}  // namespace difftape::app
