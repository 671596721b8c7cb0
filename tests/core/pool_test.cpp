#include "core/pool.h"

#include <sys/resource.h>

#include <cmath>
#include <functional>
#include <thread>

#include "core/random.h"
#include "core/tensor.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Pool, freed_memory_serves_the_next_tensor_of_its_size) {
  { const Tensor warm = Tensor::empty({12345}); }
  const auto before = pool::stats();
  for (int i = 0; i < 10; ++i) const Tensor again = Tensor::empty({12345});
  const auto after = pool::stats();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
}

TEST(Pool, counts_the_peak_and_gives_memory_back_on_request) {
  pool::trim();
  pool::reset_peak();
  const size_t before = pool::stats().bytes_in_use;
  { const Tensor big = Tensor::empty({1 << 20}); }
  EXPECT_EQ(pool::stats().peak_bytes_in_use - before, sizeof(real) << 20);
  const size_t reserved = pool::stats().bytes_reserved;
  pool::trim();
  EXPECT_EQ(reserved - pool::stats().bytes_reserved, sizeof(real) << 20);
}

/// Returns the reserved bytes after each step, which holds `varying` tensors of random sizes and
/// four of fixed sizes.
std::vector<size_t> reserved_by_steps(int steps, std::uint64_t varying) {
  pool::trim();
  const size_t before = pool::stats().bytes_reserved;
  const RandomStream stream(1, "sizes");
  std::vector<size_t> reserved;
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> held;
    for (const Index fixed : {1000, 30000, 500000, 30000}) held.push_back(Tensor::empty({fixed}));
    for (std::uint64_t i = 0; i < varying; ++i) {
      const std::uint64_t index = varying * static_cast<std::uint64_t>(step) + i;
      held.push_back(Tensor::empty({1 + static_cast<Index>(stream.below(index, 300000))}));
    }
    reserved.push_back(pool::stats().bytes_reserved - before);
  }
  return reserved;
}

TEST(Pool, does_not_grow_with_every_new_size) {
  const std::vector<size_t> reserved = reserved_by_steps(2000, 1);
  EXPECT_LT(static_cast<double>(reserved.back()), 1.2 * static_cast<double>(reserved[49]));
}

/// Expects that what the pool holds stays below `most` times the peak of what was in use, after the
/// first 50 of 1,000 steps, each of which holds tensors of these sizes at once.
void expect_held(const char* sizes, double most, const std::function<std::vector<Index>(int)>& of) {
  pool::trim();
  pool::reset_peak();
  const pool::Stats before = pool::stats();
  for (int step = 0; step < 1000; ++step) {
    std::vector<Tensor> held;
    for (const Index size : of(step)) held.push_back(Tensor::empty({size}));
    const pool::Stats now = pool::stats();
    if (step < 50) continue;
    ASSERT_LE(static_cast<double>(now.bytes_reserved - before.bytes_reserved),
              (1 << 20) + most * static_cast<double>(now.peak_bytes_in_use - before.bytes_in_use))
        << sizes << ", step " << step;
  }
}

TEST(Pool, holds_at_most_twice_the_peak_of_any_sizes) {
  const RandomStream stream(1, "sizes");
  expect_held("one that grows", 2, [](int step) { return std::vector<Index>{10000 * (step + 1)}; });
  expect_held("20 from 1e2 to 1e6", 2, [&](int step) {
    std::vector<Index> sizes;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto part = static_cast<double>(stream.below(20 * step + i, 1000)) / 1000;
      sizes.push_back(static_cast<Index>(std::pow(10, 2 + 4 * part)));
    }
    return sizes;
  });
  expect_held("four of any size", 2, [&](int step) {
    std::vector<Index> sizes{1000, 30000, 500000};
    for (std::uint64_t i = 0; i < 4; ++i)
      sizes.push_back(1 + static_cast<Index>(stream.below(4 * step + i, 300000)));
    return sizes;
  });
}

TEST(Pool, blocks_are_at_most_an_eighth_larger_than_needed) {
  for (const size_t bytes : {size_t{65}, size_t{4097}, size_t{100000}, (size_t{5} << 20) + 1}) {
    pool::trim();
    const size_t before = pool::stats().bytes_reserved;
    const auto block = pool::allocate(bytes);
    const auto found = static_cast<double>(pool::stats().bytes_reserved - before);
    EXPECT_GE(found, static_cast<double>(bytes));
    EXPECT_LE(found, static_cast<double>(bytes) * 1.125 + 64) << bytes;
  }
}

