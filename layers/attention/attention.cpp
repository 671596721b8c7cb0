#include "layers/attention/attention.h"

#include <fmt/ranges.h>

#include <map>

#include "core/error.h"
#include "layers/init.h"

namespace difftape {

namespace {

struct Kind {
  AttentionParts (*parts)(const AttentionPlace&);
  bool pairs_heads = false;
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> table{
      {"diff_v1", {diff_v1_attention, true}},
      {"diff_v2", {diff_v2_attention}},
      {"softmax", {softmax_attention}},
  };
  return table;
}

const Kind& kind_named(const std::string& name) {
  const auto kind = kinds().find(name);
  if (kind == kinds().end()) {
    throw ConfigError(fmt::format("model.attention.kind: '{}' is not one of {}", name,
                                  fmt::join(attention_kinds(), ", ")));
  }
  return kind->second;
}

Linear projection(const AttentionPlace& place, const char* suffix, Index in, Index out,
                  double std = kProjectionStd) {
  return Linear(place.parameters, place.name + suffix, in, out, std);
}

/// (B, T, heads * width) -> (B, T, heads, width)
Var split_heads(const Var& x, Index heads, Index width) {
  return reshape(x, {x.shape()[0], x.shape()[1], heads, width});
}

}  // namespace

Index AttentionPlace::head_dim() const { return head_dim_of(config); }
Index AttentionPlace::kv_heads() const { return kv_heads_of(config); }

std::vector<std::string> attention_kinds() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds()) names.push_back(name);
  return names;
}

bool attention_pairs_heads(const std::string& kind) { return kind_named(kind).pairs_heads; }

Attention::Attention(const AttentionPlace& place, std::shared_ptr<const RopeTable> rope)
    : name_(place.name),
      head_dim_(place.head_dim()),
      parts_(kind_named(place.config.attention.kind).parts(place)),
      q_proj_(projection(place, ".q_proj", place.config.d_model,
                         parts_.layout.query_heads * head_dim_)),
      k_proj_(
          projection(place, ".k_proj", place.config.d_model, parts_.layout.key_heads * head_dim_)),
      v_proj_(projection(place, ".v_proj", place.config.d_model,
                         parts_.layout.value_heads * parts_.value_dim)),
      o_proj_(projection(place, ".o_proj",
                         static_cast<Index>(parts_.layout.routes.size()) * parts_.value_dim,
                         place.config.d_model, residual_std(place.config.num_layers))),
      rope_(std::move(rope)) {}

Var Attention::operator()(const Var& x) const {
  const ErrorScope scope(name_);
  const HeadLayout& layout = parts_.layout;
  const Var q = difftape::rope(split_heads(q_proj_(x), layout.query_heads, head_dim_), rope_);
  const Var k = difftape::rope(split_heads(k_proj_(x), layout.key_heads, head_dim_), rope_);
  const Var v = split_heads(v_proj_(x), layout.value_heads, parts_.value_dim);
  Var context = parts_.lambda ? attention(q, k, v, (*parts_.lambda)(x), layout)
                              : attention(q, k, v, layout);  // (B, T, output heads, value_dim)
  if (parts_.head_norm) {
    context = affine(parts_.head_norm->norm(context), parts_.head_norm->factor, 0);
  }
  const Shape& s = context.shape();
  return o_proj_(reshape(context, {s[0], s[1], s[2] * s[3]}));
}

}  // namespace difftape
