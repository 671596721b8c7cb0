#include "core/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
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

/// Returns the size of the block that serves a request: one of 8 per octave, and a multiple of the
/// alignment. Requests of ever new sizes then find the blocks of others.
std::size_t block_size(std::size_t bytes) {
  const std::size_t step = std::max(kAlignment, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

/// How many times larger than the request a waiting block may be.
constexpr std::size_t kMostSlack = 8;

/// The memory that is taken from the system is at most so many times the most that was in use at a
/// time and a MiB, if blocks that wait can be given back for it. With 1.2 in place of 2, steps of
/// training would take and give back blocks forever.
constexpr std::size_t kMostReserved = 2;

struct Block {
  void* data;
  std::size_t size;
};

class Pool {
 public:
  explicit Pool(const Source& source) : source_(source) {}
  ~Pool() { trim(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  Block take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block block = waiting_block(bytes);
    stats_.bytes_in_use += bytes;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    most_in_use_ = std::max(most_in_use_, stats_.bytes_in_use);
    if (block.data != nullptr) return block;
    block.size = block_size(bytes);
    const std::size_t most = kMostReserved * most_in_use_ + (std::size_t{1} << 20);
    give_waiting_back(most - std::min(most, block.size));
    block.data = source_.take(block.size);
    if (block.data == nullptr) {
      give_waiting_back(0);
      block.data = source_.take(block.size);
    }
    if (block.data == nullptr) {
      stats_.bytes_in_use -= bytes;
      throw std::bad_alloc();
    }
    ++stats_.system_allocations;
    stats_.bytes_reserved += block.size;
    return block;
  }

  void give_back(const Block& block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    waiting_[block.size].push_back(block.data);
    stats_.bytes_in_use -= bytes;
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    give_waiting_back(0);
    most_in_use_ = stats_.bytes_in_use;
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
  /// Gives waiting blocks back, large ones first, until at most `most` bytes are reserved.
  void give_waiting_back(std::size_t most) {
    for (auto at = waiting_.rbegin(); at != waiting_.rend(); ++at) {
      auto& [size, blocks] = *at;
      for (; !blocks.empty() && stats_.bytes_reserved > most; blocks.pop_back()) {
        source_.give_back(blocks.back(), size);
        stats_.bytes_reserved -= size;
      }
    }
  }

  /// Takes the smallest block that waits and serves the request; {} if there is none. A scalar gets
  /// its own size, which alone is memory in a dry run.
  Block waiting_block(std::size_t bytes) {
    const std::size_t most = bytes <= kAlignment ? bytes : kMostSlack * block_size(bytes);
    for (auto at = waiting_.lower_bound(bytes); at != waiting_.end() && at->first <= most; ++at) {
      if (at->second.empty()) continue;
      void* data = at->second.back();
      at->second.pop_back();
      return {data, at->first};
    }
    return {};
  }

  Source source_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> waiting_;  ///< blocks by their size
  std::size_t most_in_use_ = 0;  ///< the most bytes in use at a time since the last trim
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
    const Block block = pool.take(bytes);
    const std::size_t number = blocks.size();
    blocks.push_back({bytes, pool.stats().bytes_in_use});
    return {block.data, [self = shared_from_this(), size = block.size, bytes, number](void* p) {
              self->pool.give_back({p, size}, bytes);
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
  const Block block = shared_pool().take(padded);
  return {block.data, [size = block.size, padded](void* p) {
            shared_pool().give_back({p, size}, padded);
          }};
}

Stats stats() { return current_pool().stats(); }
void reset_peak() { current_pool().reset_peak(); }
void trim() { current_pool().trim(); }

}  // namespace difftape::pool
