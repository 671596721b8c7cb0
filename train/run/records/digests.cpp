#include "train/run/records/digests.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/system/json.h"

namespace difftape::run {

void DigestWriter::write(Index step, const StateDigest& digest) {
  const nlohmann::ordered_json row{
      {"step", step}, {"state", digest.state}, {"tensors", digest.tensors}};
  file_.append(system::json_text(row) + "\n");
}

std::map<Index, StateDigest> read_digests(const std::filesystem::path& path) {
  const std::string text = system::read_text(path);
  std::map<Index, StateDigest> found;
  std::size_t begin = 0, end = 0;
  for (int line = 1; (end = text.find('\n', begin)) != std::string::npos; ++line) {
    try {
      const auto row = system::parse_json(std::string_view(text).substr(begin, end - begin));
      StateDigest digest;
      row.at("state").get_to(digest.state);
      row.at("tensors").get_to(digest.tensors);
      if (!found.emplace(system::whole_number(row.at("step")), std::move(digest)).second)
        throw DataError("a step that was there already");
    } catch (const std::exception& error) {
      throw DataError(
          fmt::format("{}:{}: not a line of digests: {}", path.string(), line, error.what()));
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace difftape::run
