// SPDX-License-Identifier: Apache-2.0
// Families whose layers differ from the usual ones, against the counts of published models and against formulas that
// know nothing of the importer: what a layer holds, term by term.
#include <QTest>
#include <algorithm>

#include "core/import/huggingface/families.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

using Count = std::int64_t;

/// A product with or without a bias.
Count product(Count in, Count out, bool bias) { return in * out + (bias ? out : 0); }
/// LayerNorm has a scale and a bias, an RMS norm a scale.
Count layer_norm(Count channels) { return 2 * channels; }
/// Queries and the product after them are `wide`, keys and values `narrow`.
Count attention(Count hidden, Count wide, Count narrow, bool in_bias, bool out_bias) {
  return product(hidden, wide, in_bias) + 2 * product(hidden, narrow, in_bias) + product(wide, hidden, out_bias);
}
Count plain_mlp(Count hidden, Count inner, bool bias) {
  return product(hidden, inner, bias) + product(inner, hidden, bias);
}
Count gated_mlp(Count hidden, Count inner) { return 3 * hidden * inner; }

Expected<ModelPtr> made(const std::string& text, ModelBinding binding = {1, 0}) {
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) return source.error();
  return (*source)->bind(binding);
}

std::vector<std::int64_t> shape_of(const Model& model, const std::string& name) {
  for (const auto& op : model.operators)
    if (op.name == name) return model.tensors[op.outputs[0].tensor].shape;
  return {};
}

}  // namespace

class HuggingfaceCountsTest : public QObject {
  Q_OBJECT

