// SPDX-License-Identifier: Apache-2.0
#include "core/cost/messages.h"

#include <algorithm>
#include <map>

#include "core/cost/transformer_roles.h"

namespace turnpoint {

double elements_of(const Tensor& tensor) {
  double elements = 1;
  for (const std::int64_t extent : tensor.shape) elements *= static_cast<double>(extent);
  return elements;
}

ParameterCounts count_parameters(const Model& model, const std::vector<std::vector<bool>>& owns_parameter) {
  ParameterCounts counts;
  std::vector<double> own(model.operators.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!owns_parameter[i][k]) continue;
      own[i] += elements_of(model.tensors[op.inputs[k].tensor]);
    }
    counts.all += own[i];
  }
  counts.layer.assign(own.size(), 0);
  const auto roles = find_transformer_roles(model, false);
  if (!roles || roles->layers < 2) return counts;
  const auto layer_of = [&](std::size_t i) {
    const int layer = roles->layer_of[i];
    return layer < roles->layers ? layer : -1;
  };
  std::map<int, double> of_layer;
  for (std::size_t i = 0; i < own.size(); ++i) of_layer[layer_of(i)] += own[i];
  for (std::size_t i = 0; i < own.size(); ++i) counts.layer[i] = of_layer[layer_of(i)];
  return counts;
}

Messages::Messages(const Scenario& scenario, const TensorUses& uses) : uses_(uses) {
  if (scenario.cluster->library != Library::ring && scenario.by_library())
    bucket_bytes_ = static_cast<double>(scenario.settings.bucket_bytes);
}

MessageSizes Messages::sizes(OperatorId op, double elements, double bytes) const {
  MessageSizes sizes;
  if (bucket_bytes_ <= 0 || elements <= 0 || bytes <= 0) return sizes;
  sizes.bucket = std::max(1.0, std::min(bucket_bytes_ / bytes, uses_.parameters.all / elements));
  const double layer = uses_.parameters.layer[op.index];
  sizes.layer = layer > 0 ? std::max(1.0, layer / elements) : sizes.bucket;
  return sizes;
}

}  // namespace turnpoint
