#include "core/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace difftape::pool {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Memory from the system. Large blocks begin on a huge page and ask for such pages: a step touches
/// many pages of each, and the first step all of them for the first time. It is a wish; whether it
/// is granted changes nothing but the time.
void* take_from_system(std::size_t bytes) {
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
  void* block = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  if (block != nullptr) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return block;
}

class Pool {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use += bytes;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    auto& waiting = waiting_[bytes];
    if (!waiting.empty()) {
      void* block = waiting.back();
      waiting.pop_back();
      return block;
    }
    void* block = take_from_system(bytes);
    if (block == nullptr) {
      stats_.bytes_in_use -= bytes;
      throw std::bad_alloc();
    }
    ++stats_.system_allocations;
    stats_.bytes_reserved += bytes;
    return block;
  }

  void give_back(void* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    waiting_[bytes].push_back(block);
    stats_.bytes_in_use -= bytes;
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (auto& [bytes, blocks] : waiting_) {
      for (void* block : blocks) std::free(block);
      stats_.bytes_reserved -= bytes * blocks.size();
      blocks.clear();
    }
  }

  Stats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> waiting_;
  Stats stats_;
};

// Never destroyed: tensors with static lifetime may give their block back at any time.
Pool& shared_pool() {
  static Pool* pool = new Pool;
  return *pool;
}

}  // namespace

std::shared_ptr<void> allocate(std::size_t bytes) {
  const std::size_t padded =
      std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  void* block = shared_pool().take(padded);
  return {block, [padded](void* p) { shared_pool().give_back(p, padded); }};
}

Stats stats() { return shared_pool().stats(); }
void reset_peak() { shared_pool().reset_peak(); }
void trim() { shared_pool().trim(); }

}  // namespace difftape::pool
