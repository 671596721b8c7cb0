#include "core/random.h"

#include <xxhash.h>

#include <Random123/philox.h>
#include <Random123/u01fixedpt.h>
#include <Random123/boxmuller.hpp>
#include <algorithm>
#include <bit>

#include "core/parallel.h"

namespace difftape {

namespace {

r123::Philox4x32::ctr_type draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  return r123::Philox4x32()({{low(index), high(index), low(stream), high(stream)}},
                            {{low(seed), high(seed)}});
}

std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : seed_(seed), stream_(XXH3_64bits(name.data(), name.size())) {}

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  const auto numbers = draw(seed_, stream_, index);
  return join(numbers[0], numbers[1]);
}

double RandomStream::uniform(std::uint64_t index) const {
  return u01fixedpt_open_open_64_double(bits(index));
}

double RandomStream::normal(std::uint64_t index) const {
  const auto numbers = draw(seed_, stream_, index);
  return r123::boxmuller(join(numbers[0], numbers[1]), join(numbers[2], numbers[3])).x;
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  // The high half of the 64 x 64 bit product; its bias is below bound / 2^64.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(bits(index)) * bound >> 64);
}

RandomPermutation::RandomPermutation(std::uint64_t size, std::uint64_t seed, std::string_view name)
    : size_(size),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2)),
      round_(seed, name) {}

std::uint64_t RandomPermutation::network(std::uint64_t i) const {
  constexpr std::uint64_t kRounds = 8;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = i >> half_bits_, right = i & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (round_.bits(round << 32 | right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t RandomPermutation::operator()(std::uint64_t i) const {
  do {
    i = network(i);
  } while (i >= size_);
  return i;
}

void fill_normal(Tensor& tensor, const RandomStream& stream, double std) {
  real* values = tensor.data();
  parallel_ranges(tensor.size(), 1024, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      values[i] = static_cast<real>(std * stream.normal(static_cast<std::uint64_t>(i)));
    }
  });
}

}  // namespace difftape
