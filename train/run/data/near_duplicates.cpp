#include "train/run/data/near_duplicates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include "core/parallel.h"

namespace difftape::run {
namespace {

/// Mixes bits by splitmix64 (Steele et al. 2014).
constexpr std::uint64_t scatter(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Random number for each byte value.
constexpr auto kOfByte = [] {
  std::array<std::uint64_t, 256> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = scatter(i);
  return numbers;
}();

/// Returns the term that a byte adds to a rolling hash when it enters the string; leaving() returns
/// the term when it leaves.
constexpr std::uint64_t entering(char byte) { return kOfByte[static_cast<unsigned char>(byte)]; }
constexpr std::uint64_t leaving(char byte) {
  return std::rotl(entering(byte), static_cast<int>(kSharedBytes));
}

/// Hash set of fixed capacity with open addressing. It stores the low 32 bits of each hash in a
/// slot chosen by the others, so about one in 2^30 lookups is a false match. A bit table rejects
/// most absent hashes without an unpredictable branch.
class HashSet {
 public:
  /// Makes a set for at most `hashes` hashes.
  explicit HashSet(Index hashes)
      : left_(hashes),
        slots_(static_cast<std::size_t>(hashes + hashes / 2 + 64)),
        bits_(static_cast<std::size_t>(hashes / 8 + 1)) {}

  bool contains(std::uint64_t hash) const { return maybe(hash) && slots_[place(hash)] != 0; }
  /// Inserts a hash. A full set ignores it, which only adversarial text can cause.
  void insert(std::uint64_t hash) {
    std::uint32_t& slot = slots_[place(hash)];
    if (slot != 0 || left_ == 0) return;
    --left_;
    slot = kept_of(hash);
    bits_[word(hash)] |= bit(hash);
  }
  /// Returns false if the hash is certainly not in the set.
  bool maybe(std::uint64_t hash) const { return (bits_[word(hash)] & bit(hash)) != 0; }
  /// Returns the slot of the hash, present or not, in [0, places()).
  std::size_t place(std::uint64_t hash) const {
    std::size_t at = scaled(hash, slots_.size());
    while (slots_[at] != 0 && slots_[at] != kept_of(hash))
      if (++at == slots_.size()) at = 0;
    return at;
  }
  std::size_t places() const { return slots_.size(); }

 private:
  static std::uint32_t kept_of(std::uint64_t hash) {
    const auto low = static_cast<std::uint32_t>(hash);
    return low == 0 ? 1 : low;  // 0 marks a free slot
  }
  /// Maps a hash to [0, size) by multiplicative hashing; size < 2^32.
  static std::size_t scaled(std::uint64_t hash, std::size_t size) {
    const std::uint64_t spread = hash * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>((spread >> 32) * size >> 32);
  }
  std::size_t word(std::uint64_t hash) const { return scaled(hash, bits_.size()); }
  static std::uint64_t bit(std::uint64_t hash) { return std::uint64_t{1} << (hash & 63); }

  Index left_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> bits_;
};

/// Counts the bytes covered by strings, added in ascending order of their ends.
class Covered {
 public:
  /// Adds a string with `around` bytes before and after it.
  void add(Index end, Index around = 0) {
    bytes_ += std::min(kSharedBytes + 2 * around, end + around - end_);
    end_ = end + around;
  }
  Index bytes() const { return bytes_; }

 private:
  Index bytes_ = 0, end_ = 0;
};

/// Calls f(end, hash) in order for each string of kSharedBytes bytes whose hash `select` accepts; a
/// string ends before byte `end`. The hashes are cyclic polynomials (Cohen 1997, "Recursive hashing
/// functions for n-grams"). Selected hashes are collected without a branch, because it would often
/// be mispredicted.
template <class Select, class F>
void for_each_string(std::string_view text, Select&& select, F&& f) {
  constexpr std::size_t kLength = kSharedBytes, kMost = 512;
  if (text.size() < kLength) return;
  std::array<std::uint64_t, kMost> hashes;
  std::array<std::size_t, kMost> selected;
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i + 1 < kLength; ++i) hash = std::rotl(hash, 1) ^ entering(text[i]);
  for (std::size_t at = kLength - 1; at < text.size();) {
    const std::size_t first = at, end = std::min(text.size(), at + kMost);
    if (at < kLength) hashes[0] = hash = std::rotl(hash, 1) ^ entering(text[at++]);
    for (; at < end; ++at) {
      hash = std::rotl(hash, 1) ^ entering(text[at]) ^ leaving(text[at - kLength]);
      hashes[at - first] = hash;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < end - first; ++i) {
      selected[count] = i;
      count += static_cast<std::size_t>(select(hashes[i]));
    }
    for (std::size_t n = 0; n < count; ++n)
      f(static_cast<Index>(first + selected[n]) + 1, hashes[selected[n]]);
  }
}

/// Calls f(n, visit) in order for each document i = documents[n]; visit(g) calls g(end, hash) as
/// for_each_string() does. Strings are hashed in parallel, except in documents of kTogether bytes.
template <class Select, class F>
void for_each_document(std::span<const std::size_t> documents, const ReadDocument& read,
                       const Select& select, F&& f) {
  constexpr std::size_t kTogether = std::size_t{1} << 20;
  struct String {
    Index end;
    std::uint64_t hash;
  };
  std::vector<std::string_view> texts;
  for (std::size_t first = 0; first < documents.size(); first += texts.size()) {
    texts.clear();
    for (std::size_t bytes = 0; bytes < kTogether && first + texts.size() < documents.size();) {
      texts.push_back(read(documents[first + texts.size()]));
      bytes += texts.back().size();
    }
    std::vector<std::vector<String>> strings(texts.size());  // freed with the batch
    std::vector<std::exception_ptr> errors(texts.size());
    parallel_for(std::ssize(texts), [&](Index n) {
      if (texts[n].size() >= kTogether) return;
      try {
        for_each_string(texts[n], select, [&](Index end, std::uint64_t hash) {
          strings[n].push_back({end, hash});
        });
      } catch (...) {
        errors[n] = std::current_exception();
      }
    });
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
    for (std::size_t n = 0; n < texts.size(); ++n) {
      f(first + n, [&](auto&& g) {
        if (texts[n].size() >= kTogether) for_each_string(texts[n], select, g);
        for (const auto& [end, hash] : strings[n]) g(end, hash);
      });
    }
  }
}

/// Predicate that selects one hash in 2^n.
class Sampled {
 public:
  /// Chooses the smallest n >= `least` for which the hashes of `bytes` strings fit into memory.
  Sampled(Index bytes, int least) : n_(least) {
    constexpr Index kMostHashes = Index{1} << 28;
    while (bytes >> n_ > kMostHashes) ++n_;
    // 25 % above the expected number; only adversarial text exceeds it.
    hashes_ = (bytes >> n_) + (n_ > 0 ? bytes >> n_ >> 2 : 0) + 1024;
  }
  bool operator()(std::uint64_t hash) const {
    return (hash >> 40 & ((std::uint64_t{1} << n_) - 1)) == 0;
  }
  Index hashes() const { return hashes_; }
  /// Returns the mean number of unsampled shared strings before the first and after the last sample
  /// of a shared passage.
  Index around() const { return (Index{1} << n_) - 1; }

