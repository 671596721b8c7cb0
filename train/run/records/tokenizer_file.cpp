#include "train/run/records/tokenizer_file.h"

#include "train/run/records/h5.h"

namespace difftape::run {

void write_tokenizer(h5::File& file, const std::string& group, const TokenizerFile& tokenizer) {
  if (!tokenizer.is_known()) return;
  const std::string at = group + "/tokenizer";
  const std::vector<std::uint8_t> bytes(tokenizer.model.begin(), tokenizer.model.end());
  file.write<std::uint8_t>(at, {std::ssize(bytes)}, bytes);
  file.set_attribute(at, "name", tokenizer.name);
}

TokenizerFile read_tokenizer(const h5::File& file, const std::string& group) {
  const std::string at = group + "/tokenizer";
  if (!file.exists(at)) return {};
  const auto bytes = file.read<std::uint8_t>(at);
  return {file.string_attribute(at, "name"), {bytes.begin(), bytes.end()}};
}

}  // namespace difftape::run
