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

// Vision: image classification with cross-entropy. `layers` of VGG, ResNet and WideResNet choose one of the published
// depths; `width` is that of the first stage, `hidden` that of the dense layers.
Expected<ModelPtr> build_lenet(const NetworkParameters& p);
Expected<ModelPtr> build_alexnet(const NetworkParameters& p);
Expected<ModelPtr> build_vgg(const NetworkParameters& p);
Expected<ModelPtr> build_resnet(const NetworkParameters& p);
Expected<ModelPtr> build_inception_v3(const NetworkParameters& p);
Expected<ModelPtr> build_wide_resnet(const NetworkParameters& p);
Expected<ModelPtr> build_wrn(const NetworkParameters& p);      // layers: residual units a stage; width: widening factor
Expected<ModelPtr> build_nasnet(const NetworkParameters& p);   // layers: normal cells; width: filters of the first ones
Expected<ModelPtr> build_pnasnet(const NetworkParameters& p);  // layers: cells after the stem; width as above

// Recurrent language models, translation.
Expected<ModelPtr> build_rnn(const NetworkParameters& p);
Expected<ModelPtr> build_lstm_lm(const NetworkParameters& p);
Expected<ModelPtr> build_word_rnn(const NetworkParameters& p);
Expected<ModelPtr> build_char_crn(const NetworkParameters& p);
Expected<ModelPtr> build_gnmt(const NetworkParameters& p);
Expected<ModelPtr> build_nmt(const NetworkParameters& p);

// Transformers. `width` is that of the MLP, 0 for the family's rule.
Expected<ModelPtr> build_study_transformer(const NetworkParameters& p);
Expected<ModelPtr> build_gpt2(const NetworkParameters& p);
Expected<ModelPtr> build_bert_large(const NetworkParameters& p);
Expected<ModelPtr> build_llama2(const NetworkParameters& p);
Expected<ModelPtr> build_llama2_70b(const NetworkParameters& p);
Expected<ModelPtr> build_mixtral(const NetworkParameters& p);
Expected<ModelPtr> build_trn(const NetworkParameters& p);
Expected<ModelPtr> build_transformer_big(const NetworkParameters& p);  // layers: of either stack

// Others.
Expected<ModelPtr> build_ncf(const NetworkParameters& p);  // hidden: factors; width: first layer of the MLP
Expected<ModelPtr> build_e3d(const NetworkParameters& p);  // sequence: frames

}  // namespace turnpoint
