#include "layers/attention/key_values.h"

namespace difftape {

namespace {

HeadMapping mapping_of(const AttentionFields& fields, const ModelConfig& config) {
  const Index heads = config.num_heads, kv_heads = kv_heads_of(config);
  switch (fields.mapping) {
    case MappingKind::paired:
      return HeadMapping::paired(heads, kv_heads);
    case MappingKind::doubled:
      return HeadMapping::doubled(heads, kv_heads, fields.pairing == Pairing::split_half);
    case MappingKind::standard:
      break;
  }
  return HeadMapping::standard(fields.query_multiple * heads, kv_heads);
}

Module shared_module(ParameterSet& parameters, Component component) {
  return {parameters, "model.shared_kv", {component}};
}

}  // namespace

HeadSizes head_sizes(const ModelConfig& config) {
  const AttentionFields fields = fields_of(config.attention);
  const Index head_dim = head_dim_of(config);
  return {mapping_of(fields, config), head_dim,
          fields.mapping == MappingKind::paired ? 2 * head_dim : head_dim};
}

HeadProjection::HeadProjection(const AttentionArgs& args, const char* suffix, Index heads,
                               Index width, std::shared_ptr<const RopeTable> rope)
    : linear_(args.module / suffix, args.config.d_model, heads * width,
              init_rule(args.config).projection(args.config.d_model)),
      heads_(heads),
      width_(width),
      rope_(std::move(rope)) {}

void HeadProjection::add_norm(const AttentionArgs& args, const char* suffix) {
  norm_.emplace(args.module / suffix, width_, args.config.norm_eps);
}

Var HeadProjection::operator()(const Var& x, Index position) const {
  Var y = reshape(linear_(x), {x.shape()[0], x.shape()[1], heads_, width_});
  if (norm_) y = (*norm_)(y);
  return rope_ ? rope(std::move(y), rope_, position) : y;
}

KeyValueProjection::KeyValueProjection(const AttentionArgs& args, const HeadSizes& sizes,
                                       std::shared_ptr<const RopeTable> rope)
    : k(args, "k_proj", sizes.mapping.key_heads, sizes.head_dim, std::move(rope)),
      v(args, "v_proj", sizes.mapping.value_heads, sizes.value_dim, nullptr) {}

KeyValues KeyValueProjection::operator()(const Var& x, KvCache* cache) const {
  const Index position = cache ? cache->length() : 0;
  const Var keys = k(x, position), values = v(x, position);
  if (cache) cache->append(keys.value(), values.value());
  return {keys, values};
}

SharedKeyValues::SharedKeyValues(ParameterSet& parameters, const ModelConfig& config,
                                 std::shared_ptr<const RopeTable> rope)
    : norm_(shared_module(parameters, Component::norms) / "norm", config.d_model, config.norm_eps),
      projection_({shared_module(parameters, Component::attention), config}, head_sizes(config),
                  std::move(rope)) {
  if (config.attention.qk_norm) {
    projection_.k.add_norm({shared_module(parameters, Component::attention), config}, "k_norm");
  }
}

KeyValues SharedKeyValues::operator()(const Var& x, KvCache* cache) const {
  return projection_(norm_(x), cache);
}

}  // namespace difftape
