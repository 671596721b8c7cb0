// Reads and checks a configuration and its base, two strings, and writes the result again.
#include "tests/fuzz/contract.h"

#include "train/run/config/reader.h"
#include "train/run/config/writer.h"

using namespace difftape;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
  const std::string path = fuzz::put("config.yaml", parts[0]).string();
  fuzz::put("base.yaml", parts[1]);
  fuzz::expect_an_error_at_most(0.1, [&] {
    const run::Config config = run::load_config(path).config;
    const std::string yaml = run::to_yaml(config);
    if (run::to_yaml(run::config_from_yaml(yaml, "written")) != yaml)
      throw std::logic_error("what was written reads back as something else");
  });
  return 0;
}
