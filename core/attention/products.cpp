#include "core/attention/products.h"

#include "core/bf16.h"
#include "core/pack.h"

namespace difftape::attention {

namespace {

constexpr Index kWords = kBlockRows / 2;  // of a key in RoundedTile

std::uint32_t* as_words(real* memory) { return reinterpret_cast<std::uint32_t*>(memory); }
const std::uint32_t* as_words(const real* memory) {
  return reinterpret_cast<const std::uint32_t*>(memory);
}

Index columns_of(const Block& block, const Tile& tile) {
  return round_up_to_width(block.rows - tile.query);
}

}  // namespace

HeadOperand HeadOperand::transposable() const {
  HeadOperand result = *this;
  if (rounded_.allocated()) result.pairs_ = rounded_.pairs();
  return result;
}

HeadRows HeadOperand::rows_of(Index b, Index head) const {
  if (!rounded_.allocated()) {
    const Head rows = head_of(plain_, b, head);
    return {.width = plain_.shape().last(), .data = rows.data, .stride = rows.stride};
  }
  const Shape& s = rounded_.shape();
  const Index width = s.last(), pairs = ceil_div(s[1], 2);
  return {.width = width,
          .words = reinterpret_cast<const std::uint32_t*>(rounded_.row(b, head, 0)),
          .pairs = pairs_ ? pairs_.get() + (b * s[2] + head) * pairs * width : nullptr};
}

void pack_queries(const HeadRows& from, const Block& block, double scale, const QueryRows& to) {
  if (from.words == nullptr) {
    const real* first = from.data + block.begin * from.stride;
    pack_panel({first, block.rows, from.width, from.stride}, scale, to.panel);
    for (Index i = 0; to.rows != nullptr && i < block.rows; ++i)
      std::copy_n(first + i * from.stride, from.width, to.rows + i * from.width);
    return;
  }
  const Index words = from.words_per_row();
  const std::uint32_t* first = from.words + block.begin * words;
  std::uint32_t* panel = as_words(to.panel);
  pack::transpose_words(first, words, block.rows, words, panel, kBlockRows);
  for (Index i = 0; i < words; ++i)
    std::fill(panel + i * kBlockRows + block.rows, panel + (i + 1) * kBlockRows, 0u);
  for (Index i = 0; to.rows != nullptr && i < block.rows; i += 2) {
    const auto* even = reinterpret_cast<const std::uint16_t*>(first + i * words);
    join_bf16(even, i + 1 < block.rows ? even + 2 * words : nullptr, from.width,
              as_words(to.rows) + i / 2 * from.width);
  }
}

void multiply_panel(Pairs pairs, const HeadRows& keys, const real* panel, double scale,
                    const Block& block, const Tile& tile, real* scores) {
  const Index columns = columns_of(block, tile);
  if (pairs == nullptr) {
    tile_gemm({keys.data + tile.position * keys.stride, tile.keys, keys.width, keys.stride},
              panel + tile.query, kBlockRows, columns, scores, kBlockRows, Accumulate::no);
    return;
  }
  const Index words = keys.words_per_row();
  pairs->multiply({.a = keys.words + tile.position * words,
                   .b = as_words(panel) + tile.query,
                   .c = scores,
                   .m = tile.keys,
                   .n = columns,
                   .k = words,
                   .a_row = words,
                   .a_inner = 1,
                   .b_stride = kBlockRows,
                   .c_stride = kBlockRows,
                   .add = false,
                   .factor = static_cast<real>(scale)});
}

Weights weights_of(Pairs pairs, const Block& block, const Tile& tile, const real* values, For use,
                   RoundedTile& memory) {
  if (pairs == nullptr) return {values};
  static constexpr std::array<real, kBlockRows> kNothing{};
  const Index columns = columns_of(block, tile);
  auto* rows = use == For::weights ? nullptr : reinterpret_cast<std::uint16_t*>(memory.rows.data());
  std::uint32_t* joined = use == For::rows ? nullptr : memory.pairs.data();
  for (Index key = 0; key < tile.keys; key += 2) {
    const real* first = values + key * kBlockRows;
    const real* second = key + 1 < tile.keys ? first + kBlockRows : kNothing.data();
    pairs->round(first, second, columns, joined, rows, rows ? rows + kBlockRows : nullptr);
    if (joined) joined += kBlockRows;
    if (rows) rows += 2 * kBlockRows;
  }
  return {values, memory.rows.data(), memory.pairs.data()};
}

void multiply_weights(Pairs pairs, const HeadRows& head, const Weights& weights, const Block& block,
                      const Tile& tile, real* panel, Accumulate accumulate) {
  const Index columns = columns_of(block, tile);
  const Accumulate how = tile.first ? accumulate : Accumulate::yes;
  if (pairs == nullptr) {
    tile_gemm({head.data + tile.position * head.stride, head.width, tile.keys, head.stride, true},
              weights.values, kBlockRows, columns, panel + tile.query, kBlockRows, how);
    return;
  }
  pairs->multiply({.a = head.pairs + tile.position / 2 * head.width,
                   .b = weights.pairs,
                   .c = panel + tile.query,
                   .m = head.width,
                   .n = columns,
                   .k = ceil_div(tile.keys, 2),
                   .a_row = 1,
                   .a_inner = head.width,
                   .b_stride = kBlockRows,
                   .c_stride = kBlockRows,
                   .add = how == Accumulate::yes});
}

void multiply_rows(Pairs pairs, const Weights& weights, const Block& block, const Tile& tile,
                   const real* rows, Index width, real* c, Index c_stride, Accumulate accumulate) {
  const Index queries = block.rows - tile.query;
  if (pairs == nullptr) {
    tile_gemm({weights.values, tile.keys, queries, kBlockRows}, rows + tile.query * width, width,
              width, c, c_stride, accumulate);
    return;
  }
  pairs->multiply({.a = weights.rows,
                   .b = as_words(rows) + tile.query / 2 * width,
                   .c = c,
                   .m = tile.keys,
                   .n = width,
                   .k = ceil_div(queries, 2),
                   .a_row = kWords,
                   .a_inner = 1,
                   .b_stride = width,
                   .c_stride = c_stride,
                   .add = accumulate == Accumulate::yes});
}

}  // namespace difftape::attention
