#include "train/system/stored_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>

#include "core/error.h"
#include "train/system/files.h"

namespace difftape::system {

struct StoredBytes::Mapping {
  explicit Mapping(const std::filesystem::path& file) : path(file), descriptor(file, O_RDONLY) {
    if (!descriptor.is_open() || fstat(descriptor.number(), &facts) != 0) throw cannot_read(errno);
    if (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) throw cannot_read(ENOTSUP);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (first != nullptr) munmap(first, size());
  }

  std::size_t size() const { return static_cast<std::size_t>(facts.st_size); }

  MissingInput cannot_read(int reason) const {
    return MissingInput(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(reason)));
  }

  std::string contents(std::size_t from, std::size_t wanted) {
    std::string bytes(wanted, '\0');
    for (std::size_t done = 0; done < wanted;) {
      const ssize_t count = pread(descriptor.number(), bytes.data() + done, wanted - done,
                                  static_cast<off_t>(from + done));
      if (count < 0 && errno != EINTR) throw cannot_read(errno);
      if (count == 0) throw has_changed();  // it became shorter
      done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    require_unchanged();
    return bytes;
  }

  void map() {
    void* const at = mmap(nullptr, size(), PROT_READ, MAP_SHARED, descriptor.number(), 0);
    if (at == MAP_FAILED) throw cannot_read(errno);
    first = static_cast<char*>(at);
  }

  void require_unchanged() {
    const std::lock_guard lock(checking);
    struct stat now {};
    if (fstat(descriptor.number(), &now) != 0) throw cannot_read(errno);
    if (now.st_size == facts.st_size) {
      if (now.st_mtim.tv_sec == facts.st_mtim.tv_sec &&
          now.st_mtim.tv_nsec == facts.st_mtim.tv_nsec)
        return;
      if (are_same && are_same({first + begin, length})) {
        facts = now;
        return;
      }
    }
    throw has_changed();
  }

  DataError has_changed() const {
    return DataError(
        fmt::format("{}: the file changed while it was read; restore it and start again, or, for a "
                    "run, continue with --resume",
                    path.string()));
  }

  /// Releases mapped pages now and then, because they count as memory of the process.
  void forget_pages_after(std::size_t count) {
    constexpr std::size_t kPage = 2 << 20;  // the kernel maps up to a huge page around a byte
    if (looked_at.fetch_add(count + kPage) < kInMemory) return;
    looked_at = 0;
    madvise(first, size(), MADV_DONTNEED);
  }

  std::filesystem::path path;
  Descriptor descriptor;
  struct stat facts {};
  char* first = nullptr;
  std::atomic<std::size_t> looked_at = 0;
  std::mutex checking;                ///< guards `facts`
  std::size_t begin = 0, length = 0;  ///< the bytes for `are_same`
  std::function<bool(std::string_view)> are_same;
};

StoredBytes::StoredBytes(StoredBytes&&) noexcept = default;
StoredBytes::~StoredBytes() = default;

StoredBytes::StoredBytes(const std::filesystem::path& path, std::size_t in_memory)
    : mapping_(std::make_unique<Mapping>(path)), size_(mapping_->size()) {
  if (size_ > in_memory) {
    mapping_->map();
  } else {
    bytes_ = mapping_->contents(0, size_);
    mapping_.reset();
  }
}

void StoredBytes::accept_if(std::size_t begin, std::size_t count,
                            std::function<bool(std::string_view)> are_same) {
  if (!mapping_) return;
  mapping_->begin = begin;
  mapping_->length = count;
  mapping_->are_same = std::move(are_same);
}

std::string_view StoredBytes::read(std::size_t begin, std::size_t count) const {
  if (!mapping_) return std::string_view(bytes_).substr(begin, count);
  mapping_->require_unchanged();
  mapping_->forget_pages_after(count);
  return {mapping_->first + begin, count};
}

std::string StoredBytes::copy(std::size_t begin, std::size_t count) const {
  return mapping_ ? mapping_->contents(begin, count) : bytes_.substr(begin, count);
}

}  // namespace difftape::system
