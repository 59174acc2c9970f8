// SPDX-License-Identifier: Apache-2.0
// Networks of searched cells: NASNet-A (Zoph et al. 2017, arXiv 1707.07012, figure 4) and PNASNet-5 (Liu et al. 2017,
// arXiv 1712.00559, figure 1). Every cell reads the outputs of the two cells before it.
#include <fmt/format.h>
#include <utility>

#include "core/import/builtin/networks.h"
#include "core/import/builtin/vision_network.h"

namespace turnpoint {

namespace {

class CellNetwork {
 public:
  explicit CellNetwork(const NetworkParameters& p) : net(p, 3, 331) {
    net.scope("stem");
    net.convolution("conv", 96, 3, 2, 0, false);
    net.batch_norm("norm");
  }

  TensorId relu_conv_norm(const std::string& name, TensorId x, std::int64_t out, std::int64_t stride = 1) {
    net.set_x(x);
    net.relu(name + "_relu");
    net.convolution(name, out, 1, stride, 0, false);
    net.batch_norm(name + "_norm");
    return net.x();
  }
  /// Twice relu, depthwise convolution, pointwise convolution, norm; between the two, `middle` channels.
  TensorId separable(const std::string& name, TensorId x, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                     std::int64_t middle) {
    net.set_x(x);
    for (int i = 1; i <= 2; ++i) {
      const std::string part = fmt::format("{}_{}", name, i);
      net.relu(part + "_relu");
      net.depthwise(part + "_depth", kernel, i == 1 ? stride : 1);
      net.convolution(part + "_point", i == 1 ? middle : out, 1, 1, 0, false);
      net.batch_norm(part + "_norm");
    }
    return net.x();
  }
  TensorId pool(const std::string& name, const char* detail, TensorId x, std::int64_t stride) {
    net.set_x(x);
    net.pool(name, detail, 3, stride, 1);
    return net.x();
  }
  TensorId add(const std::string& name, TensorId x, TensorId y) {
    net.set_x(x);
    net.add(name, y);
    return net.x();
  }
  /// Half the side: two convolutions of every other position, one shifted, joined.
  TensorId halve(const std::string& name, TensorId x, std::int64_t out) {
    net.set_x(x);
    net.relu(name + "_relu");
    const TensorId active = net.x();
    std::vector<TensorId> parts;
    for (int i = 1; i <= 2; ++i) {
      net.set_x(active);
      net.pool(fmt::format("{}_pick{}", name, i), "AveragePool", 1, 2);
      net.convolution(fmt::format("{}_conv{}", name, i), i == 1 ? out / 2 : out - out / 2, 1, 1, 0, false);
      parts.push_back(net.x());
    }
    net.concat(name + "_concat", parts);
    net.batch_norm(name + "_norm");
    return net.x();
  }
  std::int64_t channels(TensorId x) {
    net.set_x(x);
    return net.channels();
  }
  std::int64_t side(TensorId x) {
    net.set_x(x);
    return net.side();
  }
  Expected<ModelPtr> finish() {
    net.scope("classifier");
    net.relu("relu");
    net.global_pool();
    net.flatten();
    net.linear("fc", 1000);
    return net.finish();
  }

