// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/search/baselines/pipeline.h"

namespace turnpoint::search {

std::vector<int> balanced_stages(const std::vector<double>& times, int stages) {
  const std::size_t n = times.size(), p = static_cast<std::size_t>(stages);
  std::vector<double> sum(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + times[i];
  // best[k][i]: the least largest sum of the first i layers in k + 1 stages, each of at least one layer.
  std::vector<std::vector<double>> best(p, std::vector<double>(n + 1, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<int>> from(p, std::vector<int>(n + 1, 0));
  for (std::size_t i = 1; i <= n; ++i) best[0][i] = sum[i];
  for (std::size_t k = 1; k < p; ++k)
    for (std::size_t i = k + 1; i <= n; ++i)
      for (std::size_t j = k; j < i; ++j)
        if (const double largest = std::max(best[k - 1][j], sum[i] - sum[j]); largest < best[k][i] * (1 - 1e-12))
          best[k][i] = largest, from[k][i] = static_cast<int>(j);
  std::vector<int> first(p, 0);
  std::size_t end = n;
  for (std::size_t k = p; k-- > 1;) {
    first[k] = from[k][end];
    end = static_cast<std::size_t>(first[k]);
  }
  return first;
}

std::vector<int> equal_stages(int layers, int stages) {
  std::vector<int> first(static_cast<std::size_t>(stages), 0);
  const bool plain = layers % stages == 0, with_ends = (layers + 2) % stages == 0 && (layers + 2) / stages > 1;
  if (!plain && !with_ends) return {};
  const int each = (plain ? layers : layers + 2) / stages;
  for (int s = 1; s < stages; ++s) first[static_cast<std::size_t>(s)] = s * each - (plain ? 0 : 1);
  return first;
}

}  // namespace turnpoint::search
