// `difftape generate`: generates text with a model.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "core/name_scope.h"
#include "train/app/commands.h"
#include "train/run/data/prepare/corpus.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/inference/generate.h"
#include "train/run/inference/model.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::app {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateArguments {
  std::string model, prompt, prompts, tokens;
  std::vector<std::string> stop;
  run::GenerateRequest request;
  Index seed = 1;
  bool has_prompt = false, json = false;
};

/// Returns the tokenizer of a model; nothing if it is unknown.
std::optional<run::Tokenizer> tokenizer_of(const run::NamedModel& named) {
  if (!named.tokens.tokenizer.is_known()) return std::nullopt;
  return run::tokenizer_of(named.tokens.tokenizer);
}

using MaybeTokenizer = std::optional<run::Tokenizer>;

/// A prompt, and its name in errors.
struct Prompt {
  std::vector<std::int32_t> tokens;
  std::string name;
};

Prompt prompt_of_text(const run::Tokenizer& tokenizer, const std::string& text, std::string name) {
  const std::size_t foreign = tokenizer.utf8 ? run::first_foreign(text) : text.npos;
  throw_if<DataError>(foreign != text.npos,
                      "{}: is not valid UTF-8 at byte {}, but {} needs UTF-8; convert it", name,
                      foreign, tokenizer.file.name);
  Prompt prompt{tokenizer.encode(text), std::move(name)};
  const auto unknown = std::ranges::count(prompt.tokens, tokenizer.unknown);
  if (tokenizer.unknown >= 0 && unknown > 0)
    say(fmt::format("{}: {} tokens replace characters that {} does not have", prompt.name, unknown,
                    tokenizer.file.name));
  return prompt;
}

/// Reads a file that the user names, which may be a pipe: `--prompts <(...)`.
std::string text_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_fifo(path, ignored)) return system::read_text(path);
  std::ifstream pipe(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(pipe), {}};
}

std::vector<Prompt> lines_of(const std::string& path, const run::Tokenizer& tokenizer) {
  std::vector<Prompt> prompts;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    prompts.push_back(
        prompt_of_text(tokenizer, line, fmt::format("{}:{}", path, prompts.size() + 1)));
  }
  throw_if<DataError>(prompts.empty(), "{}: is empty, but must have one prompt per line", path);
  return prompts;
}

/// Reads "1,2,3". Throws UsageError for anything else.
std::vector<Index> numbers_of(const std::string& text) {
  std::vector<Index> numbers;
  std::istringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) {
    const std::optional<Index> number = system::read_number<Index>(item);
    throw_if<UsageError>(
        !number, "--tokens {}: '{}' is not a token id; give integers such as 1,2,3", text, item);
    numbers.push_back(*number);
  }
  return numbers;
}

Prompt prompt_of_tokens(const std::string& text, Index vocab_size) {
  Prompt prompt{{}, "--tokens"};
  for (const Index token : numbers_of(text)) {
    throw_if<DataError>(token < 0 || token >= vocab_size,
                        "--tokens: {} is not a token of the model; use 0 to {}", token,
                        vocab_size - 1);
    prompt.tokens.push_back(static_cast<std::int32_t>(token));
  }
  return prompt;
}

/// Requires exactly one of the options that give a prompt.
void require_one_beginning(const GenerateArguments& a) {
  std::vector<const char*> given;
  if (a.has_prompt) given.push_back("--prompt");
  if (!a.prompts.empty()) given.push_back("--prompts");
  if (!a.tokens.empty()) given.push_back("--tokens");
  throw_if<UsageError>(given.empty(),
                       "a prompt is missing; give --prompt TEXT, --prompts FILE or --tokens 1,2,3");
  throw_if<UsageError>(given.size() > 1, "{} exclude each other; give one of them",
                       fmt::join(given, " and "));
}

/// Returns the prompts after checking that the model can read all of them.
std::vector<Prompt> prompts_of(const GenerateArguments& a, const run::NamedModel& named,
                               const MaybeTokenizer& tokenizer) {
  const bool of_text = a.has_prompt || !a.prompts.empty();
  throw_if<UsageError>(
      (of_text || !a.stop.empty()) && !tokenizer,
      "the tokenizer of this model is unknown, but --prompt, --prompts and --stop need it; use "
      "--tokens, or train on a token file with its tokenizer, as `difftape data prepare` writes "
      "it");
  std::vector<Prompt> prompts;
  if (a.has_prompt) prompts = {prompt_of_text(*tokenizer, a.prompt, "--prompt")};
  if (!a.prompts.empty()) prompts = lines_of(a.prompts, *tokenizer);
  const ModelConfig& model = named.config.model;
  if (!a.tokens.empty()) prompts = {prompt_of_tokens(a.tokens, model.vocab_size)};
  for (const Prompt& prompt : prompts) {
    const NameScope scope(prompt.name);
    run::require_prompt(prompt.tokens, model);
  }
  return prompts;
}

void require_sampling(const run::Sampling& sampling, Index max_tokens) {
  const auto require = [](bool holds, const char* option, const auto& found, const char* need) {
    throw_if<UsageError>(!holds, "{}: is {}, but must be {}", option, found, need);
  };
  require(sampling.temperature >= 0 && std::isfinite(sampling.temperature), "--temperature",
          sampling.temperature, "finite and at least 0, which selects greedy decoding");
  require(sampling.top_k >= 0, "--top-k", sampling.top_k, "at least 0, which keeps all tokens");
  require(sampling.top_p > 0 && sampling.top_p <= 1, "--top-p", sampling.top_p,
          "above 0 and at most 1");
  require(sampling.min_p >= 0 && sampling.min_p <= 1, "--min-p", sampling.min_p, "from 0 to 1");
  require(max_tokens >= 1, "--max-tokens", max_tokens, "at least 1");
}

