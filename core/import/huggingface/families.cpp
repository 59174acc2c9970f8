// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/families.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/family_functions.h"

namespace turnpoint {

namespace {

using namespace huggingface;

struct Family {
  const char* model_type;
  const char* architecture;  ///< what `architectures` entries begin with
  TransformerShape (*read)(ConfigReader&);
};

// A prefix ends where "For", "LMHead" or "Model" begins: "Qwen2Moe..." is not taken for Qwen2.
constexpr Family kFamilies[] = {{"albert", "Albert", albert},
                                {"bart", "Bart", bart},
                                {"bert", "Bert", bert},
                                {"bloom", "Bloom", bloom},
                                {"chatglm", "ChatGLM", chatglm},
                                {"cohere", "Cohere", cohere},
                                {"dbrx", "Dbrx", dbrx},
                                {"deberta-v2", "DebertaV2", deberta_v2},
                                {"deepseek", "Deepseek", deepseek},
                                {"deepseek_v2", "DeepseekV2", deepseek_v2},
                                {"deepseek_v3", "DeepseekV3", deepseek_v3},
                                {"distilbert", "DistilBert", distilbert},
                                {"electra", "Electra", electra},
                                {"falcon", "Falcon", falcon},
                                {"gemma", "Gemma", gemma},
                                {"gemma2", "Gemma2", gemma2},
                                {"gemma3_text", "Gemma3", gemma3},
                                {"gpt2", "GPT2", gpt2},
                                {"gpt_bigcode", "GPTBigCode", gpt_bigcode},
                                {"gpt_neo", "GPTNeo", gpt_neo},
                                {"gpt_neox", "GPTNeoX", gpt_neox},
                                {"gpt_oss", "GptOss", gpt_oss},
                                {"gptj", "GPTJ", gptj},
                                {"granite", "Granite", granite},
                                {"hf_olmo", "OLMo", hf_olmo},
                                {"llama", "Llama", llama},
                                {"mistral", "Mistral", mistral},
                                {"mixtral", "Mixtral", mixtral},
                                {"mpt", "Mpt", mpt},
                                {"mt5", "MT5", t5},
                                {"olmo", "Olmo", olmo},
                                {"olmo2", "Olmo2", olmo2},
                                {"opt", "OPT", opt},
                                {"phi", "Phi", phi},
                                {"phi3", "Phi3", phi3},
                                {"phimoe", "PhiMoE", phimoe},
                                {"qwen2", "Qwen2", qwen2},
                                {"qwen2_moe", "Qwen2Moe", qwen2_moe},
                                {"qwen3", "Qwen3", qwen3},
                                {"qwen3_moe", "Qwen3Moe", qwen3_moe},
                                {"roberta", "Roberta", roberta},
                                {"stablelm", "StableLm", stablelm},
                                {"starcoder2", "Starcoder2", starcoder2},
                                {"t5", "T5", t5},
                                {"vit", "ViT", vit},
                                {"whisper", "Whisper", whisper},
                                {"xlm-roberta", "XLMRoberta", roberta}};

/// Families that are known and cannot be built from the operators there are.
struct Missing {
  const char* model_type;
  const char* architecture;
  const char* reason;
};
constexpr const char* kScan =
    "its layers scan a state over the sequence (selective state spaces), and there is no operator for such a scan";
constexpr const char* kRecurrence =
    "its layers are linear recurrences over the sequence, and there is no operator for them";
constexpr Missing kMissing[] = {{"bamba", "Bamba", kScan},
                                {"falcon_h1", "FalconH1", kScan},
                                {"falcon_mamba", "FalconMamba", kScan},
                                {"jamba", "Jamba", kScan},
                                {"mamba", "Mamba", kScan},
                                {"mamba2", "Mamba2", kScan},
                                {"recurrent_gemma", "RecurrentGemma", kRecurrence},
                                {"rwkv", "Rwkv", kRecurrence},
                                {"zamba", "Zamba", kScan},
                                {"zamba2", "Zamba2", kScan}};

/// "BertForMaskedLM", "GPT2LMHeadModel", "LlamaModel" belong to "Bert", "GPT2", "Llama".
bool is_architecture_of(std::string_view architecture, std::string_view prefix) {
  if (!architecture.starts_with(prefix)) return false;
  architecture.remove_prefix(prefix.size());
  return architecture.starts_with("For") || architecture.starts_with("LMHead") || architecture.starts_with("Model");
}

/// What the config says it is, and the key that says so.
struct Named {
  const Family* family = nullptr;
  std::string name, key;
};

Named find_family(JsonFields& fields) {
  Named named;
  if (fields.has("model_type")) {
    named.key = "model_type";
    named.name = fields.text(named.key);
    for (const auto& family : kFamilies)
      if (named.name == family.model_type) named.family = &family;
    return named;
  }
  named.key = "architectures";
  const auto found = fields.json().find("architectures");
  if (found == fields.json().end() || !found->is_array() || found->empty() || !found->front().is_string()) return named;
  named.name = found->front().get<std::string>();
  for (const auto& family : kFamilies)
    if (is_architecture_of(named.name, family.architecture)) named.family = &family;
  return named;
}

/// What the architecture puts on top of a decoder, where that is no prediction of tokens.
void choose_head(const Family& family, JsonFields& fields, TransformerShape& shape) {
  if (shape.pooler || shape.encoder_layers > 0 || shape.image.channels > 0) return;
  const auto found = fields.json().find("architectures");
  if (found == fields.json().end() || !found->is_array() || found->empty() || !found->front().is_string()) return;
  const auto name = found->front().get<std::string>();
  if (!is_architecture_of(name, family.architecture)) return;
  const auto head = std::string_view(name).substr(std::string_view(family.architecture).size());
  if (head == "ForSequenceClassification" && family.read != &distilbert) {
    const auto labels = fields.json().find("id2label");
    const bool listed = labels != fields.json().end() && labels->is_object() && !labels->empty();
    shape.labels =
        fields.integer("num_labels", 1, ConfigReader::kMaximumVocabulary, listed ? std::int64_t(labels->size()) : 2);
  } else if (family.read != &chatglm &&
             (head == "Model" || head == "ForTokenClassification" || head == "ForQuestionAnswering") &&
             !shape.tied_head) {
    // Training needs a loss, and the transposed token table adds no parameters.
    shape.tied_head = true;
    shape.head_bias = false;
    shape.warnings.push_back(
        fmt::format("{} has no language head: tokens are predicted through the token table instead", name));
  }
}

/// Models of text and something else keep the text model's settings in an object of their own.
constexpr const char* kNested[] = {"text_config", "llm_config", "language_config"};

}  // namespace

const std::vector<std::string>& huggingface_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& family : kFamilies) list.push_back(family.model_type);
    return list;
  }();
  return names;
}

