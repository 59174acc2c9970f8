// SPDX-License-Identifier: Apache-2.0
// What the transformers library (5.23) takes for keys that a config leaves out, where it differs from the row above.
#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

std::vector<FamilyDefaults> defaults_2() {
  return {
      {"umt5", R"(d_ff := 1024; feed_forward_proj := "gated-gelu"; num_decoder_layers := 8; num_heads := 6
        num_layers := 8; vocab_size := 250112)"},
      {"switch_transformers", R"(d_model := 768; num_decoder_layers := 12; num_experts := 8; num_heads := 12; num_layers := 12
        num_sparse_decoder_layers := 3; num_sparse_encoder_layers := 3; feed_forward_proj := null)"},
  };
}

}  // namespace turnpoint::huggingface
