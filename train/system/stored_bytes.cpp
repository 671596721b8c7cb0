#include "train/system/stored_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace difftape::system {

struct StoredBytes::OpenFile {
  explicit OpenFile(const std::filesystem::path& file)
      : path(file), descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor < 0 || fstat(descriptor, &facts) != 0) throw cannot_read(errno);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }

  MissingInput cannot_read(int reason) const {
    return MissingInput(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(reason)));
  }

  void require_unchanged() const {
    struct stat now {};
    if (fstat(descriptor, &now) != 0) throw cannot_read(errno);
    if (now.st_size == facts.st_size && now.st_mtim.tv_sec == facts.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == facts.st_mtim.tv_nsec) {
      return;
    }
    throw DataError(fmt::format("{}: changed while it was being read; begin again", path.string()));
  }

  void read(std::size_t begin, std::span<std::byte> into) const {
    while (!into.empty()) {
      const ssize_t n = pread(descriptor, into.data(), into.size(), static_cast<off_t>(begin));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw cannot_read(errno);
      if (n == 0) break;  // it is shorter now
      begin += static_cast<std::size_t>(n);
      into = into.subspan(static_cast<std::size_t>(n));
    }
    require_unchanged();
  }

  std::filesystem::path path;
  int descriptor;
  struct stat facts {};
};

StoredBytes::StoredBytes() = default;
StoredBytes::StoredBytes(StoredBytes&&) noexcept = default;
StoredBytes::~StoredBytes() = default;

StoredBytes::StoredBytes(const std::filesystem::path& path, std::size_t in_memory)
    : file_(std::make_unique<OpenFile>(path)),
      size_(static_cast<std::size_t>(file_->facts.st_size)) {
  if (size_ > in_memory) return;
  bytes_.resize(size_);
  file_->read(0, std::as_writable_bytes(std::span(bytes_)));
  file_.reset();
}

StoredBytes StoredBytes::of(std::string bytes) {
  StoredBytes stored;
  stored.size_ = bytes.size();
  stored.bytes_ = std::move(bytes);
  return stored;
}

void StoredBytes::read(std::size_t begin, std::span<std::byte> into) const {
  if (file_) return file_->read(begin, into);
  std::ranges::copy(std::as_bytes(std::span(bytes_)).subspan(begin, into.size()), into.begin());
}

}  // namespace difftape::system
