// Table lookup.
//   forward   y[i] = table[token[i]]
//   backward  dtable[token[i]] += dy[i]      in the order of i
//   saves     the tokens
//   fails     a token is not in [0, V)
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

Var embedding(std::span<const std::int32_t> tokens, const Shape& shape, const Var& table) {
  const Shape& st = table.shape();
  require_shape(
      st.rank() == 2 && shape.size() == std::ssize(tokens) && shape.rank() < Shape::kMaxRank,
      "embedding", "table is {}, {} tokens for {}; need (V, C) and as many tokens", st.str(),
      tokens.size(), shape.str());
  const Index vocab = st[0], width = st[1];
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab) {
      throw DataError(
          fmt::format("embedding: token {} at position {} is not in [0, {})", tokens[i], i, vocab));
    }
  }
  std::vector<Index> extents(shape.begin(), shape.end());
  extents.push_back(width);
  Tensor y = Tensor::empty(Shape(std::span<const Index>(extents)));
  parallel_ranges(std::ssize(tokens), row_grain(width), [&](Index begin, Index rows) {
    for (Index i = begin; i < begin + rows; ++i) {
      std::copy_n(table.value().row(tokens[i]), width, y.row(i));
    }
  });
  return record("embedding", y, {table},
                [ids = std::vector<std::int32_t>(tokens.begin(), tokens.end()), width,
                 dtable = table.gradient()](const Tensor& dy) {
                  Tensor out = dtable.grad();
                  // One owner per range of columns visits the tokens in order.
                  parallel_ranges(width, 64, [&](Index column, Index columns) {
                    for (size_t i = 0; i < ids.size(); ++i) {
                      Row(out.row(ids[i]) + column, columns) +=
                          ConstRow(dy.row(i) + column, columns);
                    }
                  });
                });
}

}  // namespace difftape
