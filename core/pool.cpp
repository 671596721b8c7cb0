#include "core/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace difftape::pool {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Takes memory from the system. Large blocks are aligned to huge pages and ask for them, because a
/// step touches many pages of each. The system may refuse, which costs only time.
void* take_from_system(std::size_t bytes) {
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
  void* block = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  if (block != nullptr) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return block;
}

void give_to_system(void* block, std::size_t) { std::free(block); }

/// Reserves addresses without memory, except for blocks that may hold a scalar.
void* reserve(std::size_t bytes) {
  if (bytes <= kAlignment) {
    void* block = std::aligned_alloc(kAlignment, bytes);
    return block == nullptr ? nullptr : std::memset(block, 0, bytes);
  }
  void* block = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void unreserve(void* block, std::size_t bytes) {
  if (bytes <= kAlignment) {
    std::free(block);
  } else {
    munmap(block, bytes);
  }
}

/// The functions that take a block, null if none is left, and give it back.
struct Source {
  void* (*take)(std::size_t bytes);
  void (*give_back)(void* block, std::size_t bytes);
};
constexpr Source kSystem{take_from_system, give_to_system};
constexpr Source kAddresses{reserve, unreserve};

class Pool {
 public:
  explicit Pool(const Source& source) : source_(source) {}
  ~Pool() { trim(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

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
    void* block = source_.take(bytes);
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
      for (void* block : blocks) source_.give_back(block, bytes);
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
  Source source_;
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> waiting_;
  Stats stats_;
};

// Never destroyed: tensors with static lifetime may give their block back at any time.
Pool& shared_pool() {
  static Pool* pool = new Pool(kSystem);
  return *pool;
}

}  // namespace

namespace detail {

struct DryState : std::enable_shared_from_this<DryState> {
  std::shared_ptr<void> allocate(std::size_t bytes) {
    void* block = pool.take(bytes);
    const std::size_t number = blocks.size();
    blocks.push_back({bytes, pool.stats().bytes_in_use});
    return {block, [self = shared_from_this(), bytes, number](void* p) {
              self->pool.give_back(p, bytes);
              self->blocks[number].returned = self->blocks.size();
            }};
  }

  Pool pool{kAddresses};
  std::vector<DryRun::Block> blocks;
};

}  // namespace detail

namespace {
Pool& current_pool() { return dry() ? detail::dry->pool : shared_pool(); }
}  // namespace

DryRun::DryRun()
    : state_(std::make_shared<detail::DryState>()),
      before_(std::exchange(detail::dry, state_.get())) {}
DryRun::~DryRun() { detail::dry = before_; }
const std::vector<DryRun::Block>& DryRun::blocks() const { return state_->blocks; }

std::shared_ptr<void> allocate(std::size_t bytes) {
  const std::size_t padded =
      std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (dry()) return detail::dry->allocate(padded);
  void* block = shared_pool().take(padded);
  return {block, [padded](void* p) { shared_pool().give_back(p, padded); }};
}

Stats stats() { return current_pool().stats(); }
void reset_peak() { current_pool().reset_peak(); }
void trim() { current_pool().trim(); }

}  // namespace difftape::pool
