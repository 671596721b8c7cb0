// A file of tokens, what says which tokenizer made them, and its model: three files; the first may
// be the line "hdf5" and what is in it, as described_h5.h says. Batches are made of what is
// accepted.
#include "tests/fuzz/contract.h"
#include "tests/fuzz/described_h5.h"

#include "core/error.h"
#include "train/run/data/dataset.h"

using namespace difftape;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
  if (fuzz::is_made_up_h5(parts[0])) return -1;
  constexpr std::string_view kDescribed = "hdf5\n";
  const std::string path = fuzz::put("tokens.bin", parts[0]).string();
  fuzz::expect_an_error_at_most(0.5, [&] {
    if (parts[0].starts_with(kDescribed))
      fuzz::described_h5(path, parts[0].substr(kDescribed.size())).save();
  });
  for (const auto& [i, ending] : {std::pair(1, ".json"), std::pair(2, ".model")}) {
    const std::string name = std::string("tokens.bin") + ending;
    if (parts[i].empty()) {
      std::filesystem::remove(fuzz::folder() / name);
    } else {
      fuzz::put(name, parts[i]);
    }
  }
  fuzz::expect_an_error_at_most(0.5, [&] {
    ModelConfig model;
    model.vocab_size = 60000;
    const auto tokens = run::make_dataset(
        {.type = run::DataKind::tokens, .path = {path}, .seq_len = 4, .batch_size = 2}, model, 1);
    for (const run::Batch& batch : {tokens->train_batch(7, 0), tokens->val_batch(0)}) {
      for (const std::int32_t token : batch.tokens)
        if (token < 0 || token >= model.vocab_size) throw std::logic_error("a token of no word");
    }
  });
  return 0;
}
