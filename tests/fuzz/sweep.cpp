// A sweep file, its claims and a base: three strings.
#include "tests/fuzz/contract.h"

#include "train/study/sweep/sweep_config.h"

using namespace difftape;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
  const std::string path = fuzz::put("sweep.yaml", parts[0]).string();
  const std::string claims = fuzz::put("claims.yaml", parts[1]).string();
  fuzz::put("base.yaml", parts[2]);
  fuzz::expect_an_error_at_most(0.1, [&] { study::load_claims(claims); });
  fuzz::expect_an_error_at_most(1, [&] { study::load_sweep(path); });  // 10,000 runs at most
  return 0;
}
