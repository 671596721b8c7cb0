#include "train/run/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/ops.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "train/run/config/writer.h"
#include "train/run/data/prepare/tokenized_text.h"
#include "train/run/data/sources.h"
#include "train/run/data/tasks/task.h"
#include "train/run/data/windows.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

std::unique_ptr<Dataset> make(const DataConfig& config, Index vocab_size, std::uint64_t seed,
                              Index micro_batches) {
  switch (config.type) {
    case DataKind::text:
      return make_text(config, seed, micro_batches);
    case DataKind::tokens:
      return make_token_data(config, vocab_size, seed, micro_batches);
    case DataKind::needles:
      return make_needles(config, seed);
    case DataKind::mqar:
      return make_mqar(config, seed);
    case DataKind::backcopy:
      break;
  }
  return make_backcopy(config, seed);
}

void require_vocab_size(const ValidationData& data, DataKind kind, const ModelConfig& model) {
  throw_if<ConfigError>(model.vocab_size < data.vocab_size(),
                        "model.vocab_size is {}, but data.type '{}' needs at least {}; raise it",
                        model.vocab_size, to_string(kind), data.vocab_size());
}

}  // namespace

std::vector<std::int32_t> Batch::columns(Index first) const {
  std::vector<std::int32_t> out(batch * seq);
  for (Index b = 0; b < batch; ++b)
    std::copy_n(tokens.begin() + b * (seq + 1) + first, seq, out.begin() + b * seq);
  return out;
}

std::vector<std::int32_t> Batch::targets() const {
  std::vector<std::int32_t> out = columns(1);
  for (size_t i = 0; i < scored.size(); ++i)
    if (scored[i] == 0) out[i] = kIgnoreIndex;
  return out;
}

Index Batch::scored_targets() const {
  return scored.empty() ? batch * seq : std::ranges::count(scored, 1);
}

Batch Batch::rows(Span which) const {
  const auto part_of = [&](const auto& all, Index width) {
    return std::decay_t<decltype(all)>(all.begin() + which.begin * width,
                                       all.begin() + which.end * width);
  };
  return {which.size(), seq, part_of(tokens, seq + 1), part_of(scored, scored.empty() ? 0 : seq)};
}

DocumentOffsets Batch::document_offsets(Index eos_token_id) const {
  if (eos_token_id < 0) return nullptr;
  std::vector<std::int32_t> starts(batch * seq);
  for (Index i = 0; i < batch * seq; ++i) {
    const Index t = i % seq;
    const bool ended = t > 0 && tokens[i / seq * (seq + 1) + t - 1] == eos_token_id;
    starts[i] = static_cast<std::int32_t>(t == 0 ? 0 : ended ? t : starts[i - 1]);
  }
  return std::make_shared<const std::vector<std::int32_t>>(std::move(starts));
}

nlohmann::ordered_json FixedBatches::info() const { return {}; }

std::unique_ptr<Dataset> make_dataset(const DataConfig& config, const ModelConfig& model,
                                      std::uint64_t seed, Index micro_batches) {
  auto dataset = make(config, model.vocab_size, seed, micro_batches);
  require_vocab_size(*dataset, config.type, model);
  return dataset;
}

namespace {

std::shared_ptr<const TokenSource> read_whole(const DataConfig& config, Index vocab_size,
                                              const TokenizerFile& tokenizer) {
  constexpr const char* kKey = "--data";
  const bool as_bytes = config.type == DataKind::text && tokenizer.model.empty();
  if (as_bytes) return read_text(kKey, config.path);
  const bool is_text = config.type == DataKind::text || are_text(config.path);
  if (is_text && tokenizer.is_known())
    return tokenize_text(kKey, config.path, tokenizer_of(tokenizer), config.eos_token_id);
  if (is_text) {
    const NameScope scope(kKey);
    throw DataError(fmt::format(
        "{}: is text, but the tokenizer of the model is unknown; give token files of the "
        "same tokenizer",
        one_or_number(find_source_files(config.path).files)));
  }
  return read_token_files(kKey, config.path, vocab_size);
}

}  // namespace

std::unique_ptr<ValidationData> make_whole_data(const DataConfig& config, const ModelConfig& model,
                                                const TokenizerFile& tokenizer) {
  auto row = read_whole(config, model.vocab_size, tokenizer);
  auto data = make_whole_row(std::move(row), config.seq_len, config.batch_size);
  require_vocab_size(*data, config.type, model);
  return data;
}

void require_same_data(const ValidationData& data, const nlohmann::json& recorded,
                       const std::filesystem::path& made) {
  const nlohmann::json now = data.info();
  if (recorded == now) return;
  const auto text = [](const nlohmann::json& info, const std::string& key) {
    const auto found = info.find(key);
    return found == info.end() ? "missing" : system::json_text(*found);
  };
  nlohmann::json all = now;
  if (recorded.is_object()) all.update(recorded);
  std::vector<KeyDifference> found;
  for (const auto& [key, value] : all.items()) {
    const KeyDifference each{key, text(recorded, key), text(now, key)};
    if (each.a != each.b && !key.ends_with("xxh3_128")) found.push_back(each);
  }
  throw DataError(fmt::format(
      "{}: was made with other data: {}; restore the files, or give their location with "
      "--set data.path=PATH",
      made.string(), found.empty() ? "the same amount with other contents" : in_words(found)));
}

}  // namespace difftape::run