 private:
  int n_;
  Index hashes_;
};

Index total_bytes(std::span<const DocumentFacts> documents) {
  Index total = 0;
  for (const DocumentFacts& each : documents) total += each.bytes;
  return total;
}

/// Returns document indices sorted by a key.
template <class Key>
std::vector<std::size_t> sorted_by(std::span<const DocumentFacts> documents, Key&& key) {
  std::vector<std::size_t> order(documents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return key(documents[i]); });
  return order;
}

}  // namespace

std::vector<bool> find_near_duplicates(std::span<const DocumentFacts> documents, double fraction,
                                       int sampling, const ReadDocument& read) {
  const Sampled sampled(total_bytes(documents), sampling);
  HashSet kept(sampled.hashes());
  std::vector<std::uint64_t> fresh;
  std::vector<bool> drop(documents.size());
  const DocumentFacts* before = nullptr;
  const std::vector<std::size_t> order = sorted_by(documents, [](const DocumentFacts& document) {
    return std::pair(-document.bytes, std::string_view(document.digest));
  });
  for_each_document(order, read, sampled, [&](std::size_t n, const auto& visit) {
    const std::size_t i = order[n];
    const DocumentFacts& document = documents[i];
    const bool again = before && before->digest == document.digest;
    before = &document;
    Covered covered;
    fresh.clear();
    if (!again) {
      visit([&](Index end, std::uint64_t hash) {
        if (kept.contains(hash))
          covered.add(end, sampled.around());
        else
          fresh.push_back(hash);
      });
    }
    drop[i] = (again && document.bytes > 0) ||
              static_cast<double>(covered.bytes()) > fraction * static_cast<double>(document.bytes);
    if (drop[i]) return;
    for (const std::uint64_t hash : fresh) kept.insert(hash);
  });
  return drop;
}

