// A SentencePiece model and a string that it encodes and decodes: two files.
#include "tests/fuzz/contract.h"

#include "train/run/data/prepare/tokenizer.h"

using namespace difftape;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
  const auto path = fuzz::put("any.model", parts[1]);
  fuzz::expect_an_error_at_most(0.5, [&] {
    const run::Tokenizer tokenizer = run::sentencepiece_tokenizer(path);
    const auto tokens = tokenizer.encode(parts[0]);
    run::TextStream stream(tokenizer, {});
    for (const std::int32_t token : tokens) {
      if (token < 0 || token >= tokenizer.vocab_size) throw std::logic_error("a token of no word");
      tokenizer.bytes(token);
      stream.add(token);
    }
    stream.rest();
  });
  return 0;
}
