// SPDX-License-Identifier: Apache-2.0
// Small configs of many families, and what one switch of each changes, against the parameters that the transformers
// library (5.23) counts for the same config on its meta device. Sizes were drawn by chance; keys that a config leaves
// out have the library's defaults.
#include <QTest>
#include <algorithm>

#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

struct Counted {
  const char* family;
  const char* architecture;
  const char* config;  ///< further keys
  qint64 parameters;   ///< with the tables of positions that nothing trains
};

/// One switch turned over in the config of the row before.
struct Switched {
  const char* family;
  const char* key;
  bool value;
  qint64 parameters;
};

constexpr Counted kCounted[] = {
    {"afmoe", "AfmoeForCausalLM", R"("hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32,
        "num_hidden_layers": 4, "intermediate_size": 320, "vocab_size": 1536, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 64)", 1586584},
    {"albert", "AlbertForMaskedLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_hidden_layers": 6, "intermediate_size": 256,
        "vocab_size": 1536, "embedding_size": 64)", 282048},
    {"bamba", "BambaForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 3,
        "intermediate_size": 320, "vocab_size": 1536)", 2192064},
    {"bart", "BartForCausalLM", R"("d_model": 128, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_layers": 4, "decoder_layers": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512,
        "vocab_size": 1536)", 1386496},
    {"bert", "BertLMHeadModel", R"("hidden_size": 128, "num_attention_heads": 8, "num_hidden_layers": 6, "intermediate_size": 256,
        "vocab_size": 1000)", 1006696},
    {"biogpt", "BioGptForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_hidden_layers": 3, "intermediate_size": 320,
        "vocab_size": 1536)", 1309440},
    {"bitnet", "BitNetForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 6,
        "intermediate_size": 512, "vocab_size": 1000)", 3044928},
    {"bloom", "BloomForCausalLM", R"("hidden_size": 128, "n_head": 8, "n_layer": 3, "vocab_size": 1536)", 791936},
    {"clip_vision_model", "CLIPVisionModel", R"("hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 6, "intermediate_size": 256)", 1195136},
    {"cohere", "CohereForCausalLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 4,
        "intermediate_size": 320, "vocab_size": 1000)", 784000},
    {"cohere2_moe", "Cohere2MoeForCausalLM", R"("hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
        "num_hidden_layers": 4, "intermediate_size": 512, "vocab_size": 1536, "num_experts": 16,
        "num_experts_per_tok": 2)", 12984960},
    {"ctrl", "CTRLLMHeadModel", R"("n_embd": 128, "n_head": 8, "n_layer": 4, "dff": 256, "vocab_size": 1000)", 659176},
    {"deepseek_v32", "DeepseekV32ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 4,
        "intermediate_size": 256, "vocab_size": 1536, "n_routed_experts": 16, "num_experts_per_tok": 2,
        "moe_intermediate_size": 96, "n_group": 1, "topk_group": 1, "q_lora_rank": 48,
        "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 24,
        "index_n_heads": 4, "index_head_dim": 32)", 3124032},
    {"deit", "DeiTForImageClassification", R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 256)", 1436418},
    {"electra", "ElectraForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_hidden_layers": 6, "intermediate_size": 320,
        "vocab_size": 1000, "embedding_size": 64)", 1757288},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 6,
        "intermediate_size": 320, "vocab_size": 1536, "moe_num_experts": 8, "moe_k": 2,
        "moe_intermediate_size": 64)", 2996200},
    {"exaone4", "Exaone4ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 3,
        "intermediate_size": 512, "vocab_size": 1536)", 2459584},
    {"falcon", "FalconForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_kv_heads": 2, "num_hidden_layers": 4,
        "vocab_size": 1000)", 3011072},
    {"falcon_h1", "FalconH1ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 3,
        "intermediate_size": 320, "vocab_size": 1536)", 5186944},
    {"flint", "FlintForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 16,
        "num_hidden_layers": 3, "intermediate_size": 512, "vocab_size": 1536, "num_experts": 16,
        "num_experts_per_tok": 2, "moe_intermediate_size": 96)", 2953656},
    {"gemma2", "Gemma2ForCausalLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 16,
        "num_hidden_layers": 6, "intermediate_size": 320, "vocab_size": 1536)", 1330304},
    {"gemma3_text", "Gemma3ForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "num_hidden_layers": 6, "intermediate_size": 512, "vocab_size": 1000)", 2187648},
    {"glm4_moe", "Glm4MoeForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 4,
        "intermediate_size": 320, "vocab_size": 1536, "n_routed_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 96, "n_group": 1, "topk_group": 1)", 3686656},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 6,
        "intermediate_size": 256, "vocab_size": 1536, "n_routed_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 64, "n_group": 1, "topk_group": 1, "q_lora_rank": 48,
        "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 24,
        "index_n_heads": 4, "index_head_dim": 32)", 2642208},
    {"gpt2", "GPT2LMHeadModel", R"("n_embd": 192, "n_head": 8, "n_layer": 3, "vocab_size": 1000)", 1723584},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", R"("n_embd": 128, "n_head": 8, "num_key_value_heads": 8, "n_layer": 4, "vocab_size": 1000)", 936832},
    {"gpt_neox", "GPTNeoXForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 320,
        "vocab_size": 1000)", 1798336},
    {"gpt_oss", "GptOssForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
        "num_hidden_layers": 3, "intermediate_size": 256, "vocab_size": 1000, "num_local_experts": 8,
        "num_experts_per_tok": 2)", 4131312},
    {"gptj", "GPTJForCausalLM", R"("n_embd": 192, "n_head": 8, "n_layer": 4, "vocab_size": 1000)", 2160232},
    {"granite_swa", "GraniteSWAForCausalLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 6,
        "intermediate_size": 320, "vocab_size": 1000)", 1112752},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 6,
        "intermediate_size": 256, "vocab_size": 1536, "num_local_experts": 16,
        "num_experts_per_tok": 2)", 15430080},
    {"helium", "HeliumForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32,
        "num_hidden_layers": 4, "intermediate_size": 256, "vocab_size": 1536)", 2230528},
    {"hy_v3", "HYV3ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 16,
        "num_hidden_layers": 4, "intermediate_size": 320, "vocab_size": 1000, "num_experts": 16,
        "num_experts_per_tok": 2, "moe_intermediate_size": 64)", 3803520},
    {"hyperclovax", "HyperCLOVAXForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
        "num_hidden_layers": 4, "intermediate_size": 512, "vocab_size": 1000)", 2416896},
    {"jamba", "JambaForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
        "intermediate_size": 256, "vocab_size": 1000, "num_experts": 16, "num_experts_per_tok": 2)", 3797316},
    {"llama", "LlamaForCausalLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 16,
        "num_hidden_layers": 3, "intermediate_size": 256, "vocab_size": 1000)", 748416},
    {"llama4_text", "Llama4ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 32,
        "num_hidden_layers": 6, "intermediate_size": 320, "vocab_size": 1536, "num_local_experts": 16,
        "num_experts_per_tok": 2)", 27454720},
    {"m2m_100", "M2M100ForConditionalGeneration", R"("d_model": 128, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
        "encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256,
        "vocab_size": 1536)", 1190912},
    {"mamba", "MambaForCausalLM", R"("hidden_size": 192, "num_hidden_layers": 6, "intermediate_size": 512, "vocab_size": 1536)", 2308416},
    {"mbart", "MBartForCausalLM", R"("d_model": 256, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 320, "decoder_ffn_dim": 320,
        "vocab_size": 1536)", 4810624},
    {"minicpm3", "MiniCPM3ForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 4,
        "intermediate_size": 256, "vocab_size": 1536, "q_lora_rank": 48, "kv_lora_rank": 32,
        "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 24)", 1239040},
    {"mixtral", "MixtralForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 6,
        "intermediate_size": 512, "vocab_size": 1536, "num_local_experts": 8, "num_experts_per_tok": 2)", 15642048},
    {"mpt", "MptForCausalLM", R"("d_model": 256, "n_heads": 8, "n_layers": 6, "vocab_size": 1536)", 5115136},
    {"nanochat", "NanoChatForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4,
        "intermediate_size": 320, "vocab_size": 1536)", 2228224},
    {"nemotron_h", "NemotronHForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 24,
        "intermediate_size": 256, "vocab_size": 1536, "n_routed_experts": 16, "num_experts_per_tok": 2,
        "moe_intermediate_size": 64, "n_group": 1, "topk_group": 1)", 9381184},
    {"olmo2", "Olmo2ForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
        "intermediate_size": 512, "vocab_size": 1536)", 1808544},
    {"olmo3", "Olmo3ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 6,
        "intermediate_size": 320, "vocab_size": 1536)", 3840256},
    {"olmoe", "OlmoeForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 6,
        "intermediate_size": 512, "vocab_size": 1536, "num_experts": 16, "num_experts_per_tok": 2)", 39745024},
    {"openai-gpt", "OpenAIGPTLMHeadModel", R"("n_embd": 192, "n_head": 4, "n_layer": 6, "vocab_size": 1536)", 3062400},
    {"opt", "OPTForCausalLM", R"("hidden_size": 192, "num_attention_heads": 8, "num_hidden_layers": 6, "ffn_dim": 256,
        "vocab_size": 1536)", 2175360},
    {"pegasus", "PegasusForCausalLM", R"("d_model": 128, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
        "encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256,
        "vocab_size": 1000)", 855680},
    {"persimmon", "PersimmonForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 512,
        "vocab_size": 1000)", 1423872},
    {"phi", "PhiForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 6,
        "intermediate_size": 512, "vocab_size": 1000)", 2238568},
    {"qwen2", "Qwen2ForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 6,
        "intermediate_size": 320, "vocab_size": 1000)", 2380608},
    {"qwen2_moe", "Qwen2MoeForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4,
        "intermediate_size": 512, "vocab_size": 1000, "num_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 64)", 20449536},
    {"qwen3", "Qwen3ForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "num_hidden_layers": 3, "intermediate_size": 320, "vocab_size": 1000)", 1398624},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
        "num_hidden_layers": 4, "intermediate_size": 320, "vocab_size": 1000,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 24,
        "linear_value_head_dim": 32)", 996248},
    {"qwen3_moe", "Qwen3MoeForCausalLM", R"("hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4,
        "intermediate_size": 512, "vocab_size": 1000, "num_local_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 96)", 1637760},
    {"qwen3_next", "Qwen3NextForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
        "num_hidden_layers": 6, "intermediate_size": 256, "vocab_size": 1536, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 64, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 24, "linear_value_head_dim": 32)", 6233448},
    {"recurrent_gemma", "RecurrentGemmaForCausalLM", R"("hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
        "num_hidden_layers": 6, "intermediate_size": 512, "vocab_size": 1536)", 1092736},
    {"rembert", "RemBertForCausalLM", R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 256,
        "vocab_size": 1000)", 4132968},
    {"roberta", "RobertaForCausalLM", R"("hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 6, "intermediate_size": 512,
        "vocab_size": 1000)", 1401448},
    {"seed_oss", "SeedOssForCausalLM", R"("hidden_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 48,
        "num_hidden_layers": 6, "intermediate_size": 256, "vocab_size": 1000)", 1937088},
    {"siglip_vision_model", "SiglipVisionModel", R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 320)", 2390336},
    {"t5", "T5ForConditionalGeneration", R"("d_model": 192, "num_heads": 8, "num_layers": 3, "d_ff": 512, "vocab_size": 1000)", 4914368},
    {"umt5", "UMT5ForConditionalGeneration", R"("d_model": 128, "num_heads": 4, "num_layers": 6, "d_ff": 512, "vocab_size": 1536)", 4920832},
    {"vit", "ViTForImageClassification", R"("hidden_size": 256, "num_attention_heads": 8, "num_hidden_layers": 6, "intermediate_size": 512)", 3411202},
    {"voxtral_encoder", "VoxtralEncoder", R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 320,
        "vocab_size": 1000)", 2393344},
    {"xlm", "XLMWithLMHeadModel", R"("emb_dim": 128, "n_heads": 4, "n_layers": 3, "vocab_size": 1000)", 789608},
};

