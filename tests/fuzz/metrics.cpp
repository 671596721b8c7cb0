// metrics.jsonl: read and cut.
#include "tests/fuzz/contract.h"

#include "train/run/records/metrics.h"

using namespace difftape;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto path = fuzz::put("metrics.jsonl", fuzz::text_of(data, size));
  fuzz::expect_an_error_at_most(0.1, [&] {
    run::read_metrics(path);
    run::truncate_metrics(path, 3);
    run::read_metrics(path);
  });
  return 0;
}
