// SPDX-License-Identifier: Apache-2.0
// What every input has to end with: a message that names the file and is no longer than one reads, or a model that keeps
// what models promise.
#pragma once

#include <cstdlib>
#include <string_view>

#include "core/base/expected.h"
#include "core/import/source/model_source.h"

namespace turnpoint::test {

inline void check_message(const Error& error, std::string_view file = {}) {
  const std::string message = error.message();
  if (error.what.empty() || message.size() > 3000) std::abort();
  if (message.find(file) == std::string::npos) std::abort();
}

/// Walks that fit the tensors and loops, and counts that did not overflow.
inline void check_model(const Model& model) {
  for (const auto& op : model.operators)
    for (const auto* accesses : {&op.inputs, &op.outputs})
      for (const auto& access : *accesses) {
        const Tensor& tensor = model.tensors[access.tensor];
        if (access.walks.size() != tensor.shape.size() || tensor.dims.size() != tensor.shape.size()) std::abort();
        for (const auto& walk : access.walks)
          for (const auto loop : walk)
            if (loop >= op.dims.size()) std::abort();
      }
  if (summarise(model).parameters < 0) std::abort();
}

/// The source at two batch sizes.
inline void check_bound(const ModelSource& source) {
  for (const std::int64_t batch : {1, 12}) {
    const auto model = source.bind({batch, 16});
    if (model)
      check_model(**model);
    else
      check_message(model.error());
  }
}

}  // namespace turnpoint::test
