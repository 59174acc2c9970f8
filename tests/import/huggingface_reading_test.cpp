// SPDX-License-Identifier: Apache-2.0
// How a config is read: the language of the table, families named by the user, unknown ones, keys of other writers, and
// the arithmetic of layers that scan or choose their keys.
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/expression.h"
#include "core/import/huggingface/families.h"
#include "core/import/huggingface/family_table.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

Expected<ModelPtr> read(const std::string& text, ModelBinding binding = {1, 16}, std::string_view as = {}) {
  const auto source = parse_huggingface_config(text, "c.json", as);
  if (!source) return source.error();
  return (*source)->bind(binding);
}

ModelPtr built(const std::string& text, ModelBinding binding = {1, 16}, std::string_view as = {}) {
  const auto model = read(text, binding, as);
  if (!model) qWarning("%s", model.error().message().c_str());
  return model ? *model : nullptr;
}

const Operator* find(const Model& model, const std::string& name) {
  for (const auto& op : model.operators)
    if (op.name == name) return &op;
  return nullptr;
}

const std::string kSizes =
    R"("hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
    "num_hidden_layers": 2, "vocab_size": 100, "max_position_embeddings": 512)";

}  // namespace

class HuggingfaceReadingTest : public QObject {
  Q_OBJECT

 private slots:
  void expressions_data() {
    QTest::addColumn<QString>("expression");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("key");
    const auto row = [](const char* expression, const char* value, const char* key = "") {
      QTest::newRow(expression) << expression << value << key;
    };
    row("2 + 3 * 4", "14");
    row("(2 + 3) * 4 - 1", "19");
    row("7 / 2", "3");
    row("7 % 4", "3");
    row("up(9, 4)", "12");
    row("width", "64", "width");
    row("absent | width", "64", "width");
    row("usual | width", "64", "width");  // what the config gives wins over a default
    row("usual | 4 * width", "5", "usual");
    row("nothing | 7", "7");  // null has no default
    row("nested.size", "8", "nested.size");
    row("kinds[1] == 'b' ? 1 : 2", "1");
    row("kinds[5] | 'none'", "none");
    row("in(kinds, 'b') && !in(kinds, 'z') ? 1 : 0", "1");
    row("letter(word, 1)", "y");
    row("begins(word, 'xy') && ends(word, 'z') ? 1 : 0", "1");
    row("has(nothing) || has(absent) ? 1 : 0", "0");
    row("size(kinds)", "2");
    row("1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2 ? 1 : 0", "1");
  }
  void expressions() {
    QFETCH(QString, expression);
    QFETCH(QString, value);
    QFETCH(QString, key);
    const auto config = nlohmann::json::parse(
        R"({"width": 64, "nothing": null, "nested": {"size": 8}, "kinds": ["a", "b"], "word": "xyz"})");
    const auto defaults = nlohmann::json::parse(R"({"usual": 5, "nothing": 9})");
    huggingface::Names names;
    names.key = [&](std::string_view path, bool all) {
      const auto* found = huggingface::find_path(config, path);
      return found || !all ? found : huggingface::find_path(defaults, path);
    };
    names.setting = [](std::string_view) { return huggingface::Result{}; };
    const auto result = huggingface::evaluate(expression.toStdString(), names);
    QCOMPARE(QString::fromStdString(result.fault), QString());
    QString text;
    if (const auto* number = std::get_if<double>(&result.value)) text = QString::number(*number);
    if (const auto* word = std::get_if<std::string>(&result.value)) text = QString::fromStdString(*word);
    QCOMPARE(text, value);
    if (!key.isEmpty()) QCOMPARE(QString::fromStdString(result.key), key);
  }
  void broken_expressions_are_told() {
    huggingface::Names names;
    names.key = [](std::string_view, bool) -> const nlohmann::json* { return nullptr; };
    names.setting = [](std::string_view) { return huggingface::Result{}; };
    for (const char* text : {"", "1 +", "(1", "1 ? 2", "'open", "nosuch(1, 2)", "1 2"})
      QVERIFY2(!huggingface::evaluate(text, names).fault.empty(), text);
  }
  void every_row_is_understood() {
    for (const auto& [name, family] : huggingface::family_table()) {
      QVERIFY2(family.like.empty() || huggingface::family_table().contains(family.like), name.c_str());
      huggingface::Names names;
      names.key = [](std::string_view, bool) -> const nlohmann::json* { return nullptr; };
      names.setting = [](std::string_view) { return huggingface::Result{}; };
      for (const auto& [setting, text] : family.settings) {
        const auto result = huggingface::evaluate(text, names);
        QVERIFY2(result.fault.empty(), qPrintable(QString::fromStdString(name + ": " + setting + " = " + text)));
      }
    }
  }