/// Prints a piece of text immediately. Returns false if it cannot be printed.
bool print_piece(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

std::string numbers(std::span<const std::int32_t> tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

/// Prints prompt and text while they are generated. Returns false if they cannot be printed.
bool stream_text(LanguageModel& model, run::GenerateRequest request,
                 const MaybeTokenizer& tokenizer) {
  std::optional<run::TextStream> text;
  if (tokenizer) text.emplace(*tokenizer, request.prompt);
  print_piece(tokenizer ? tokenizer->decode(request.prompt) : numbers(request.prompt));
  request.on_token = [&](std::int32_t token) {
    return print_piece(text ? text->add(token) : fmt::format(" {}", token));
  };
  const run::FinishReason why = generate(model, request).finish_reason;
  print_piece(text ? text->rest() + "\n" : "\n");
  if (why == run::FinishReason::context)
    say(fmt::format("reached the maximum context of the model (model.max_seq_len {})",
                    model.config().max_seq_len));
  return why != run::FinishReason::cancelled;
}

void print_json(LanguageModel& model, const run::GenerateRequest& request,
                const MaybeTokenizer& tokenizer) {
  const run::Generated found = generate(model, request);
  Json line{{"prompt", request.prompt},
            {"tokens", found.tokens},
            {"finish_reason", to_string(found.finish_reason)}};
  if (tokenizer) {
    std::vector<std::int32_t> all = request.prompt;
    all.insert(all.end(), found.tokens.begin(), found.tokens.end());
    const std::string prompt = tokenizer->decode(request.prompt), text = tokenizer->decode(all);
    line["prompt"] = prompt;
    line["text"] = text.substr(std::min(prompt.size(), text.size()));
  }
  fmt::print("{}\n", system::json_text(line));
}

void write_texts(GenerateArguments& a) {
  require_one_beginning(a);
  require_sampling(a.request.sampling, a.request.max_tokens);
  throw_if<UsageError>(a.seed < 0, "--seed: must be at least 0, got {}", a.seed);
  const run::NamedModel named = run::open_model(a.model);
  const MaybeTokenizer tokenizer = tokenizer_of(named);
  a.request.eos_token_id = named.config.data.eos_token_id;
  a.request.seed = static_cast<std::uint64_t>(a.seed);
  if (tokenizer) {
    a.request.known =
        known_tokens(*tokenizer, a.request.eos_token_id, named.config.model.vocab_size);
  }
  const std::vector<Prompt> prompts = prompts_of(a, named, tokenizer);
  if (!a.stop.empty()) {
    // A stop string spans at most as many tokens as it has bytes. Some tokens add no bytes: the
    // first of a text may lose its space, and control tokens are not text.
    constexpr std::size_t kMore = 8;
    const std::size_t longest = std::ranges::max(a.stop, {}, &std::string::size).size();
    a.request.is_stop = [&, longest](std::span<const std::int32_t> written) {
      const std::string text =
          tokenizer->decode(written.last(std::min(written.size(), longest + kMore)));
      return std::ranges::any_of(
          a.stop, [&](const std::string& stop) { return text.find(stop) != text.npos; });
    };
  }
  for (const Prompt& prompt : prompts) {
    a.request.prompt = prompt.tokens;
    if (a.json)
      print_json(*named.model, a.request, tokenizer);
    else if (!stream_text(*named.model, a.request, tokenizer))
      return;
    ++a.request.stream;
  }
}

}  // namespace

void generate_command(CLI::App& program, Context&) {
  auto a = std::make_shared<GenerateArguments>();
  run::GenerateRequest& request = a->request;
  CLI::App& command = add_command(
      program, "generate", "Generate text from a prompt",
      {"generate runs/mine --prompt 'the quick ' --max-tokens 8",
       "generate runs/mine --prompt 'the ' --temperature 0.8 --top-k 40 --seed 2 --json"});
  const auto shown = [&](const char* name, auto& value, const char* help) {
    add_option(command, name, value, help)->capture_default_str();
  };
  add_option(command, "RUN_OR_CKPT", a->model, kModelHelp)->required();
  const CLI::Option* prompt = command.add_option("--prompt", a->prompt, "Prompt");  // may be empty
  add_option(command, "--prompts", a->prompts, "File with one prompt per line");
  add_option(command, "--tokens", a->tokens, "Prompt as token ids, such as 1,2,3");
  shown("--max-tokens", request.max_tokens, "Maximum number of tokens to generate");
  shown("--temperature", request.sampling.temperature,
        "Sampling temperature; 0 selects greedy decoding");
  shown("--top-k", request.sampling.top_k, "Sample from the K most likely tokens; 0 keeps all");
  shown("--top-p", request.sampling.top_p,
        "Sample from the most likely tokens with this total probability");
  shown("--min-p", request.sampling.min_p,
        "Drop tokens below this fraction of the largest probability");
  shown("--seed", a->seed, "Random seed of the sampling");
  add_option(command, "--stop", a->stop, "String that ends the generation; may be repeated");
  command.add_flag("--json", a->json, "Print one JSON object per prompt");
  command.callback([a, prompt] {
    a->has_prompt = prompt->count() > 0;
    write_texts(*a);
  });
}

}  // namespace difftape::app