constexpr Switched kSwitched[] = {
    {"afmoe", "tie_word_embeddings", true, 1389976},
    {"bamba", "mamba_conv_bias", false, 2189376},
    {"bamba", "mamba_proj_bias", true, 2196864},
    {"bamba", "mlp_bias", true, 2194560},
    {"bamba", "tie_word_embeddings", true, 1897152},
    {"bart", "tie_word_embeddings", false, 1583104},
    {"biogpt", "tie_word_embeddings", false, 1604352},
    {"bitnet", "attention_bias", true, 3049536},
    {"bitnet", "tie_word_embeddings", true, 2852928},
    {"bloom", "tie_word_embeddings", false, 988544},
    {"cohere", "attention_bias", true, 785280},
    {"cohere", "tie_word_embeddings", false, 912000},
    {"cohere", "use_qk_norm", true, 784640},
    {"cohere2_moe", "attention_bias", true, 12986496},
    {"cohere2_moe", "tie_word_embeddings", false, 13181568},
    {"ctrl", "tie_word_embeddings", false, 787176},
    {"deepseek_v32", "attention_bias", true, 3125440},
    {"deepseek_v32", "tie_word_embeddings", true, 2730816},
    {"deit", "qkv_bias", false, 1434114},
    {"electra", "tie_word_embeddings", false, 1821288},
    {"ernie4_5_moe", "tie_word_embeddings", false, 3291112},
    {"exaone4", "tie_word_embeddings", true, 2066368},
    {"falcon", "bias", true, 3018752},
    {"falcon", "multi_query", false, 3404288},
    {"falcon", "new_decoder_architecture", true, 3144192},
    {"falcon", "parallel_attn", false, 3013120},
    {"falcon", "tie_word_embeddings", false, 3267072},
    {"falcon_h1", "attention_bias", true, 5190016},
    {"falcon_h1", "mamba_conv_bias", false, 5182336},
    {"falcon_h1", "mamba_rms_norm", true, 5190016},
    {"falcon_h1", "mlp_bias", true, 5189632},
    {"falcon_h1", "tie_word_embeddings", true, 4793728},
    {"flint", "attention_bias", true, 2955384},
    {"flint", "tie_word_embeddings", true, 2658744},
    {"gemma2", "attention_bias", true, 1333376},
    {"gemma2", "tie_word_embeddings", false, 1526912},
    {"gemma3_text", "attention_bias", true, 2189568},
    {"gemma3_text", "tie_word_embeddings", false, 2379648},
    {"glm4_moe", "attention_bias", true, 3688192},
    {"glm4_moe", "tie_word_embeddings", true, 3293440},
    {"glm4_moe", "use_qk_norm", true, 3686912},
    {"glm_moe_dsa", "attention_bias", true, 2643936},
    {"glm_moe_dsa", "tie_word_embeddings", true, 2347296},
    {"gpt2", "tie_word_embeddings", false, 1915584},
    {"gpt_bigcode", "multi_query", false, 1052416},
    {"gpt_bigcode", "tie_word_embeddings", false, 1064832},
    {"gpt_neox", "attention_bias", false, 1795264},
    {"gpt_neox", "tie_word_embeddings", true, 1542336},
    {"gpt_oss", "attention_bias", false, 4130160},
    {"gpt_oss", "tie_word_embeddings", true, 3939312},
    {"gptj", "tie_word_embeddings", true, 1968232},
    {"granite_swa", "attention_bias", true, 1114672},
    {"granite_swa", "mlp_bias", true, 1117360},
    {"granite_swa", "tie_word_embeddings", false, 1240752},
    {"granitemoeshared", "attention_bias", true, 15433536},
    {"granitemoeshared", "tie_word_embeddings", true, 15135168},
    {"helium", "attention_bias", true, 2232064},
    {"helium", "mlp_bias", true, 2233600},
    {"helium", "tie_word_embeddings", true, 1837312},
    {"hy_v3", "attention_bias", true, 3806080},
    {"hy_v3", "tie_word_embeddings", true, 3547520},
    {"hyperclovax", "attention_bias", true, 2418688},
    {"hyperclovax", "mlp_bias", true, 2422016},
    {"hyperclovax", "tie_word_embeddings", true, 2160896},
    {"hyperclovax", "use_post_norm", false, 2414848},
    {"jamba", "mamba_conv_bias", false, 3796164},
    {"jamba", "mamba_proj_bias", true, 3800196},
    {"jamba", "tie_word_embeddings", true, 3605316},
    {"llama", "attention_bias", true, 749952},
    {"llama", "mlp_bias", true, 750336},
    {"llama", "tie_word_embeddings", true, 620416},
    {"llama4_text", "attention_bias", true, 27460864},
    {"llama4_text", "tie_word_embeddings", true, 27061504},
    {"mamba", "tie_word_embeddings", false, 2603328},
    {"mamba", "use_bias", true, 2315712},
    {"mamba", "use_conv_bias", false, 2305344},
    {"mbart", "tie_word_embeddings", false, 5203840},
    {"minicpm3", "attention_bias", true, 1240192},
    {"minicpm3", "mlp_bias", true, 1241856},
    {"minicpm3", "tie_word_embeddings", false, 1533952},
    {"mixtral", "tie_word_embeddings", true, 15347136},
    {"mpt", "tie_word_embeddings", false, 5508352},
    {"nanochat", "attention_bias", true, 2231296},
    {"nanochat", "tie_word_embeddings", true, 1835008},
    {"nemotron_h", "mlp_bias", true, 9389512},
    {"nemotron_h", "use_bias", true, 9399936},
    {"nemotron_h", "use_conv_bias", false, 9370944},
    {"olmo2", "attention_bias", true, 1810272},
    {"olmo2", "tie_word_embeddings", true, 1513632},
    {"olmo3", "attention_bias", true, 3846400},
    {"olmo3", "tie_word_embeddings", true, 3447040},
    {"olmoe", "attention_bias", true, 39749632},
    {"olmoe", "tie_word_embeddings", true, 39351808},
    {"openai-gpt", "tie_word_embeddings", false, 3357312},
    {"opt", "do_layer_norm_before", false, 2174976},
    {"opt", "enable_bias", false, 2168064},
    {"opt", "layer_norm_elementwise_affine", false, 2170368},
    {"opt", "tie_word_embeddings", false, 2470272},
    {"pegasus", "tie_word_embeddings", false, 983680},
    {"persimmon", "qk_layernorm", false, 1423296},
    {"persimmon", "tie_word_embeddings", true, 1231872},
    {"phi", "qk_layernorm", true, 2239720},
    {"phi", "tie_word_embeddings", true, 2046568},
    {"qwen2", "tie_word_embeddings", true, 2188608},
    {"qwen2_moe", "qkv_bias", false, 20446464},
    {"qwen2_moe", "tie_word_embeddings", true, 20193536},
    {"qwen3", "attention_bias", true, 1399776},
    {"qwen3", "tie_word_embeddings", true, 1142624},
    {"qwen3_5_text", "tie_word_embeddings", true, 868248},
    {"qwen3_moe", "attention_bias", true, 1639296},
    {"qwen3_moe", "tie_word_embeddings", true, 1509760},
    {"qwen3_next", "tie_word_embeddings", true, 5840232},
    {"recurrent_gemma", "attention_bias", true, 1093120},
    {"recurrent_gemma", "tie_word_embeddings", false, 1289344},
    {"seed_oss", "attention_bias", false, 1934784},
    {"seed_oss", "attention_out_bias", true, 1938240},
    {"seed_oss", "mlp_bias", true, 1941312},
    {"seed_oss", "tie_word_embeddings", true, 1745088},
    {"siglip_vision_model", "vision_use_head", false, 1961984},
    {"vit", "qkv_bias", false, 3406594},
    {"xlm", "tie_word_embeddings", false, 917608},
};

