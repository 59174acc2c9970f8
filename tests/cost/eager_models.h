// SPDX-License-Identifier: Apache-2.0
// A decoder whose norms, activations, heads and loss are chains of kernels where they are not fused.
#pragma once

#include <QtTest>
#include <string>

#include "core/import/huggingface/huggingface.h"
#include "core/scenario/scenario.h"

namespace turnpoint::test {

inline ModelPtr llama(const char* more = "", std::int64_t batch = 16) {
  const auto source = parse_huggingface_config(
      std::string(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2,
          "intermediate_size": 1024, "num_hidden_layers": 2, "max_position_embeddings": 64, "vocab_size": 1000)") +
          more + "}",
      "c.json");
  if (!source) qFatal("%s", source.error().message().c_str());
  return *(*source)->bind({batch, 64});
}

inline void in_16_bits(Settings& settings) { settings.precision = Precision::bf16; }
inline void eager_in_16_bits(Settings& settings) {
  settings.kernels = Kernels::eager, settings.precision = Precision::bf16;
}

}  // namespace turnpoint::test
