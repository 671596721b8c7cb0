// `difftape export` and `difftape import`: exchange weights with other programs.
#include <fmt/ranges.h>

#include <memory>

#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/exchange/export.h"
#include "train/system/files.h"

namespace difftape::app {
namespace {

struct ExportArguments {
  std::string model, format, out;
};

void export_as_told(const ExportArguments& a) {
  const auto format = from_string<run::ExportFormat>(a.format);
  throw_if<UsageError>(!format, "--format: '{}' is not one of {}", a.format,
                       fmt::join(names<run::ExportFormat>(), ", "));
  system::require_absent(a.out);
  const bool hf = *format == run::ExportFormat::hf;
  const run::NamedModel model = run::open_model(a.model);
  if (hf)
    export_hf(model, a.out);
  else
    export_safetensors(model, a.out);
  fmt::print("{}\n", a.out);
  if (!hf) return;
  if (const Index eos = model.config.data.eos_token_id; eos >= 0) {
    say(
        fmt::format("warning: with data.eos_token_id {} attention stayed within each document, but "
                    "transformers attends across documents; {}/{} shows how to keep them apart",
                    eos, a.out, run::kHfReadme));
  }
  print_to_stderr(fmt::format("{}/{} explains how to load it\n", a.out, run::kHfReadme));
}

struct ImportArguments {
  std::string weights, out;
  std::vector<std::string> overrides;
};

void import_as_told(const ImportArguments& a) {
  throw_if<UsageError>(!run::is_checkpoint_file(a.out),
                       "--out: {} does not end in .h5, as checkpoints do", a.out);
  system::require_absent(a.out);
  const run::NamedModel named = run::import_model(a.weights, a.overrides);
  for (const Parameter& p : named.model->parameters()) {
    if (p.value.all_finite()) continue;
    say(
        fmt::format("warning: {} has weights that are not finite, such as NaN, so the model "
                    "computes nothing useful; check how the file was made",
                    p.name));
    break;
  }
  write_imported(named, a.out);
  fmt::print("{}: {}, {} parameters, step {}\n", a.out, named.config.model.attention.kind.name(),
             named.model->parameters().count(), named.step);
}

}  // namespace

void export_command(CLI::App& program, Context&) {
  auto a = std::make_shared<ExportArguments>();
  CLI::App& command = add_command(program, "export",
                                  "Export a model as safetensors or for Hugging Face transformers",
                                  {"export runs/mine --format safetensors --out mine.safetensors",
                                   "export runs/mine --format hf --out mine_hf"});
  add_option(command, "RUN_OR_CKPT", a->model, kModelHelp)->required();
  add_option(command, "--format", a->format,
             "safetensors: one file; hf: a directory for from_pretrained of transformers")
      ->required();
  add_option(command, "--out", a->out, "File or new directory to write")->required();
  command.callback([a] { export_as_told(*a); });
}

void import_command(CLI::App& program, Context&) {
  auto a = std::make_shared<ImportArguments>();
  CLI::App& command =
      add_command(program, "import", "Import an exported model or one that transformers saved",
                  {"import mine.safetensors --out mine.h5"});
  add_option(command, "FILE_OR_DIR", a->weights,
             "A .safetensors file, or a directory with model.safetensors")
      ->required();
  add_option(command, "--out", a->out, "Checkpoint to write, .h5")->required();
  add_set(command, a->overrides);
  command.callback([a] { import_as_told(*a); });
}

}  // namespace difftape::app
