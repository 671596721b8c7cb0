#include "train/system/last_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "core/error.h"
#include "train/system/files.h"

namespace difftape::system {

namespace {

constexpr std::size_t kBlockBytes = 1 << 16;

/// A file that is read from its end: what is left of it is its beginning.
class Backwards {
 public:
  explicit Backwards(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    left_ = std::filesystem::file_size(path, error);
    errno = error.value();
    if (!error) file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) fail();
  }

  std::size_t left() const { return left_; }
  /// The last bytes of what is left, `count` of them or all.
  std::string read(std::size_t count) {
    std::string block(std::min(count, left_), '\0');
    left_ -= block.size();
    const bool found = fseeko(file_.get(), static_cast<off_t>(left_), SEEK_SET) == 0 &&
                       std::fread(block.data(), 1, block.size(), file_.get()) == block.size();
    if (!found) fail();
    return block;
  }

 private:
  [[noreturn]] void fail() const {
    throw MissingInput(
        fmt::format("cannot read {}: {}", path_.string(), std::generic_category().message(errno)));
  }

  std::filesystem::path path_;
  File file_;
  std::size_t left_ = 0;
};

}  // namespace

void for_each_line_from_the_end(const std::filesystem::path& path,
                                const std::function<bool(std::string_view, std::size_t)>& f) {
  Backwards file(path);
  std::string text;  // between what is left of the file and the lines that f saw
  while (file.left() > 0) {
    text.insert(0, file.read(std::max(kBlockBytes, text.size())));
    for (std::size_t newline; (newline = text.rfind('\n')) != std::string::npos;) {
      text.resize(newline + 1);
      const std::size_t before = newline == 0 ? std::string::npos : text.rfind('\n', newline - 1);
      if (before == std::string::npos && file.left() > 0) break;  // it begins in the next block
      const std::size_t begin = before == std::string::npos ? 0 : before + 1;
      const std::string_view line = std::string_view(text).substr(begin, newline - begin);
      if (!f(line, file.left() + newline + 1)) return;
      text.resize(begin);
    }
  }
}

}  // namespace difftape::system
