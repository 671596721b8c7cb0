// `difftape data`: converts text to tokens.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "train/app/commands.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/writer.h"
#include "train/run/data/prepare/prepare.h"
#include "train/run/data/sources.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

using system::grouped;

/// Returns a path as a value of a YAML map in braces.
std::string in_braces(const std::string& path) {
  const bool plain = path.find_first_of(",[]{}") == path.npos;
  return plain ? run::yaml_text(path) : nlohmann::json(path).dump();
}

/// Prints "45 %  120 of 270 MB", rewritten in place, if stderr is a terminal.
std::function<void(Index, Index)> progress_line() {
  if (isatty(STDERR_FILENO) != 1) return [](Index, Index) {};
  return [shown = Index{-1}](Index done, Index total) mutable {
    const Index percent = total > 0 ? 100 * done / total : 100;
    if (std::exchange(shown, percent) == percent) return;
    constexpr double kMegabyte = 1e6;
    fmt::print(stderr, "\r{:3} %  {:.0f} of {:.0f} MB{}", percent,
               static_cast<double>(done) / kMegabyte, static_cast<double>(total) / kMegabyte,
               done == total ? "\n" : "");
  };
}

struct PrepareArguments {
  std::vector<std::string> sources;
  std::string out, val_out, tokenizer;
  run::PrepareRequest request;
};

std::vector<std::string> absolute_paths(const std::vector<std::string>& sources) {
  std::vector<std::string> paths;
  for (const std::string& source : sources) paths.push_back(system::absolute_path(source));
  return paths;
}

void require_eos(const std::optional<Index>& eos) {
  constexpr Index kMost = std::numeric_limits<std::int32_t>::max() - 1;
  if (!eos || (*eos >= -1 && *eos <= kMost)) return;
  throw UsageError(fmt::format(
      "--eos-token-id: expected a token from 0 to {}, or -1 for none, got {}", kMost, *eos));
}

void require_token_file(const std::filesystem::path& out,
                        const std::vector<std::filesystem::path>& inputs) {
  require_output_file(out, out.extension().string(), inputs);
  require_output_file(out.string() + ".json", ".json", inputs);
  require_output_file(out.string() + ".model", ".model", inputs);
}

/// Returns one row per domain.
system::Table table_of(const std::vector<run::DomainCounts>& domains) {
  system::Table table{{{"", "domain", true},
                       {"", "documents"},
                       {"", "dropped"},
                       {"", "training bytes"},
                       {"", "held-out bytes"},
                       {"", "overlap"}},
                      {}};
  for (const run::DomainCounts& domain : domains) {
    constexpr double kPercent = 100;
    table.rows.push_back(
        {domain.name, grouped(domain.documents), grouped(domain.dropped),
         grouped(domain.train_bytes), grouped(domain.val_bytes),
         domain.val_bytes == 0 ? "-" : fmt::format("{:.1f} %", kPercent * domain.overlap())});
  }
  return table;
}

/// Returns the tokenizer of a SentencePiece file, or of the model of a run or checkpoint.
run::Tokenizer tokenizer_named(const std::string& name) {
  if (name.empty()) return run::byte_tokenizer();
  if (!run::names_checkpoint(name)) return run::sentencepiece_tokenizer(name);
  const run::TokenizerFile file = run::Checkpoint(run::find_checkpoint(name)).meta().tokenizer;
  throw_if<DataError>(!file.is_known(), "--tokenizer: the tokenizer of {} is unknown", name);
  return run::tokenizer_of(file);
}

/// Warns if the tokens do not give back the text.
void warn_of_loss(const run::TextLoss& loss, const std::string& tokenizer) {
  if (!loss.any()) return;
  std::vector<std::string> lost;
  const auto add = [&](Index count, const char* what) {
    if (count > 0) lost.push_back(fmt::format("{} {}", grouped(count), what));
  };
  add(loss.unknown, "unknown pieces");
  add(loss.newlines, "newlines");
  add(loss.spaces, "spaces");
  add(loss.characters, "other characters");
  say(fmt::format(
      "warning: {} does not keep the text; lost: {}; to keep all of it, train the tokenizer with "
      "--byte_fallback --normalization_rule_name=identity --remove_extra_whitespaces=false "
      "--add_dummy_prefix=false --allow_whitespace_only_pieces --user_defined_symbols=$'\\n', see "
      "docs/data.md",
      tokenizer, fmt::join(lost, ", ")));
}