  // --- who says which family --------------------------------------------------------------------------------------
  void the_user_names_the_family() {
    const std::string text = R"({"model_type": "brandnew", "strange_rank": 7, )" + kSizes + "}";
    const auto refused = read(text);
    QVERIFY(!refused.has_value());
    const std::string words = refused.error().message();
    QVERIFY2(words.find("unknown family 'brandnew'") != words.npos && words.find("strange_rank") != words.npos, words.c_str());
    QVERIFY2(words.find("--as ") != words.npos && words.find("ONNX") != words.npos, words.c_str());
    const auto named = built(text, {1, 16}, "qwen3"), truly = built(R"({"model_type": "qwen3", )" + kSizes + "}");
    QVERIFY(named && truly);
    QCOMPARE(named->parameters, truly->parameters);
    QVERIFY(named->parameters != built(text, {1, 16}, "llama")->parameters);
    QCOMPARE(read(text, {1, 16}, "nosuch").error().code, ErrorCode::usage);
  }
  void an_unknown_family_with_known_keys_is_read_with_a_note() {
    const auto unknown = built(R"({"model_type": "brandnew", "hidden_act": "silu", "attention_bias": false, )" + kSizes + "}");
    const auto llama = built(R"({"model_type": "llama", )" + kSizes + "}");
    QVERIFY(unknown && llama);
    QCOMPARE(unknown->parameters, llama->parameters);
    QCOMPARE(unknown->warnings.size(), std::size_t(1));
    QVERIFY(unknown->warnings[0].find("unknown family 'brandnew'") != std::string::npos);
    QVERIFY(unknown->warnings[0].find("--as") != std::string::npos);
  }

