// SPDX-License-Identifier: Apache-2.0
// One function per family: its key names and its defaults, which are those of the transformers library.
#pragma once

#include "core/import/huggingface/config_reader.h"

namespace turnpoint::huggingface {

// families_classic.cpp: LayerNorm decoders
TransformerShape gpt2(ConfigReader& c);
TransformerShape gptj(ConfigReader& c);
TransformerShape gpt_neox(ConfigReader& c);
TransformerShape bloom(ConfigReader& c);
TransformerShape falcon(ConfigReader& c);
TransformerShape mpt(ConfigReader& c);
TransformerShape opt(ConfigReader& c);
TransformerShape phi(ConfigReader& c);
TransformerShape gpt_bigcode(ConfigReader& c);
TransformerShape gpt_neo(ConfigReader& c);
TransformerShape starcoder2(ConfigReader& c);
TransformerShape cohere(ConfigReader& c);

// families_rotary.cpp: decoders after Llama
TransformerShape llama(ConfigReader& c);
TransformerShape mistral(ConfigReader& c);
TransformerShape qwen2(ConfigReader& c);
TransformerShape qwen3(ConfigReader& c);
TransformerShape gemma(ConfigReader& c);
TransformerShape gemma2(ConfigReader& c);
TransformerShape gemma3(ConfigReader& c);
TransformerShape phi3(ConfigReader& c);
TransformerShape olmo(ConfigReader& c);
TransformerShape stablelm(ConfigReader& c);
TransformerShape hf_olmo(ConfigReader& c);  // the keys of the first release
TransformerShape granite(ConfigReader& c);
TransformerShape olmo2(ConfigReader& c);
TransformerShape chatglm(ConfigReader& c);
/// What Llama, Mistral and Qwen share: sizes under their usual names, RMS norms, a gated MLP.
TransformerShape rotary_decoder(ConfigReader& c, const TransformerShape& defaults,
                                std::int64_t default_head_channels = 0);
TransformerShape sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t intermediate, std::int64_t vocabulary, std::int64_t positions);

// families_experts.cpp: mixtures of experts
TransformerShape mixtral(ConfigReader& c);
TransformerShape qwen2_moe(ConfigReader& c);
TransformerShape qwen3_moe(ConfigReader& c);
TransformerShape deepseek_v2(ConfigReader& c);
TransformerShape deepseek_v3(ConfigReader& c);
TransformerShape dbrx(ConfigReader& c);
TransformerShape deepseek(ConfigReader& c);  // the first one, with ordinary attention
TransformerShape phimoe(ConfigReader& c);
TransformerShape gpt_oss(ConfigReader& c);

// families_encoder.cpp: encoders and encoder-decoders
TransformerShape bert(ConfigReader& c);
TransformerShape roberta(ConfigReader& c);
TransformerShape distilbert(ConfigReader& c);
TransformerShape albert(ConfigReader& c);
TransformerShape electra(ConfigReader& c);
TransformerShape deberta_v2(ConfigReader& c);
TransformerShape t5(ConfigReader& c);
TransformerShape bart(ConfigReader& c);
/// What BART and Whisper share: sizes of both halves under their usual names; feed-forward parts four times as wide.
void encoder_decoder(ConfigReader& c, TransformerShape& s, std::int64_t hidden, std::int64_t layers,
                     std::int64_t heads);

// families_media.cpp: pictures and sound
TransformerShape vit(ConfigReader& c);
TransformerShape whisper(ConfigReader& c);

}  // namespace turnpoint::huggingface