Expected<TransformerShape> read_huggingface_config(JsonFields fields) {
  if (fields.error()) return *fields.error();
  Named named = find_family(fields);
  std::optional<JsonFields> nested;
  const char* nested_key = nullptr;
  for (const char* key : kNested) {
    if (nested_key || !fields.has(key) || !fields.json().find(key)->is_object()) continue;
    JsonFields inner = fields.object(key);
    const Named inner_named = find_family(inner);
    // An outer name that we know says what the inner object is, where that says nothing itself.
    if (!inner_named.family && (!inner_named.name.empty() || !named.family)) continue;
    if (inner_named.family) named = inner_named;
    nested = inner;
    nested_key = key;
  }
  if (fields.error()) return *fields.error();
  for (const Missing& missing : kMissing)
    if (!named.family && (named.name == missing.model_type || is_architecture_of(named.name, missing.architecture))) {
      fields.fail(named.key, fmt::format("'{}' is not supported: {}", named.name, missing.reason));
      return *fields.error();
    }
  if (!named.family) {
    std::string known;
    for (const auto& name : huggingface_families()) known += (known.empty() ? "" : ", ") + name;
    if (named.name.empty())
      fields.fail("model_type",
                  "neither model_type nor architectures says which family this is; known families: " + known);
    else
      fields.fail(named.key, fmt::format("unknown family '{}'; known families: {}", named.name, known));
    return *fields.error();
  }
  ConfigReader reader(nested ? *nested : fields);
  TransformerShape shape = named.family->read(reader);
  if (reader.good() && !nested) choose_head(*named.family, fields, shape);
  if (reader.good() && !shape.fits(1, shape.default_sequence()))
    reader.fail("num_hidden_layers",
                fmt::format("{} layers of this width are too large even for one sample of {} tokens",
                            shape.layers + shape.encoder_layers, shape.default_sequence()));
  if (fields.error()) return *fields.error();
  if (nested_key)
    shape.warnings.push_back(fmt::format("only {} is read: the model's other parts are left out", nested_key));
  return shape;
}

}  // namespace turnpoint