std::vector<bool> choose_held_out(std::span<const DocumentFacts> documents, double fraction) {
  std::vector<bool> held_out(documents.size());
  double missing = fraction * static_cast<double>(total_bytes(documents));
  for (const std::size_t i : sorted_by(
           documents, [](const DocumentFacts& each) { return std::string_view(each.digest); })) {
    const auto bytes = static_cast<double>(documents[i].bytes);
    held_out[i] = std::abs(missing - bytes) < std::abs(missing);
    if (held_out[i]) missing -= bytes;
  }
  return held_out;
}

std::vector<Index> count_shared_bytes(std::span<const std::size_t> train,
                                      std::span<const std::size_t> held_out,
                                      const ReadDocument& read) {
  Index bytes = 0;
  for (const std::size_t i : held_out) bytes += std::ssize(read(i));
  const Sampled sampled(bytes, 0);
  HashSet strings(sampled.hashes());
  for_each_document(held_out, read, sampled, [&](std::size_t, const auto& visit) {
    visit([&](Index, std::uint64_t hash) { strings.insert(hash); });
  });
  std::vector<bool> trains(strings.places());
  const auto maybe = [&](std::uint64_t hash) { return strings.maybe(hash); };
  for_each_document(train, read, maybe, [&](std::size_t, const auto& visit) {
    visit([&](Index, std::uint64_t hash) { trains[strings.place(hash)] = true; });
  });
  std::vector<Index> shared;
  for_each_document(held_out, read, sampled, [&](std::size_t, const auto& visit) {
    Covered covered;
    visit([&](Index end, std::uint64_t hash) {
      if (trains[strings.place(hash)]) covered.add(end, sampled.around());
    });
    shared.push_back(covered.bytes());
  });
  return shared;
}

std::vector<bool> choose_overlapping(std::span<const Overlap> held_out, double most) {
  std::vector<std::size_t> order(held_out.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    const auto bytes = static_cast<double>(std::max<Index>(held_out[i].bytes, 1));
    return static_cast<double>(held_out[i].shared) / bytes;
  });
  Overlap left;
  for (const Overlap& each : held_out) left = {left.bytes + each.bytes, left.shared + each.shared};
  std::vector<bool> drop(held_out.size());
  for (const std::size_t i : order) {
    if (static_cast<double>(left.shared) <= most * static_cast<double>(left.bytes)) break;
    drop[i] = true;
    left = {left.bytes - held_out[i].bytes, left.shared - held_out[i].shared};
  }
  return drop;
}

}  // namespace difftape::run