Expected<ModelPtr> model_of(const std::string& family, const std::string& architecture, const std::string& config) {
  const std::string text = "{\"model_type\": \"" + family + "\", \"architectures\": [\"" + architecture + "\"]" +
                           (config.empty() ? "" : ", ") + config + "}";
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) return source.error();
  return (*source)->bind({1, 8});
}

void compare(const Expected<ModelPtr>& model, qint64 parameters) {
  QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
  const qint64 trained = (*model)->parameters;
  if (trained != parameters) QCOMPARE(trained + qint64((*model)->buffers), parameters);
}

}  // namespace

class HuggingfaceGoldenTest : public QObject {
  Q_OBJECT

 private slots:
  void counts_data() {
    QTest::addColumn<int>("row");
    for (int i = 0; i < int(std::size(kCounted)); ++i) QTest::newRow(kCounted[i].family) << i;
  }
  void counts() {
    QFETCH(int, row);
    const Counted& c = kCounted[row];
    compare(model_of(c.family, c.architecture, c.config), c.parameters);
  }

  void switches_data() {
    QTest::addColumn<int>("row");
    for (int i = 0; i < int(std::size(kSwitched)); ++i)
      QTest::addRow("%s %s", kSwitched[i].family, kSwitched[i].key) << i;
  }
  void switches() {
    QFETCH(int, row);
    const Switched& s = kSwitched[row];
    const auto base = std::find_if(std::begin(kCounted), std::end(kCounted),
                                   [&](const Counted& c) { return std::string_view(c.family) == s.family; });
    QVERIFY(base != std::end(kCounted));
    QVERIFY(base->parameters != s.parameters);
    const std::string given = base->config;
    compare(model_of(s.family, base->architecture,
                     given + (given.empty() ? "" : ", ") + "\"" + s.key + "\": " + (s.value ? "true" : "false")),
            s.parameters);
  }
};

QTEST_APPLESS_MAIN(HuggingfaceGoldenTest)
#include "huggingface_golden_test.moc"
