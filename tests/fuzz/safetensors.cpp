// A file of safetensors and the config.json beside it: two files. Imported as a model.
#include "tests/fuzz/contract.h"

#include "core/real.h"
#include "train/run/exchange/export.h"
#include "train/run/exchange/safetensors.h"

using namespace difftape;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
  fuzz::put("config.json", parts[0]);
  const auto path = fuzz::put("model.safetensors", parts[1]);
  fuzz::expect_an_error_at_most(0.5, [&] {
    const auto file = run::safetensors::File::read(path);
    for (const auto& [name, entry] : file.tensors()) {
      if (!run::safetensors::why_not_read(entry.dtype).empty()) continue;
      std::vector<real> numbers(entry.bytes.size() / (entry.dtype == "F32" ? 4 : 2));
      copy_numbers(entry, numbers);
    }
  });
  fuzz::expect_an_error_at_most(0.5, [&] { run::import_model(path, {}); });
  return 0;
}