/// Numbers that the pool counts, of allocations that come and go.
std::vector<size_t> counted() {
  pool::trim();
  pool::reset_peak();
  const pool::Stats before = pool::stats();
  std::vector<size_t> numbers;
  const auto note = [&] {
    const pool::Stats now = pool::stats();
    numbers.insert(
        numbers.end(),
        {now.system_allocations - before.system_allocations, now.bytes_in_use - before.bytes_in_use,
         now.peak_bytes_in_use - before.bytes_in_use, now.bytes_reserved - before.bytes_reserved});
  };
  for (int round = 0; round < 2; ++round) {
    const auto small = pool::allocate(1), odd = pool::allocate(4097);
    note();
    auto large = pool::allocate(size_t{5} << 20);
    note();
    large.reset();
    large = pool::allocate(size_t{5} << 20);
    note();
  }
  note();
  pool::reset_peak();
  pool::trim();
  note();
  return numbers;
}

TEST(PoolDryRun, counts_as_the_pool_does) {
  const std::vector<size_t> real = counted();
  const pool::DryRun dry;
  EXPECT_EQ(counted(), real);
  EXPECT_THAT(real, testing::SizeIs(32));
  EXPECT_EQ(real[6], 64 + 4160 + (size_t{5} << 20)) << "the peak of three blocks";
}

size_t resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

TEST(PoolDryRun, takes_no_memory_and_computes_nothing) {
  const size_t before = resident_bytes();
  const pool::DryRun dry;
  Tensor x = Tensor::zeros({1 << 20, 1 << 18});
  x.fill(1);
  x.add(x.clone());
  EXPECT_TRUE(x.all_finite());
  EXPECT_EQ(pool::stats().peak_bytes_in_use, (sizeof(real) << 38) * 2) << "terabytes";
  EXPECT_LT(resident_bytes() - before, size_t{1} << 20);
}

TEST(PoolDryRun, keeps_single_numbers) {
  const pool::DryRun dry;
  EXPECT_EQ(Tensor::scalar(2.5).item(), 2.5);
  EXPECT_EQ(Tensor::full({1, 1}, 3).item(), 3);
}

TEST(PoolDryRun, leaves_the_pool_as_it_was) {
  const Tensor held = Tensor::full({1000}, 7);
  { const Tensor waiting = Tensor::empty({54321}); }
  const pool::Stats before = pool::stats();
  {
    const pool::DryRun dry;
    const Tensor same_size = Tensor::empty({54321}), other = Tensor::empty({1 << 20});
    pool::trim();
    pool::reset_peak();
  }
  pool::Stats after = pool::stats();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(after.peak_bytes_in_use, before.peak_bytes_in_use);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
  Tensor again = Tensor::full({54321}, 1);
  EXPECT_EQ(again.data()[54320], 1) << "memory, no addresses";
  EXPECT_EQ(held.data()[999], 7);
  EXPECT_EQ(pool::stats().system_allocations, before.system_allocations) << "it still waited";
}

TEST(PoolDryRun, ends_with_an_exception_and_with_the_innermost) {
  try {
    const pool::DryRun dry;
    const Tensor x = Tensor::empty({1 << 20});
    throw std::runtime_error("anything");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(pool::dry());
  const pool::DryRun outer;
  const auto block = pool::allocate(100);
  {
    const pool::DryRun inner;
    EXPECT_EQ(pool::stats().bytes_in_use, 0u);
  }
  EXPECT_TRUE(pool::dry());
  EXPECT_EQ(pool::stats().bytes_in_use, 128u);
}

TEST(PoolDryRun, may_end_before_its_blocks) {
  const pool::Stats before = pool::stats();
  Tensor late;
  {
    const pool::DryRun dry;
    late = Tensor::empty({1 << 20});
  }
  EXPECT_EQ(pool::stats().bytes_in_use, before.bytes_in_use);
  late = Tensor();
  EXPECT_EQ(pool::stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(pool::stats().bytes_reserved, before.bytes_reserved);
}

TEST(PoolDryRun, does_not_reach_other_threads) {
  const pool::DryRun dry;
  real seen = 0;
  std::thread([&] { seen = Tensor::full({1000}, 5).data()[999]; }).join();
  EXPECT_EQ(seen, 5);
  EXPECT_TRUE(dry.blocks().empty());
}

TEST(PoolDryRun, knows_the_life_of_every_block) {
  const pool::DryRun dry;
  const auto first = pool::allocate(100);
  pool::allocate(64);
  const auto last = pool::allocate(1);
  const auto& blocks = dry.blocks();
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].bytes, 128u);
  EXPECT_EQ(blocks[0].returned, pool::DryRun::kNotReturned);
  EXPECT_EQ(blocks[1].in_use, 192u);
  EXPECT_EQ(blocks[1].returned, 2u);
  EXPECT_EQ(blocks[2].in_use, 192u);
}

TEST(PoolDryRun, throws_when_addresses_run_out_and_continues) {
  const pool::DryRun dry;
  EXPECT_THROW(pool::allocate(size_t{1} << 50), std::bad_alloc);
  EXPECT_EQ(pool::stats().bytes_in_use, 0u);
  EXPECT_NE(pool::allocate(size_t{1} << 30), nullptr);
}

}  // namespace
}  // namespace difftape
