// SPDX-License-Identifier: Apache-2.0
// Any bytes as a config.json and as a hardware profile: a model or a message, never a crash, never a hang. The same
// bytes also choose a family and values for its keys, which reaches deeper than broken JSON does.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/hardware/cluster.h"
#include "core/hardware/collective_model.h"
#include "core/import/huggingface/families.h"
#include "core/import/huggingface/huggingface.h"

namespace {

constexpr const char* kKeys[] = {"hidden_size",
                                 "d_model",
                                 "n_embd",
                                 "num_hidden_layers",
                                 "n_layer",
                                 "num_layers",
                                 "encoder_layers",
                                 "decoder_layers",
                                 "num_attention_heads",
                                 "n_head",
                                 "num_heads",
                                 "num_key_value_heads",
                                 "num_kv_heads",
                                 "head_dim",
                                 "d_kv",
                                 "intermediate_size",
                                 "n_inner",
                                 "d_ff",
                                 "ffn_dim",
                                 "vocab_size",
                                 "max_position_embeddings",
                                 "n_positions",
                                 "type_vocab_size",
                                 "embedding_size",
                                 "word_embed_proj_dim",
                                 "num_hidden_groups",
                                 "relative_attention_num_buckets",
                                 "num_local_experts",
                                 "num_experts",
                                 "n_routed_experts",
                                 "num_experts_per_tok",
                                 "moe_intermediate_size",
                                 "shared_expert_intermediate_size",
                                 "n_shared_experts",
                                 "first_k_dense_replace",
                                 "moe_layer_freq",
                                 "n_group",
                                 "kv_lora_rank",
                                 "q_lora_rank",
                                 "qk_nope_head_dim",
                                 "qk_rope_head_dim",
                                 "v_head_dim",
                                 "decoder_sparse_step",
                                 "mlp_only_layers",
                                 "sliding_window",
                                 "tie_word_embeddings",
                                 "new_decoder_architecture",
                                 "attn_config",
                                 "ffn_config",
                                 "text_config",
                                 "architectures",
                                 "feed_forward_proj"};
// Mostly values that fit each other, so that a config is often read to its end.
constexpr const char* kValues[] = {"1",
                                   "2",
                                   "4",
                                   "8",
                                   "16",
                                   "64",
                                   "128",
                                   "64",
                                   "8",
                                   "4",
                                   "2",
                                   "3",
                                   "0",
                                   "-1",
                                   "7",
                                   "100",
                                   "4096",
                                   "65536",
                                   "4194304",
                                   "268435456",
                                   "1000000000",
                                   "1e18",
                                   "9223372036854775807",
                                   "1e300",
                                   "1.5",
                                   "null",
                                   "true",
                                   "false",
                                   "\"gated-relu\"",
                                   "[]",
                                   "[0, 1]",
                                   "{}",
                                   "{\"kv_n_heads\": 2, \"moe_num_experts\": 4, \"moe_top_k\": 2}"};

std::string config_from(const std::uint8_t* data, std::size_t size) {
  const auto& families = turnpoint::huggingface_families();
  std::string text = "{\"model_type\": \"" + families[data[0] % families.size()] + '"';
  bool used[std::size(kKeys)] = {};
  for (std::size_t i = 1; i + 1 < size && i < 32; i += 2) {
    const std::size_t key = data[i] % std::size(kKeys);
    if (used[key]) continue;
    used[key] = true;
    text += std::string(", \"") + kKeys[key] + "\": " + kValues[data[i + 1] % std::size(kValues)];
  }
  return text + "}";
}

void check_config(std::string_view text) {
  const auto source = turnpoint::parse_huggingface_config(text, "fuzz.json");
  if (!source) {
    if (source.error().message().find("fuzz.json") == std::string::npos) std::abort();
    return;
  }
  // Two samples of eight tokens: large enough to walk every operator, small enough for thousands of runs a second.
  const auto model = (*source)->bind({2, 8});
  if (!model) {
    if (model.error().what.empty()) std::abort();
    return;
  }
  const auto summary = turnpoint::summarise(**model);
  if (summary.parameters < 1 || summary.active_parameters < 1 || summary.active_parameters > summary.parameters)
    std::abort();
  if (!(summary.macs_forward > 0) || !std::isfinite(summary.macs_backward) || summary.activation_bytes < 0)
    std::abort();
}

}  // namespace

extern "C" const char* turnpoint_fuzz_corpus() { return "hf_config:hardware_profile"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_config(text);
  if (size > 0) check_config(config_from(data, size));
  const auto cluster = turnpoint::parse_hardware_profile(text, "fuzz.json");
  if (cluster) {
    const turnpoint::CollectiveModel times(**cluster, {});
    if (!(times.time(turnpoint::Collective::all_reduce, {2, 1, 2, 1}, 1e6).value >= 0)) std::abort();
    const auto again = turnpoint::parse_hardware_profile(turnpoint::write_hardware_profile(**cluster), "again.json");
    if (!again) std::abort();
  }
  return 0;
}
