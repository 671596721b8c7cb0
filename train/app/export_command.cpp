// `difftape export` and `difftape import`: weights for other programs, and from them.
#include <fmt/ranges.h>

#include <memory>

#include "train/app/commands.h"
#include "train/run/checkpoint/directory.h"
#include "train/run/exchange/export.h"
#include "train/run/exchange/import.h"
#include "train/system/files.h"

namespace difftape::app {

namespace {

struct ExportArguments {
  std::string model, format, out;
};

void export_as_told(const ExportArguments& a) {
  const auto format = from_string<run::ExportFormat>(a.format);
  if (!format) {
    throw UsageError(fmt::format("--format: '{}' is not one of {}", a.format,
                                 fmt::join(names<run::ExportFormat>(), ", ")));
  }
  system::require_absent(a.out);
  if (*format == run::ExportFormat::safetensors) {
    export_safetensors(run::open_model(a.model), a.out);
  } else {
    export_hf(run::open_model(a.model), a.out);
  }
  fmt::print("{}\n", a.out);
}

struct ImportArguments {
  std::string weights, out;
  std::vector<std::string> overrides;
};

void import_as_told(const ImportArguments& a) {
  if (!run::is_checkpoint_file(a.out))
    throw UsageError(fmt::format("--out: {} does not end in .h5, as checkpoints do", a.out));
  system::require_absent(a.out);
  const run::NamedModel named = run::import_model(a.weights, a.overrides);
  write_imported(named, a.out);
  fmt::print("{}: {}, {} parameters, step {}\n", a.out, named.config.model.attention.kind.name(),
             named.model->parameters().count(), named.step);
}

}  // namespace

Command export_command(Context&) {
  auto a = std::make_shared<ExportArguments>();
  return {
      .name = "export",
      .help = "Write a model for other programs: safetensors, or a directory for transformers",
      .options =
          {{.name = "RUN_OR_CKPT", .target = &a->model, .help = kModelHelp, .required = true},
           {.name = "--format",
            .target = &a->format,
            .help = "safetensors: one file; hf: a directory for from_pretrained of transformers",
            .required = true,
            .choices = names<run::ExportFormat>},
           {.name = "--out",
            .target = &a->out,
            .help = "File or new directory to write",
            .required = true}},
      .run = [a] { export_as_told(*a); },
      .examples = {"export runs/mine --format safetensors --out mine.safetensors",
                   "export runs/mine --format hf --out mine_hf"}};
}

Command import_command(Context&) {
  auto a = std::make_shared<ImportArguments>();
  return {.name = "import",
          .help = "Make a checkpoint of an exported model, or of one that transformers saved",
          .options = {{.name = "FILE_OR_DIR",
                       .target = &a->weights,
                       .help = "A .safetensors file, or a directory with model.safetensors",
                       .required = true},
                      {.name = "--out",
                       .target = &a->out,
                       .help = "Checkpoint to write, .h5",
                       .required = true},
                      set_option(a->overrides)},
          .run = [a] { import_as_told(*a); },
          .examples = {"import mine.safetensors --out mine.h5"}};
}

}  // namespace difftape::app
