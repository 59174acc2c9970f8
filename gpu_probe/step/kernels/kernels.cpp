// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

std::vector<std::int64_t> LocalOperator::strides(const Access& access, const Block& block) const {
  return strides(access, block.region);
}

std::vector<std::int64_t> LocalOperator::strides(const Access& access, const Region& region) const {
  std::vector<std::int64_t> result(loops.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = access.walks.size(); d-- > 0;) {
    std::int64_t inner = stride;
    for (std::size_t k = access.walks[d].size(); k-- > 0;) {
      const auto loop = access.walks[d][k];
      result[loop] += inner;
      inner *= loops[loop].size;
    }
    stride *= region.extent[d];
  }
  return result;
}

std::vector<std::int64_t> LocalOperator::sizes() const {
  std::vector<std::int64_t> result;
  for (const auto& loop : loops) result.push_back(loop.size);
  return result;
}

Error LocalOperator::error(const std::string& what) const {
  return bad_input(what, model->name + ": operator '" + op().name + "'");
}

bool keeps_order(const LocalOperator& at, const Region& x, const Region& y) {
  const Access &from = at.op().inputs[0], &to = at.op().outputs[0];
  if (x.elements() != y.elements() || !walks_all(at, from) || !walks_all(at, to)) return false;
  const auto a = at.strides(from, x), b = at.strides(to, y);
  for (std::size_t l = 0; l < a.size(); ++l)
    if (at.loops[l].size > 1 && a[l] != b[l]) return false;
  return true;
}

bool walks_all(const LocalOperator& at, const Access& access) {
  const Tensor& tensor = at.model->tensors[access.tensor];
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t walked = 1;
    for (const auto loop : access.walks[d]) walked *= at.op().dims[loop].size;
    if (walked != tensor.shape[d]) return false;
  }
  return true;
}

}  // namespace turnpoint::step
