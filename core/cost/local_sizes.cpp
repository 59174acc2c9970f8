// SPDX-License-Identifier: Apache-2.0
#include "core/cost/local_sizes.h"

namespace turnpoint {

std::vector<std::int64_t> local_dims(const Operator& op, const Mesh& mesh, const Configuration& configuration) {
  std::vector<std::int64_t> dims;
  for (const auto& dim : op.dims) dims.push_back(dim.size);
  for (int a = 0; a < mesh.count(); ++a)
    if (const int loop = configuration.axis[static_cast<std::size_t>(a)]; loop >= 0)
      dims[static_cast<std::size_t>(loop)] /= mesh.axes[static_cast<std::size_t>(a)].size;
  return dims;
}

std::int64_t local_size(const Operator& op, const Tensor& tensor, const Access& access, std::size_t dimension,
                        std::span<const std::int64_t> local) {
  std::int64_t size = tensor.shape[dimension];
  if (dimension >= access.walks.size()) return size;
  for (const auto loop : access.walks[dimension]) size = size / op.dims[loop].size * local[loop];
  return size;
}

}  // namespace turnpoint
