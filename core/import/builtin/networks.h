// SPDX-License-Identifier: Apache-2.0
// The built-in networks, each a function from its parameters to a graph.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint {

/// Values after defaults; a network reads those that it accepts.
struct NetworkParameters {
  std::string name, source;
  std::int64_t layers = 0, hidden = 0, width = 0, batch = 0, sequence = 0;
};

using NetworkFunction = Expected<ModelPtr> (*)(const NetworkParameters&);

// Vision: image classification with cross-entropy. `width` of the ResNets is the width of the first stage's bottleneck.
Expected<ModelPtr> build_lenet(const NetworkParameters& p);
Expected<ModelPtr> build_alexnet(const NetworkParameters& p);
Expected<ModelPtr> build_vgg11(const NetworkParameters& p);
Expected<ModelPtr> build_vgg13(const NetworkParameters& p);
Expected<ModelPtr> build_vgg16(const NetworkParameters& p);
Expected<ModelPtr> build_vgg19(const NetworkParameters& p);
Expected<ModelPtr> build_resnet18(const NetworkParameters& p);
Expected<ModelPtr> build_resnet34(const NetworkParameters& p);
Expected<ModelPtr> build_resnet50(const NetworkParameters& p);
Expected<ModelPtr> build_inception_v3(const NetworkParameters& p);
Expected<ModelPtr> build_wide_resnet(const NetworkParameters& p);

// Language. `width` of the transformers is the width of the MLP, 0 for the family's rule.
Expected<ModelPtr> build_rnn(const NetworkParameters& p);
Expected<ModelPtr> build_lstm_lm(const NetworkParameters& p);
Expected<ModelPtr> build_study_transformer(const NetworkParameters& p);
Expected<ModelPtr> build_gpt2(const NetworkParameters& p);
Expected<ModelPtr> build_bert_large(const NetworkParameters& p);
Expected<ModelPtr> build_llama2(const NetworkParameters& p);
Expected<ModelPtr> build_llama2_70b(const NetworkParameters& p);

}  // namespace turnpoint
