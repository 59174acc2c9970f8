// SPDX-License-Identifier: Apache-2.0
// In which messages the gradients and weights of parameters travel. Engines exchange neither one by one: gradients fill
// buckets, whoever made them; sharded weights are gathered, and their gradients scattered, layer by layer. So that
// costs stay sums, an operator pays for its part of a message: t(B) b / B of a message of B bytes of which b are its
// own (resources/manual/costs.md, 4).
#pragma once

#include <vector>

#include "core/cost/tensor_use.h"
#include "core/model/model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

ParameterCounts count_parameters(const Model& model, const std::vector<std::vector<bool>>& owns_parameter);

/// How often a message holds what one group of an operator's parameters contributes; 1: it travels alone.
struct MessageSizes {
  double bucket = 1;  ///< of gradients, and of the weights behind a sharded update
  double layer = 1;   ///< of sharded weights and their gradients
};

double elements_of(const Tensor& tensor);  ///< none split

/// The rule of one scenario. A cluster without a library, and the papers' accounting, send every operator's by itself.
class Messages {
 public:
  Messages(const Scenario& scenario, const TensorUses& uses);

  bool any() const { return bucket_bytes_ > 0; }
  /// Of a group that has `elements` unsplit and `bytes` on a device: others are taken to be split alike. What exceeds a
  /// bucket is one of its own.
  MessageSizes sizes(OperatorId op, double elements, double bytes) const;

 private:
  const TensorUses& uses_;
  double bucket_bytes_ = 0;
};

}  // namespace turnpoint
