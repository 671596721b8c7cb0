#include "train/run/exchange/hf_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace difftape::run {

namespace {

/// The heads of a projection and how wide each is.
struct Heads {
  Index count, width;
};

/// 0, 2, 4, ..., 1, 3, 5, ... below an even count.
Index even_first(Index i, Index count) { return i < count / 2 ? 2 * i : 2 * (i - count / 2) + 1; }

/// The rows of heads that are reordered, or whose features are, or both.
std::vector<Index> rows_of(Heads heads, bool reorder_heads, bool reorder_features) {
  std::vector<Index> rows;
  for (Index i = 0; i < heads.count; ++i) {
    const Index head = reorder_heads ? even_first(i, heads.count) : i;
    for (Index j = 0; j < heads.width; ++j) {
      const Index feature = reorder_features ? even_first(j, heads.width) : j;
      rows.push_back(head * heads.width + feature);
    }
  }
  return rows;
}

}  // namespace

std::vector<Index> hf_rows(const std::string& parameter, const ModelConfig& model) {
  const AttentionFields fields = fields_of(model.attention);
  const bool paired = fields.mapping == MappingKind::paired;
  const bool doubled = fields.mapping == MappingKind::doubled;
  const Index width = head_dim_of(model);
  const Index queries = (doubled ? 2 : fields.query_multiple) * model.num_heads;
  if (parameter.ends_with(".q_proj.weight")) return rows_of({queries, width}, paired, model.rope);
  const Heads keys{kv_heads_of(model), width};
  if (parameter.ends_with(".k_proj.weight")) return rows_of(keys, paired, model.rope);
  if (parameter.ends_with(".v_proj.weight")) return rows_of(keys, paired, false);
  return {};
}

Tensor reordered(const Tensor& x, const std::vector<Index>& rows, bool back) {
  if (rows.empty()) return x;
  Tensor y = Tensor::like(x);
  for (Index i = 0; const Index row : rows) {
    std::copy_n(x.row(back ? i : row), x.shape().last(), y.row(back ? row : i));
    ++i;
  }
  return y;
}

bool folds_subln(const ModelConfig& model) { return fields_of(model.attention).subln; }

Tensor with_subln(const Tensor& o_proj, const Tensor& subln) {
  Tensor y = Tensor::like(o_proj);
  const Index columns = o_proj.shape().last(), width = subln.size();
  for (Index i = 0; i < o_proj.size(); ++i)
    y.data()[i] = o_proj.data()[i] * subln.data()[i % columns % width];
  return y;
}

bool is_product(const Tensor& folded, const Tensor& o_proj, const Tensor& subln,
                std::string_view dtype) {
  const Tensor product = with_subln(o_proj, subln);
  // A product of two floats is exact in double, and rounds to what it is in float.
  const auto stored = [is_f32 = dtype == "F32"](real x) {
    return is_f32 ? static_cast<real>(static_cast<float>(x)) : x;
  };
  return std::ranges::equal(folded.values(), product.values(), [&](real is, real x) {
    return is == stored(x) || (std::isnan(is) && std::isnan(x));
  });
}

std::string o_proj_name(Index layer) {
  return fmt::format("model.layers.{}.self_attn.o_proj.weight", layer);
}

std::string subln_name(Index layer) {
  return fmt::format("model.layers.{}.self_attn{}", layer, kSublnSuffix);
}

}  // namespace difftape::run
