// SPDX-License-Identifier: Apache-2.0
// Rows of other programs' profiles as operators of ours: a small Model with one device's shapes, whose scopes are the
// rows' names.
#pragma once

#include <map>
#include <string>

#include "core/base/expected.h"
#include "core/cost/calibration.h"
#include "core/model/model.h"

namespace turnpoint {

struct MeasuredModel {
  ModelPtr model;
  std::map<std::string, MeasuredWork::Exchange> forward, backward;  ///< by row name
};

/// One device's part of Aceso's GPT at the log's micro-batch and tensor-parallel degree: layers as Megatron-LM computes
/// them. Hidden size, heads, sequence and vocabulary follow from the table's weights and activations.
Expected<MeasuredModel> aceso_gpt(const MeasuredLog& log);
/// Aceso's wide ResNet on one device; channels and positions follow from weights and activations.
Expected<MeasuredModel> aceso_resnet(const MeasuredLog& log);

}  // namespace turnpoint
