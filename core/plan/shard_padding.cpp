// SPDX-License-Identifier: Apache-2.0
#include "core/plan/shard_padding.h"

#include <cmath>
#include <vector>

#include "core/model/shard_format.h"

namespace turnpoint {

// Shards of whole rows are as many rows on every device, those of tiles as many tiles: the last ones are filled up.
double shard_padding(const Scenario& scenario, const Mesh& mesh, const MemoryChoice& choice, const Tensor& tensor,
                     const Layout& layout, std::uint32_t whole) {
  const auto shards = static_cast<double>(mesh.size_of(choice.update_axes & whole));
  if (!choice.shares_out() || shards <= 1) return 1;
  std::vector<std::int64_t> here = tensor.shape;
  for (std::size_t d = 0; d < here.size(); ++d) here[d] /= mesh.size_of(layout.mask(static_cast<std::int8_t>(d)));
  const double rows = here.empty() ? 1 : static_cast<double>(here[0]);
  if (choice.whole_rows && choice.update == Update::sharded_weights)
    return here.empty() ? 1 : std::ceil(rows / shards) * shards / rows;
  if (!choice.tiles) return 1;
  if (here.empty()) return shards;
  const bool keeps = scenario.settings.optimizer == Optimizer::adafactor && here.size() >= 2;
  const auto format = shard_format(here, static_cast<int>(shards), ShardLayout::reshape_and_pad, keeps);
  return format ? 1 + format->padding() : 1;
}

}  // namespace turnpoint