 private slots:
  void published_models_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<qint64>("published");
    QTest::addColumn<qint64>("formula");
    QTest::addColumn<QString>("warning");
    const auto row = [](const char* name, const char* config, Count published, Count formula,
                        const char* warning = nullptr) {
      QTest::newRow(name) << QString(config) << qint64(published) << qint64(formula) << QString(warning);
    };
    // Tied embeddings; one norm a layer, without a bias, before attention and MLP side by side.
    row("Command R", R"("cohere")", 34980831232,
        256000LL * 8192 + 40 * (8192 + attention(8192, 8192, 8192, false, false) + gated_mlp(8192, 22528)) + 8192);
    // Queries and keys have norms with a scale of its own for every head.
    row("Command R+", R"("cohere", "hidden_size": 12288, "num_hidden_layers": 64, "num_attention_heads": 96,
        "num_key_value_heads": 8, "intermediate_size": 33792, "use_qk_norm": true)",
        103810674688,
        256000LL * 12288 +
            64 * (12288 + attention(12288, 12288, 1024, false, false) + (96 + 8) * 128 + gated_mlp(12288, 33792)) +
            12288);
    row("StarCoder2-3B", R"("starcoder2")", 3030371328,
        49152 * 3072 +
            30 * (2 * layer_norm(3072) + attention(3072, 3072, 256, true, true) + plain_mlp(3072, 12288, true)) +
            layer_norm(3072));
    row("StarCoder2-7B", R"("starcoder2", "hidden_size": 4608, "num_hidden_layers": 32, "num_attention_heads": 36,
        "num_key_value_heads": 4, "intermediate_size": 18432)",
        7173923840,
        49152 * 4608 +
            32 * (2 * layer_norm(4608) + attention(4608, 4608, 512, true, true) + plain_mlp(4608, 18432, true)) +
            layer_norm(4608));
    row("StarCoderBase", R"("gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576,
        "n_positions": 8192, "vocab_size": 49152, "multi_query": true)",
        15517456384,
        (49152 + 8192) * 6144LL +
            40 * (2 * layer_norm(6144) + attention(6144, 6144, 128, true, true) + plain_mlp(6144, 24576, true)) +
            layer_norm(6144));
    // Norms after each branch, of queries and keys over all heads, and the last one.
    row("OLMo-2-7B", R"("olmo2", "vocab_size": 100352, "max_position_embeddings": 4096)", 7298617344,
        2 * 100352LL * 4096 +
            32 * (2 * 4096 + 2 * 4096 + attention(4096, 4096, 4096, false, false) + gated_mlp(4096, 11008)) + 4096);
    row("Phi-3.5-MoE", R"("phimoe", "attention_bias": true, "lm_head_bias": true)", 41873153344,
        32064LL * 4096 + product(4096, 32064, true) +
            32 * (2 * layer_norm(4096) + attention(4096, 4096, 1024, true, true) + 4096 * 16 +
                  16 * gated_mlp(4096, 6400)) +
            layer_norm(4096));
    row("DeepSeekMoE-16B",
        R"("deepseek", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 102400)",
        16375728128,
        2 * 102400LL * 2048 + 28 * (2 * 2048 + attention(2048, 2048, 2048, false, false)) + gated_mlp(2048, 10944) +
            27 * (2048 * 64 + 64 * gated_mlp(2048, 1408) + gated_mlp(2048, 2 * 1408)) + 2048);
    row("Granite-3.0-8B", R"("granite", "num_hidden_layers": 40, "intermediate_size": 12800, "num_key_value_heads": 8,
        "vocab_size": 49155, "tie_word_embeddings": true)",
        8170848256,
        49155LL * 4096 + 40 * (2 * 4096 + attention(4096, 4096, 1024, false, false) + gated_mlp(4096, 12800)) + 4096);
    // Biases everywhere but in queries, keys and values.
    row("GPT-Neo-1.3B", R"("gpt_neo", "attention_types": [[["global", "local"], 12]])", 1315575808,
        (50257 + 2048) * 2048LL +
            24 * (2 * layer_norm(2048) + attention(2048, 2048, 2048, false, true) + plain_mlp(2048, 8192, true)) +
            layer_norm(2048),
        "window_size 256 of the local layers is not modelled");
    row("GPT-Neo-125M", R"("gpt_neo", "hidden_size": 768, "num_layers": 12, "num_heads": 12,
        "attention_layers": ["global", "local"])",
        125198592,
        (50257 + 2048) * 768 +
            12 * (2 * layer_norm(768) + attention(768, 768, 768, false, true) + plain_mlp(768, 3072, true)) +
            layer_norm(768),
        "window_size 256 of the local layers is not modelled");
    row("ELECTRA-base", R"("electra", "hidden_size": 768, "embedding_size": 768, "num_attention_heads": 12,
        "intermediate_size": 3072)",
        108891648,
        (30522 + 512 + 2) * 768 + layer_norm(768) +
            12 * (2 * layer_norm(768) + attention(768, 768, 768, true, true) + plain_mlp(768, 3072, true)),
        "head of the discriminator or generator is left out");
    // Narrow embeddings, widened by a product with a bias.
    row("ELECTRA-small", R"("electra")", 13483008,
        (30522 + 512 + 2) * 128 + layer_norm(128) + product(128, 256, true) +
            12 * (2 * layer_norm(256) + attention(256, 256, 256, true, true) + plain_mlp(256, 1024, true)),
        "head of the discriminator or generator is left out");
    const char* glm = R"("chatglm", "architectures": ["ChatGLMModel"], "multi_query_attention": true, "num_layers": %1,
        "multi_query_group_num": 2, "add_qkv_bias": true, "padded_vocab_size": %2, "seq_length": 8192)";
    const auto glm_count = [](Count layers, Count words) {
      return 2 * words * 4096 + layers * (2 * 4096 + attention(4096, 4096, 256, true, false) + 3 * 4096LL * 13696) +
             4096;
    };
    row("ChatGLM3-6B", qPrintable(QString(glm).arg(28).arg(65024)), 6243584000, glm_count(28, 65024));
    row("GLM-4-9B", qPrintable(QString(glm).arg(40).arg(151552)), 9399951360, glm_count(40, 151552));
    // Every expert's products have biases; each head has a sink.
    const auto oss_count = [](Count layers, Count experts) {
      return 2 * 201088LL * 2880 + 2880 +
             layers * (2 * 2880 + attention(2880, 4096, 512, true, true) + 64 + product(2880, experts, true) +
                       experts * (product(2880, 2 * 2880, true) + product(2880, 2880, true)));
    };
    row("gpt-oss-20b",
        R"("gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32, "experts_per_token": 4, "sliding_window": 128)",
        20914757184, oss_count(24, 32), "sliding_window 128 is not modelled");
    // A product per patch, a class token, a position for each; the classifier has a bias.
    const auto vit_count = [](Count layers, Count hidden, Count positions) {
      return product(3 * 16 * 16, hidden, true) + hidden + positions * hidden + layer_norm(hidden) +
             layers * (2 * layer_norm(hidden) + attention(hidden, hidden, hidden, true, true) +
                       plain_mlp(hidden, 4 * hidden, true));
    };
    row("ViT-B/16", R"("vit", "num_labels": 1000, "architectures": ["ViTForImageClassification"])", 86567656,
        vit_count(12, 768, 197) + product(768, 1000, true));
    row("ViT-L/16", R"("vit", "num_labels": 1000, "hidden_size": 1024, "num_hidden_layers": 24,
        "num_attention_heads": 16, "intermediate_size": 4096)",
        304326632, vit_count(24, 1024, 197) + product(1024, 1000, true));
    row("ViT-B/16 of 384 pixels", R"("vit", "num_labels": 1000, "image_size": [384, 384])", 86859496,
        vit_count(12, 768, 577) + product(768, 1000, true));
    row("ViT-B/16, ImageNet-21k", R"("vit", "architectures": ["ViTModel"])", 86389248,
        vit_count(12, 768, 197) + product(768, 768, true), "no loss");
    // Keys have no bias. The encoder's positions are counted where they are published, though nothing trains them.
    const auto whisper_count = [](Count layers, Count hidden, Count bins, Count words) {
      const Count own = attention(hidden, hidden, hidden, true, true) - hidden + layer_norm(hidden);
      const Count mlp = plain_mlp(hidden, 4 * hidden, true) + layer_norm(hidden);
      return product(3 * bins, hidden, true) + product(3 * hidden, hidden, true) + 1500 * hidden +
             layers * (own + mlp) + layer_norm(hidden) + (words + 448) * hidden + layers * (2 * own + mlp) +
             layer_norm(hidden);
    };
    row("Whisper-tiny", R"("whisper", "architectures": ["WhisperForConditionalGeneration"])", 37760640,
        whisper_count(4, 384, 80, 51865));
    row("Whisper-small",
        R"("whisper", "d_model": 768, "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 12,
        "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072)",
        241734912, whisper_count(12, 768, 80, 51865));
    row("Whisper-large-v3",
        R"("whisper", "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20,
        "decoder_attention_heads": 20, "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "vocab_size": 51866,
        "num_mel_bins": 128)",
        1543490560, whisper_count(32, 1280, 128, 51866));
    // No table of positions; one of distances for all layers, normed, seen through each layer's own projections.
    const auto deberta_count = [](Count layers, Count hidden) {
      return 128100 * hidden + layer_norm(hidden) + 2 * 256 * hidden + layer_norm(hidden) +
             layers * (2 * layer_norm(hidden) + attention(hidden, hidden, hidden, true, true) +
                       plain_mlp(hidden, 4 * hidden, true));
    };
    const char* deberta = R"("deberta-v2", "hidden_size": %1, "num_hidden_layers": %2, "num_attention_heads": %3,
        "intermediate_size": %4, "type_vocab_size": 0, "relative_attention": true, "max_relative_positions": -1,
        "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p",
        "position_biased_input": false)";
    row("DeBERTa-v3-base", qPrintable(QString(deberta).arg(768).arg(12).arg(12).arg(3072)), 183831552,
        deberta_count(12, 768));
    row("DeBERTa-v3-large", qPrintable(QString(deberta).arg(1024).arg(24).arg(16).arg(4096)), 434012160,
        deberta_count(24, 1024));
    row("gpt-oss-120b", R"("gpt_oss")", 116829156672, oss_count(36, 128), "sliding_window 128 is not modelled");
  }
  void published_models() {
    QFETCH(QString, config);
    QFETCH(qint64, published);
    QFETCH(qint64, formula);
    QFETCH(QString, warning);
    QCOMPARE(formula, published);
    const auto model = made("{\"model_type\": " + config.toStdString() + "}");
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    QCOMPARE(qint64((*model)->parameters + (*model)->buffers), published);
    QCOMPARE((*model)->warnings.empty(), warning.isEmpty());
    for (const auto& one : (*model)->warnings) QVERIFY2(one.find(warning.toStdString()) != one.npos, one.c_str());
    for (std::size_t t = 0; t < (*model)->tensors.size(); ++t)
      if ((*model)->tensors[TensorId(t)].role == TensorRole::parameter) QVERIFY(!(*model)->uses[TensorId(t)].empty());
  }

  // What one switch adds, of two layers of 64 with four heads of 16, two of keys and values, and an MLP of 128: figures
  // that no published model shows, since the switch has one value in all of them.
  void a_switch_adds_what_it_stands_for_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("text");
    QTest::addColumn<qint64>("difference");
    const auto row = [](const char* family, const char* text, Count difference) {
      QTest::newRow(qPrintable(QString("%1 %2").arg(family, text)))
          << QString(family) << QString(text) << qint64(difference);
    };
    constexpr Count kKeysAndValues = 2 * 32, kHidden = 64, kInner = 128, kLayers = 2;
    row("chatglm", "add_qkv_bias", kLayers * (kHidden + kKeysAndValues));
    row("chatglm", "add_bias_linear", kLayers * (kHidden + kKeysAndValues + kHidden + 2 * kInner + kHidden));
    row("llama", "attention_bias", kLayers * (kHidden + kKeysAndValues + kHidden));
    row("llama", "mlp_bias", kLayers * (2 * kInner + kHidden));
    row("llama", "tie_word_embeddings", -100 * kHidden);
    row("starcoder2", "use_bias", kLayers * (kHidden + kKeysAndValues + kHidden + kInner + kHidden));
    row("cohere", "use_qk_norm", kLayers * (kHidden + kKeysAndValues / 2));
    row("cohere", "attention_bias", kLayers * (kHidden + kKeysAndValues + kHidden));
    row("falcon", "bias", kLayers * (kHidden + 2 * 16 + kHidden + kInner + kHidden));  // one head of keys
  }
  void a_switch_adds_what_it_stands_for() {
    QFETCH(QString, family);
    QFETCH(QString, text);
    QFETCH(qint64, difference);
    qint64 parameters[2] = {};
    for (const bool on : {false, true}) {
      const QString config =
          QString(R"({"model_type": "%1", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
          "multi_query_attention": true, "multi_query_group_num": 2, "kv_channels": 16, "intermediate_size": 128,
          "ffn_hidden_size": 128, "num_hidden_layers": 2, "num_layers": 2, "vocab_size": 100,
          "padded_vocab_size": 100, "max_position_embeddings": 32, "seq_length": 32, "%2": %3})")
              .arg(family, text, on ? "true" : "false");
      const auto model = made(config.toStdString());
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      parameters[on] = (*model)->parameters;
    }
    QCOMPARE(parameters[1] - parameters[0], difference);
  }

  void only_local_layers_have_a_window() {
    const auto warnings = [](const char* types) {
      const auto model = made(std::string(R"({"model_type": "gpt_neo", "num_layers": 1, "attention_types": )") + types +
                              ", \"hidden_size\": 64, \"vocab_size\": 100}");
      return model ? (*model)->warnings.size() : std::size_t(99);
    };
    QCOMPARE(warnings(R"([[["global"], 1]])"), std::size_t(0));
    QCOMPARE(warnings(R"([[["local"], 1]])"), std::size_t(1));
  }

  void norms_over_all_heads_see_the_whole_projection() {
    const auto model = made(R"({"model_type": "olmo2", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100,
        "num_key_value_heads": 2, "intermediate_size": 96, "num_hidden_layers": 1})",
                            {2, 16});
    QVERIFY(model.has_value());
    using Shape = std::vector<std::int64_t>;
    QCOMPARE(shape_of(**model, "layer0/attention/q_norm"), (Shape{2, 16, 64}));
    QCOMPARE(shape_of(**model, "layer0/attention/k_norm"), (Shape{2, 16, 16}));
    QCOMPARE(shape_of(**model, "layer0/attention/q_turn"), (Shape{2, 2, 4, 16, 8}));
    QCOMPARE(shape_of(**model, "layer0/attention/scores"), (Shape{2, 2, 4, 16, 16}));
    for (const auto& op : (*model)->operators) {
      if (op.name != "layer0/attention/q_norm") continue;
      QCOMPARE(op.dims.size(), std::size_t(3));
      QVERIFY(op.dims[0].splittable && op.dims[1].splittable && !op.dims[2].splittable);
    }
  }

  /// MACs of ViT-B/16 are known, too: the patches, 12 layers over 197 positions, the classifier.
  void pictures_are_cut_into_patches() {
    const auto model = made(R"({"model_type": "vit", "num_labels": 1000})", {2, 5});  // a sequence is not asked for
    QVERIFY(model.has_value());
    using Shape = std::vector<std::int64_t>;
    QCOMPARE((*model)->sequence, std::int64_t(197));
    QCOMPARE(shape_of(**model, "embed/patches"), (Shape{2, 768, 14, 14}));
    QCOMPARE(shape_of(**model, "embed/add"), (Shape{2, 197, 768}));
    QCOMPARE(shape_of(**model, "layer11/attention/scores"), (Shape{2, 12, 197, 197}));
    QCOMPARE(shape_of(**model, "head/score"), (Shape{2, 1, 1000}));
    const double layer = 197.0 * (4 * 768 * 768 + 2 * 197 * 768 + 8 * 768 * 768);
    QCOMPARE(summarise(**model).macs_forward, 2 * (196.0 * 768 * 768 + 12 * layer + 768 * 1000));
  }

  void the_encoder_of_sound_has_its_own_length() {
    const auto model = made(R"({"model_type": "whisper"})", {2, 100});
    QVERIFY(model.has_value());
    using Shape = std::vector<std::int64_t>;
    QCOMPARE((*model)->sequence, std::int64_t(100));
    QCOMPARE(qint64((*model)->buffers), qint64(1500 * 384));
    QCOMPARE(shape_of(**model, "spectrogram"), (Shape{2, 80, 3000}));
    QCOMPARE(shape_of(**model, "encoder/embed/frames"), (Shape{2, 384, 3000}));
    QCOMPARE(shape_of(**model, "encoder/embed/halves"), (Shape{2, 384, 1500}));
    QCOMPARE(shape_of(**model, "encoder/layer3/attention/scores"), (Shape{2, 6, 1500, 1500}));
    QCOMPARE(shape_of(**model, "decoder/layer3/attention/scores"), (Shape{2, 6, 100, 100}));
    QCOMPARE(shape_of(**model, "decoder/layer3/cross/scores"), (Shape{2, 6, 100, 1500}));
    const double h = 384, e = 1500, d = 100;
    const double heard = e * (2 * 3 * 80 * h + 3 * h * h) + 4 * (e * 12 * h * h + 2 * e * e * h);
    const double said = 4 * (d * (4 + 2 + 8) * h * h + e * 2 * h * h + 2 * d * d * h + 2 * d * e * h) + d * h * 51865;
    QCOMPARE(summarise(**model).macs_forward, 2 * (heard + said));
    QVERIFY(!made(R"({"model_type": "whisper"})", {1, 449}).has_value());
  }

  void distances_are_attended_to() {
    const std::string text =
        R"({"model_type": "deberta-v2", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
        "num_attention_heads": 4, "intermediate_size": 96, "relative_attention": true, "position_buckets": 8,
        "norm_rel_ebd": "layer_norm", "position_biased_input": false, "pos_att_type": ["p2c", "c2p"])";
    const auto model = made(text + R"(, "share_att_key": true})", {2, 32});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    using Shape = std::vector<std::int64_t>;
    QCOMPARE(shape_of(**model, "distances/norm"), (Shape{16, 64}));
    QCOMPARE(shape_of(**model, "layer1/attention/position_k"), (Shape{4, 16, 16}));
    QCOMPARE(shape_of(**model, "layer1/attention/to_position"), (Shape{2, 4, 32, 16}));
    QCOMPARE(shape_of(**model, "layer1/attention/to_content_turn"), (Shape{2, 4, 32, 32}));
    QCOMPARE(shape_of(**model, "layer1/attention/scores_sum"), (Shape{2, 4, 32, 32}));
    // Two products of the table with weights, and of queries and keys with what comes of it, more than BERT.
    const double h = 64, s = 32, r = 16;
    const double layer = 2 * s * (4 * h * h + 2 * s * h + 2 * h * 96) + 2 * r * h * h + 2 * 2 * s * r * h;
    QCOMPARE(summarise(**model).macs_forward, 2 * layer + 2 * s * h * 100);
    // No key is split, whatever the sizes: a sequence may be as long as the table.
    const auto square = made(text + R"(, "share_att_key": true})", {2, 16});
    QVERIFY(square.has_value());
    for (const auto& op : (*square)->operators)
      for (const auto& loop : op.dims)
        if (loop.name == DimName::other || loop.name == DimName::key_sequence)
          QVERIFY2(!loop.splittable, op.name.c_str());
    // With projections of their own each layer holds two further products.
    const auto own = made(text + "}", {2, 32});
    QVERIFY(own.has_value());
    QCOMPARE(qint64((*own)->parameters - (*model)->parameters), qint64(2 * 2 * product(64, 64, true)));
    const auto one = made(text.substr(0, text.find("[\"p2c")) + "\"c2p\"}", {2, 32});
    QVERIFY(one.has_value());
    QCOMPARE(qint64((*one)->parameters - (*model)->parameters), qint64(2 * product(64, 64, true)));
  }

  void what_is_not_supported_says_so_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("said");
    QTest::newRow("first ChatGLM") << R"("chatglm", "position_encoding_2d": true, "inner_hidden_size": 16384)"
                                   << "first ChatGLM";
    QTest::newRow("masked pictures") << R"("vit", "architectures": ["ViTForMaskedImageModeling"])"
                                     << "ViTForMaskedImageModeling";
    QTest::newRow("DeBERTa with a convolution") << R"("deberta-v2", "conv_kernel_size": 3)"
                                                << "conv_kernel_size";
    QTest::newRow("unused distances") << R"("deberta-v2", "relative_attention": true)"
                                      << "pos_att_type";
    QTest::newRow("distances without a norm") << R"("deberta-v2", "relative_attention": true, "pos_att_type": "c2p")"
                                              << "norm_rel_ebd";
    QTest::newRow("narrow embeddings") << R"("deberta-v2", "embedding_size": 128)"
                                       << "embedding_size";
    QTest::newRow("three sides") << R"("vit", "image_size": [224, 224, 3])"
                                 << "height and width";
    QTest::newRow("large patch") << R"("vit", "patch_size": 225)"
                                 << "larger than the picture";
    QTest::newRow("sound to classes") << R"("whisper", "architectures": ["WhisperForAudioClassification"])"
                                      << "WhisperForAudioClassification";
  }
  void what_is_not_supported_says_so() {
    QFETCH(QString, config);
    QFETCH(QString, said);
    const auto model = made("{\"model_type\": " + config.toStdString() + "}");
    QVERIFY(!model.has_value());
    QCOMPARE(model.error().code, ErrorCode::bad_input);
    QVERIFY2(model.error().message().find(said.toStdString()) != std::string::npos, model.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(HuggingfaceCountsTest)
#include "huggingface_counts_test.moc"