/// Prints what was written.
void print_prepared(const PrepareArguments& a, const run::Prepared& prepared) {
  const run::PrepareRequest& request = a.request;
  if (!prepared.domains.empty()) fmt::print("{}\n", to_text(table_of(prepared.domains)));
  fmt::print("{}: {} tokens of {} bytes in {}, by {}\n", a.out, grouped(prepared.tokens),
             grouped(prepared.bytes),
             prepared.documents == 1 ? "1 document" : grouped(prepared.documents) + " documents",
             request.tokenizer.file.name);
  warn_of_loss(prepared.loss, request.tokenizer.file.name);
  const std::filesystem::path held_out = val_file(request, "*");
  const std::string val_path =
      a.val_out.empty() ? "" : fmt::format(", val_path: {}", in_braces(held_out.string()));
  fmt::print(
      "to train on it, use:\n  data: {{type: tokens, path: {}{}{}}}\n  model: {{vocab_size: {}}}\n",
      in_braces(a.out), val_path,
      prepared.eos_token_id < 0 ? "" : fmt::format(", eos_token_id: {}", prepared.eos_token_id),
      prepared.vocab_size);
}

system::Exit prepare(PrepareArguments& a) {
  run::PrepareRequest& request = a.request;
  require_eos(request.eos_token_id);
  run::SourceFiles found = run::find_source_files(absolute_paths(a.sources));
  say("SOURCES: " + found.note());
  request.files = std::move(found.files);
  request.out = a.out;
  request.val_out = a.val_out;
  std::vector<std::filesystem::path> inputs;
  for (const run::SourceFile& file : request.files) inputs.push_back(file.path);
  require_token_file(a.out, inputs);
  for (const run::SourceFile& file : request.files)
    if (!a.val_out.empty()) require_token_file(val_file(request, file.domain), inputs);
  request.tokenizer = tokenizer_named(a.tokenizer);
  request.on_progress = progress_line();
  const system::StopRequest stop;
  request.stopped = [&stop] { return stop.received() != system::Exit::ok; };
  try {
    print_prepared(a, prepare_tokens(request));
  } catch (const run::PreparationStopped&) {
    say("stopped; no file is written");
  }
  return stop.received();
}

void prepare_command(CLI::App& above, Context& context) {
  auto a = std::make_shared<PrepareArguments>();
  CLI::App& command =
      add_command(above, "prepare", "Convert text to a token file",
                  {"data prepare text.txt --out tokens.bin",
                   "data prepare books.jsonl --out train.bin --val-out val --val-fraction 0.05 "
                   "--drop-duplicates 0.3"});
  add_option(command, "SOURCES", a->sources,
             "Files, folders or globs; a .jsonl file has one document per line")
      ->required();
  add_option(command, "--out", a->out, "File to write: .bin in nanoGPT's format, or .h5")
      ->required();
  add_option(command, "--tokenizer", a->tokenizer,
             "SentencePiece model, written by spm_train, or a run or checkpoint with one (default: "
             "bytes)");
  add_option(command, "--key", a->request.key, "Key of the text in JSON lines")
      ->capture_default_str();
  add_option(command, "--eos-token-id", a->request.eos_token_id,
             "Token that ends each document; -1 means none (default: the tokenizer's)");
  run::CorpusOptions& options = a->request.options;
  add_option(command, "--drop-duplicates", options.drop_duplicates,
             "Drop documents that share more than this fraction of their 50-byte strings with "
             "longer ones");
  add_option(command, "--val-fraction", options.val_fraction,
             "Fraction of each domain to hold out, in whole documents; JSON lines with the same "
             "\"group\" stay together");
  add_option(command, "--val-out", a->val_out,
             "Directory for held-out tokens, one file per domain; a domain is a file or folder in "
             "SOURCES");
  add_option(command, "--max-overlap", options.max_overlap,
             "Drop the held-out documents most similar to training until at most this fraction of "
             "a domain overlaps");
  command.callback([a, &context] { context.exit = prepare(*a); });
}

}  // namespace

void data_command(CLI::App& program, Context& context) {
  CLI::App& command = add_command(program, "data", "Prepare token files for training",
                                  {"data prepare text.txt --out tokens.bin"});
  prepare_command(command, context);
}

}  // namespace difftape::app
