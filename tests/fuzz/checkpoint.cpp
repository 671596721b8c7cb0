// A checkpoint of somebody who knows how to write its first line: its configuration, then what is
// in it, as described_h5.h says. An input that begins as HDF5 does is the file after that line.
#include "train/run/checkpoint/checkpoint.h"

#include "core/error.h"
#include "tests/fuzz/contract.h"
#include "tests/fuzz/described_h5.h"
#include "tests/support/scratch.h"
#include "train/run/config/reader.h"
#include "train/run/inference/model.h"
#include "train/run/loop/train_state.h"

using namespace difftape;

namespace {

void write_raw(const std::filesystem::path& path, std::string_view bytes) {
  std::string file(run::kChecksumHeaderSize, ' ');
  file += bytes;
  run::write_checksum_header(std::as_writable_bytes(std::span(file)));
  test::put(path, file);
}

/// Returns the configuration of the run that is continued.
constexpr const char* kConfig =
    "model: {d_model: 4, num_layers: 1, num_heads: 2, d_ff: 4, max_seq_len: 8, vocab_size: 9, "
    "tie_word_embeddings: true}\n"
    "data: {type: backcopy, seq_len: 8, batch_size: 1, backcopy: {symbols: 4, triggers: 1}}\n"
    "train: {steps: 4}\n";

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  if (fuzz::is_made_up_h5(input)) return -1;
  const auto path = fuzz::folder() / "step-00000003.h5";
  std::filesystem::remove(path);
  fuzz::expect_an_error_at_most(0.5, [&] {
    if (input.starts_with("\x89HDF")) {
      write_raw(path, input);
    } else {
      const auto parts = fuzz::parts_of(input, 2);
      run::h5::File file = fuzz::described_h5(path, parts[1], run::kChecksumHeaderSize);
      file.set_attribute("/", "config_yaml", std::string(parts[0]));
      file.save(run::write_checksum_header);
    }
  });
  fuzz::expect_an_error_at_most(0.5, [&] { run::open_model(path); });
  fuzz::expect_an_error_at_most(0.5, [&] {
    run::TrainState state(run::config_from_yaml(kConfig, "config"));
    state.restore(path);
  });
  return 0;
}
