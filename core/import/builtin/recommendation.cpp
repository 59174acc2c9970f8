// SPDX-License-Identifier: Apache-2.0
// Neural collaborative filtering (He et al. 2017, arXiv 1708.05031) with the sizes of MLPerf's ml-20m benchmark.
#include <fmt/format.h>

#include "core/import/builtin/networks.h"
#include "core/model/builder.h"

namespace turnpoint {

Expected<ModelPtr> build_ncf(const NetworkParameters& p) {
  constexpr std::int64_t kUsers = 138493, kItems = 26744;
  if (p.width % 2 != 0 || (p.layers > 1 && (p.layers > 40 || (p.width >> (p.layers - 1)) < 1)))
    return usage_error(fmt::format("width {} cannot be halved {} times", p.width, p.layers), p.source);
  ModelBuilder b(p.name, p.source, p.batch, 0);
  if (p.sequence != 0)
    b.warn(fmt::format("sequence {} has no effect: the model has no sequence dimension", p.sequence));
  b.set_scope("embed");
  const TensorId users = b.input("users", {p.batch}, {DimName::batch}, ElementType::i64);
  const TensorId items = b.input("items", {p.batch}, {DimName::batch}, ElementType::i64);
  const auto look_up = [&](const std::string& name, TensorId indices, std::int64_t rows, std::int64_t channels) {
    const TensorId table = b.parameter(name + ".weight", {rows, channels}, {DimName::vocabulary, DimName::channel});
    return b.embedding(name, table, indices);
  };
  const TensorId factors[] = {look_up("embed/user_factors", users, kUsers, p.hidden),
                              look_up("embed/item_factors", items, kItems, p.hidden)};
  const TensorId features[] = {look_up("embed/user_features", users, kUsers, p.width / 2),
                               look_up("embed/item_features", items, kItems, p.width / 2)};
  b.set_scope("factors");
  const TensorId product =
      b.elementwise("factors/mul", "Mul", factors, {.flop_per_element = 1, .saves_input = {true, true}});
  b.set_scope("mlp");
  TensorId x = b.concat("mlp/concat", features, 1);
  std::int64_t in = p.width;
  const auto linear = [&](const std::string& name, TensorId y, std::int64_t from, std::int64_t to) {
    const TensorId w = b.parameter(name + ".weight", {from, to}, {DimName::in_channel, DimName::out_channel});
    const TensorId bias = b.parameter(name + ".bias", {to}, {DimName::out_channel});
    return b.linear(name, y, w, bias, false, DimName::channel);
  };
  for (std::int64_t i = 0; i < p.layers; ++i) {
    const std::int64_t out = p.width >> i;  // the first keeps the width, every further one halves it
    const TensorId operands[] = {linear(fmt::format("mlp/fc{}", i + 1), x, in, out)};
    x = b.elementwise(fmt::format("mlp/relu{}", i + 1), "Relu", operands,
                      {.flop_per_element = 1, .saves_output = true});
    in = out;
  }
  b.set_scope("head");
  const TensorId both[] = {product, x};
  const TensorId score = linear("head/score", b.concat("head/concat", both, 1), p.hidden + in, 1);
  const TensorId labels = b.input("labels", {p.batch}, {DimName::batch}, ElementType::i64);
  return b.finish({b.cross_entropy("head/loss", score, labels)});
}

}  // namespace turnpoint
