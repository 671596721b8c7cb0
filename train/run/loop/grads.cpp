#include "train/run/loop/grads.h"

#include <limits>

#include "core/error.h"
#include "train/run/config/writer.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

void check_tokens(const Batch& batch, const ModelConfig& config) {
  throw_if<DataError>(
      batch.seq > config.max_seq_len,
      "--batch: /tokens has {} tokens per row, but must have at most model.max_seq_len + 1, "
      "with model.max_seq_len {}; shorten the rows",
      batch.seq + 1, config.max_seq_len);
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    if (batch.tokens[i] >= 0 && batch.tokens[i] < config.vocab_size) continue;
    const auto width = static_cast<size_t>(batch.seq + 1);
    throw DataError(fmt::format(
        "--batch: /tokens[{}, {}] is {}, but must be 0 to {}, because "
        "model.vocab_size is {}; use tokens of this model",
        i / width, i % width, batch.tokens[i], config.vocab_size - 1, config.vocab_size));
  }
}

/// Reads tokens (B, T + 1) and checks their range, which HDF5 would clamp to.
std::vector<std::int32_t> read_tokens(const h5::File& file, Index width) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int32_t> tokens;
  for (const std::int64_t token : file.read<std::int64_t>("tokens")) {
    const Index at = std::ssize(tokens);
    throw_if<DataError>(
        !std::in_range<std::int32_t>(token),
        "--batch: /tokens[{}, {}] is {}{}, but must fit into 32 bits; use tokens of this model",
        at / width, at % width, token, token == kMost ? " or more" : "");
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

}  // namespace

Batch read_token_batch(const fs::path& path) {
  const h5::File file = h5::File::open(path);
  const Shape shape = file.shape("tokens");
  throw_if<DataError>(shape.rank() != 2 || shape[0] < 1 || shape[1] < 2,
                      "{}: /tokens has shape {}, but must be (B, T + 1): B rows of T inputs and "
                      "the last target, B and T at least 1; reshape it",
                      path.string(), shape.str());
  Batch batch{shape[0], shape[1] - 1, read_tokens(file, shape[1])};
  if (file.exists("scored")) {
    const Shape scored = file.shape("scored");
    throw_if<DataError>(
        !(scored == Shape{batch.batch, batch.seq}),
        "{}: /scored has shape {}, but must be {}, one number per target; reshape it",
        path.string(), scored.str(), Shape{batch.batch, batch.seq}.str());
    for (const std::int32_t counts : file.read<std::int32_t>("scored"))
      batch.scored.push_back(counts != 0);
  }
  return batch;
}

LossAndLogits forward_backward(LanguageModel& model, const Batch& batch, Index eos_token_id,
                               Precision precision) {
  check_tokens(batch, model.config());
  const std::vector<std::int32_t> inputs = batch.inputs(), targets = batch.targets();
  const TokenBatch tokens{inputs, batch.batch, batch.seq, batch.document_offsets(eos_token_id)};
  for (Parameter& parameter : model.parameters()) parameter.zero_grad();
  Tape tape(Tape::Mode::training, precision), logits_tape(Tape::Mode::inference, precision);
  const Var loss = model.loss(tape, tokens, targets);
  tape.backward(loss);
  return {loss.value().item(), model.logits(logits_tape, tokens).value()};
}

void write_grads(const fs::path& path, const NamedModel& named, const Batch& batch,
                 const LossAndLogits& result) {
  h5::File file = h5::File::create(path);
  file.set_attribute("/", "config_yaml", to_yaml(named.config));
  file.write("loss", Tensor::scalar(result.loss));
  file.write("logits", result.logits);
  file.write<std::int32_t>("tokens", {batch.batch, batch.seq + 1}, batch.tokens);
  if (!batch.scored.empty()) {
    const std::vector<std::int32_t> scored(batch.scored.begin(), batch.scored.end());
    file.write<std::int32_t>("scored", {batch.batch, batch.seq}, scored);
  }
  for (const Parameter& parameter : named.model->parameters()) {
    file.write("grad/" + parameter.name, parameter.grad);
    file.write("model/" + parameter.name, parameter.value);
  }
  file.save();
}

}  // namespace difftape::run
