#pragma once
// A metric in the rows of a table.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace difftape::run {

/// What each row logged of a metric. Memory follows from the rows that logged it: in a million
/// steps most metrics are measured seldom.
template <class T>
class Column {
 public:
  Column() = default;
  /// Of the rows from the first on.
  Column(std::vector<T> values) : values_(std::move(values)) {}
  Column(std::initializer_list<T> values) : values_(values) {}

  /// Fast for a row behind all others.
  void set(std::size_t row, T value) {
    const std::size_t at = position(row);
    if (is_at(at, row)) {
      values_[at] = std::move(value);
      return;
    }
    const bool gaps = !rows_.empty() || row != values_.size();
    if (gaps && rows_.empty()) {
      rows_.resize(values_.size());
      std::iota(rows_.begin(), rows_.end(), 0U);
    }
    const auto offset = static_cast<std::ptrdiff_t>(at);
    if (gaps) rows_.insert(rows_.begin() + offset, static_cast<std::uint32_t>(row));
    values_.insert(values_.begin() + offset, std::move(value));
  }

  /// NaN or an empty list where a row logged nothing.
  const T& operator[](std::size_t row) const {
    static const T nothing = [] {
      if constexpr (std::floating_point<T>) return std::numeric_limits<T>::quiet_NaN();
      return T();
    }();
    const std::size_t at = position(row);
    return is_at(at, row) ? values_[at] : nothing;
  }

  /// What was logged, by row, and the row of each.
  const std::vector<T>& values() const { return values_; }
  std::size_t row(std::size_t i) const { return rows_.empty() ? i : rows_[i]; }

 private:
  /// Of the first value whose row is not before this one.
  std::size_t position(std::size_t row) const {
    if (rows_.empty()) return std::min(row, values_.size());
    return static_cast<std::size_t>(std::ranges::lower_bound(rows_, row) - rows_.begin());
  }
  bool is_at(std::size_t at, std::size_t row) const {
    return at < values_.size() && this->row(at) == row;
  }

  std::vector<T> values_;
  std::vector<std::uint32_t> rows_;  ///< of the values; empty: they are of the rows from 0 on
};

}  // namespace difftape::run