  VisionNetwork net;
  int cells = 0;
};

/// The older cell's output in the size of the newer one's, with `filters` channels.
TensorId nasnet_adjust(CellNetwork& c, TensorId older, TensorId newer, std::int64_t filters) {
  if (older == newer) return older;  // the very first cell reads the stem twice
  if (c.side(older) != c.side(newer)) return c.halve("adjust", older, filters);
  return c.channels(older) == filters ? older : c.relu_conv_norm("adjust", older, filters);
}

TensorId nasnet_normal(CellNetwork& c, TensorId newer, TensorId older, std::int64_t filters) {
  c.net.scope(fmt::format("cell{}", c.cells++));
  const TensorId p = nasnet_adjust(c, older, newer, filters), h = c.relu_conv_norm("enter", newer, filters);
  const auto separable = [&](const char* name, TensorId x, std::int64_t kernel) {
    return c.separable(name, x, filters, kernel, 1, filters);
  };
  const TensorId one = c.add("add1", separable("left1", h, 5), separable("right1", p, 3));
  const TensorId two = c.add("add2", separable("left2", p, 5), separable("right2", p, 3));
  const TensorId three = c.add("add3", c.pool("left3", "AveragePool", h, 1), p);
  const TensorId four = c.add("add4", c.pool("left4", "AveragePool", p, 1), c.pool("right4", "AveragePool", p, 1));
  const TensorId five = c.add("add5", separable("left5", h, 3), h);
  c.net.concat("concat", {p, one, two, three, four, five});
  return c.net.x();
}

TensorId nasnet_reduction(CellNetwork& c, TensorId newer, TensorId older, std::int64_t filters) {
  c.net.scope(fmt::format("cell{}", c.cells++));
  const TensorId p = nasnet_adjust(c, older, newer, filters), h = c.relu_conv_norm("enter", newer, filters);
  const auto separable = [&](const char* name, TensorId x, std::int64_t kernel, std::int64_t stride) {
    return c.separable(name, x, filters, kernel, stride, filters);
  };
  const TensorId one = c.add("add1", separable("left1", h, 5, 2), separable("right1", p, 7, 2));
  const TensorId two = c.add("add2", c.pool("left2", "MaxPool", h, 2), separable("right2", p, 7, 2));
  const TensorId three = c.add("add3", c.pool("left3", "AveragePool", h, 2), separable("right3", p, 5, 2));
  const TensorId four = c.add("add4", c.pool("left4", "AveragePool", one, 1), two);
  const TensorId five = c.add("add5", separable("left5", one, 3, 1), c.pool("right5", "MaxPool", h, 2));
  c.net.concat("concat", {two, three, four, five});
  return c.net.x();
}

/// `stem`: the first cell of all, whose left branches bring the stem's channels down by themselves.
TensorId pnasnet_cell(CellNetwork& c, TensorId newer, TensorId older, std::int64_t filters, bool reduce, bool stem) {
  c.net.scope(fmt::format("cell{}", c.cells++));
  const std::int64_t stride = reduce ? 2 : 1;
  const TensorId right = c.relu_conv_norm("enter", newer, filters);
  const TensorId left = stem                             ? newer
                        : c.side(older) != c.side(newer) ? c.halve("adjust", older, filters)
                                                         : c.relu_conv_norm("adjust", older, filters);
  const auto separable = [&](const char* name, TensorId x, std::int64_t kernel, std::int64_t s) {
    return c.separable(name, x, filters, kernel, s, filters);
  };
  TensorId pooled = c.pool("right1", "MaxPool", left, stride);
  if (stem) {
    c.net.set_x(pooled);
    c.net.convolution("right1_conv", filters, 1, 1, 0, false);
    c.net.batch_norm("right1_norm");
    pooled = c.net.x();
  }
  const TensorId one = c.add("add1", separable("left1", left, 5, stride), pooled);
  const TensorId two = c.add("add2", separable("left2", right, 7, stride), c.pool("right2", "MaxPool", right, stride));
  const TensorId three = c.add("add3", separable("left3", right, 5, stride), separable("right3", right, 3, stride));
  const TensorId four = c.add("add4", separable("left4", three, 3, 1), c.pool("right4", "MaxPool", right, stride));
  const TensorId kept = reduce ? c.relu_conv_norm("right5", right, filters, 2) : right;
  const TensorId five = c.add("add5", separable("left5", left, 3, stride), kept);
  c.net.concat("concat", {one, two, three, four, five});
  return c.net.x();
}

Expected<std::int64_t> cells_per_stage(const NetworkParameters& p) {
  if (p.layers % 3 != 0) return usage_error(fmt::format("layers must be a multiple of 3, not {}", p.layers), p.source);
  if (p.width % 4 != 0) return usage_error(fmt::format("width must be a multiple of 4, not {}", p.width), p.source);
  return p.layers / 3;
}

}  // namespace

Expected<ModelPtr> build_nasnet(const NetworkParameters& p) {
  const auto per_stage = cells_per_stage(p);
  if (!per_stage) return per_stage.error();
  CellNetwork c(p);
  TensorId older = c.net.x(), newer = older;
  for (const std::int64_t filters : {p.width / 4, p.width / 2})
    older = std::exchange(newer, nasnet_reduction(c, newer, older, filters));
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t filters = p.width << stage;
    // The cell after a reduction reads, beside its result, what the reduction's own older input was.
    if (stage > 0) newer = nasnet_reduction(c, newer, older, filters);
    for (std::int64_t i = 0; i < *per_stage; ++i) older = std::exchange(newer, nasnet_normal(c, newer, older, filters));
  }
  c.net.set_x(newer);
  return c.finish();
}

Expected<ModelPtr> build_pnasnet(const NetworkParameters& p) {
  const auto per_stage = cells_per_stage(p);
  if (!per_stage) return per_stage.error();
  CellNetwork c(p);
  TensorId older = c.net.x(), newer = older;
  for (const std::int64_t filters : {p.width / 4, p.width / 2})
    older = std::exchange(newer, pnasnet_cell(c, newer, older, filters, true, older == newer));
  for (int stage = 0; stage < 3; ++stage)
    for (std::int64_t i = 0; i < *per_stage; ++i)
      older = std::exchange(newer, pnasnet_cell(c, newer, older, p.width << stage, stage > 0 && i == 0, false));
  c.net.set_x(newer);
  return c.finish();
}

}  // namespace turnpoint
