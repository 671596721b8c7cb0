#include "train/run/config/starter.h"

#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "train/run/config/fields.h"
#include "train/run/config/writer.h"
#include "train/system/text_table.h"

namespace difftape::run {

namespace {

constexpr std::string_view kAttention = "model.attention.";

constexpr auto kShown = std::to_array<std::string_view>({"run.name",
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
                                                         "log.sample_interval"});

std::string section_of(std::string_view key) { return std::string(key.substr(0, key.rfind('.'))); }
std::string name_of(std::string_view key) { return std::string(key.substr(key.rfind('.') + 1)); }

/// What the key means, then "key: value", both indented; `hidden` makes a comment of it.
std::string entry(const Field& field, const std::string& value, const std::string& indent,
                  bool hidden) {
  std::string about = field.help;
  if (!field.spec.constraint.names.empty())
    about += fmt::format(" One of {}.", fmt::join(field.spec.constraint.names, ", "));
  return system::wrapped(about, system::kTextWidth, indent + "# ") +
         fmt::format("{}{}{}: {}\n", indent, hidden ? "# " : "", name_of(field.key), value);
}

/// The fields that the kind presets, and those beside them.
std::string attention_fields(const std::string& indent) {
  std::string text;
  for (const Field& field : fields()) {
    if (!field.key.starts_with(kAttention) || field.key == "model.attention.kind") continue;
    text += entry(field, yaml_text(field.spec.standard()), indent, true);
  }
  return text;
}

}  // namespace

std::string starter_config(const AttentionKind& kind, const std::string& file) {
  std::string text = system::wrapped(
      fmt::format("{}: {}. What is left out has the value that 'difftape config keys' shows.",
                  kind.name(), kind.entry().source),
      system::kTextWidth, "# ");
  text += fmt::format(
      "#   difftape train {}\n#   difftape train {} --set train.steps=20 --out auto\n", file, file);
  std::string open;
  for (const std::string_view key : kShown) {
    const Field& field = *find_field(std::string(key));
    const std::string section = section_of(key);
    const bool nested = key.starts_with(kAttention);
    const std::string indent = nested ? "    " : "  ";
    if (section != open) text += nested ? "  attention:\n" : fmt::format("\n{}:\n", section);
    open = section;
    const bool is_kind = key == "run.name" || nested;
    text += entry(field, is_kind ? std::string(kind.name()) : yaml_text(field.spec.standard()),
                  indent, false);
    if (nested) text += attention_fields(indent);
  }
  return text;
}

}  // namespace difftape::run