  // --- other writers ----------------------------------------------------------------------------------------------
  void numbers_that_json_lacks_trouble_only_their_readers() {
    const auto plain = built(R"({"model_type": "llama", )" + kSizes + "}");
    const auto odd = built(R"({"model_type": "llama", "time_step_limit": [0.0, Infinity], "x": NaN, "y": -Infinity, )" +
                           std::string("\"z\": \"NaN \\\" Infinity\", ") + kSizes + "}");
    QVERIFY(odd);
    QCOMPARE(odd->parameters, plain->parameters);
  }
  void null_and_zero_mean_none() {
    const std::string shared = R"({"model_type": "qwen2_moe", "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2, )";
    const auto with = built(shared + R"("shared_expert_intermediate_size": 48, )" + kSizes + "}");
    for (const char* none : {"0", "null"}) {
      const auto without = built(shared + "\"shared_expert_intermediate_size\": " + none + ", " + kSizes + "}");
      QVERIFY2(without, none);
      QCOMPARE(with->parameters - without->parameters, std::int64_t(2 * (3 * 64 * 48 + 64)));
    }
  }
  void the_outer_config_says_whether_the_table_is_tied() {
    const auto both = [](const char* outer, const char* inner) {
      return built(std::string(R"({"model_type": "llava", )") + outer + R"("text_config": {"model_type": "llama", )" +
                   inner + kSizes + "}}")->parameters;
    };
    const std::int64_t tied = both(R"("tie_word_embeddings": true, )", R"("tie_word_embeddings": false, )");
    const std::int64_t loose = both(R"("tie_word_embeddings": false, )", R"("tie_word_embeddings": true, )");
    QCOMPARE(loose - tied, std::int64_t(100 * 64));
    QCOMPARE(both("", R"("tie_word_embeddings": true, )"), tied);
  }
  void decoders_without_their_encoder_count_what_they_hold() {
    const char* bart = R"({"model_type": "bart", "architectures": ["%1"], "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
      "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "vocab_size": 100})";
    const auto alone = built(QString(bart).arg("BartForCausalLM").toStdString());
    const auto whole = built(QString(bart).arg("BartForConditionalGeneration").toStdString());
    QVERIFY(alone && whole && find(*alone, "layer1/cross/out") && !find(*alone, "encoder/layer0/attention/q"));
    const std::int64_t attention = 4 * (64 * 64 + 64), mlp = 2 * 64 * 96 + 96 + 64, norm = 2 * 64;
    const std::int64_t encoder = 1026 * 64 + norm + 2 * (attention + mlp + 2 * norm);
    QCOMPARE(whole->parameters - alone->parameters, encoder);
  }
  void checkpoints_of_meta_and_deepseek_have_keys_of_their_own() {
    // Llama 2 7B: 4096 * 8 / 3 rounded up to a multiple of 256 is 11008.
    QCOMPARE(built(R"({"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-05, "vocab_size": 32000})")
                 ->parameters, std::int64_t(6738415616));
    // Llama 3 8B.
    QCOMPARE(built(R"({"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256,
                 "multiple_of": 1024, "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0})")
                 ->parameters, std::int64_t(8030261248));
    // DeepSeek-V3, as its inference code has it.
    QCOMPARE(built(R"({"vocab_size": 129280, "dim": 7168, "inter_dim": 18432, "moe_inter_dim": 2048, "n_layers": 61,
                 "n_dense_layers": 3, "n_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
                 "n_activated_experts": 8, "n_expert_groups": 8, "n_limited_groups": 4, "route_scale": 2.5,
                 "score_func": "sigmoid", "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                 "qk_rope_head_dim": 64, "v_head_dim": 128, "dtype": "fp8"})")
                 ->parameters, std::int64_t(671026419200));
  }

  // --- layers that carry a state, or choose their keys ----------------------------------------------------------
  void state_spaces_follow_the_closed_formula() {
    const double b = 2, s = 32, h = 64, d = 128, n = 16, g = 2, heads = 4, k = 4, words = 100;
    const auto model = built(R"({"model_type": "mamba2", "hidden_size": 64, "expand": 2, "num_heads": 4, "head_dim": 32,
      "state_size": 16, "n_groups": 2, "conv_kernel": 4, "chunk_size": 8, "num_hidden_layers": 3, "vocab_size": 100,
      "tie_word_embeddings": false})", {2, 32});
    QVERIFY(model);
    const double products = h * (2 * d + 2 * g * n + heads) + d * h, convolution = k * (d + 2 * g * n);
    const double scan = 8 * (g * n + d) + 2 * n * d;
    QCOMPARE(summarise(*model).macs_forward, b * s * (3 * (products + convolution + scan) + h * words));
    QCOMPARE(summarise(*model).macs_backward, 2 * summarise(*model).macs_forward);
    const Operator* op = find(*model, "layer1/mixer/scan");
    QVERIFY(op);
    for (const auto& loop : op->dims) {
      if (loop.name == DimName::sequence) QVERIFY(!loop.splittable);
      if (loop.name == DimName::head) QVERIFY(loop.splittable && loop.size == 4);
    }
    // One state [head, channel, state] is kept for each chunk of 8 positions.
    QCOMPARE(model->tensors[op->outputs[1].tensor].elements(), std::int64_t(2 * 4 * 128 * 16));
  }
  void delta_nets_follow_the_closed_formula() {
    const double b = 2, h = 64, f = 96, hk = 2, hv = 4, dk = 24, dv = 16, kernel = 4, words = 100;
    const double keys = hk * dk, values = hv * dv;
    const double products = h * (2 * keys + 2 * values + 2 * hv) + values * h + 3 * h * f;
    for (const int positions : {32, 64, 160}) {
      const auto model = built(R"({"model_type": "qwen3_5_text", "layer_types": ["linear_attention"], "num_hidden_layers": 1,
        "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96,
        "vocab_size": 100, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 24,
        "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4})", {2, positions});
      QVERIFY(model);
      const double chunk = positions == 32 ? 32 : 64;  // 64 positions, but no more than there are
      const double scan = hv * (chunk * (3 * dk + 2 * dv) + 3 * dk * dv);
      QCOMPARE(summarise(*model).macs_forward,
               b * positions * (products + kernel * (2 * keys + values) + scan + h * words));
      // One state [head, value channel, key channel] is kept for each chunk.
      const Operator* op = find(*model, "layer0/mixer/scan");
      QVERIFY(op);
      QCOMPARE(model->tensors[op->outputs[1].tensor].elements(),
               std::int64_t(2 * (positions == 160 ? 3 : 1) * 4 * 24 * 16));
    }
  }
  void an_indexer_pays_for_itself() {
    const auto model_of = [](int chosen) {
      return built(R"({"model_type": "deepseek_v32", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1,
        "intermediate_size": 96, "vocab_size": 100, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 4, "v_head_dim": 10, "first_k_dense_replace": 1, "index_n_heads": 3, "index_head_dim": 8,
        "index_topk": )" + std::to_string(chosen) + "}", {2, 32});
    };
    const auto all = model_of(4096), few = model_of(8);
    QVERIFY(all && few);
    QCOMPARE(all->parameters, few->parameters);
    // Scores and values of 32 keys against 8, for 4 heads; the indexer itself costs the same.
    QCOMPARE(summarise(*all).macs_forward - summarise(*few).macs_forward, 2.0 * 32 * (32 - 8) * 4 * (12 + 4 + 10));
    const double index = 24 * 3 * 8 + 64 * 8 + 64 * 3 + 32 * 3 * 8 + 32 * 3;
    double found = 0;
    for (const auto& op : few->operators)
      if (op.name.find("/index_") != std::string::npos) found += op.forward_macs;
    QCOMPARE(found, 2.0 * 32 * index);
    QCOMPARE(few->tensors[find(*few, "layer0/attention/scores")->outputs[0].tensor].shape,
             (std::vector<std::int64_t>{2, 4, 32, 8}));
  }
};

QTEST_APPLESS_MAIN(HuggingfaceReadingTest)
#include "huggingface_reading_test.moc"
