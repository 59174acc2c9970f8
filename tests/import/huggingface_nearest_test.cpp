// SPDX-License-Identifier: Apache-2.0
// What an unknown config is read like, or offered to be: a family of its own kind, else none and the way out. And every
// family of the data folder: right, or with a note, or refused with a way out.
#include <QTest>
#include <cmath>
#include <fstream>

#include "core/base/text.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"
#include "core/search/registry.h"
#include "tests/test_data.h"

using namespace turnpoint;

namespace {

QString refusal_of(const std::string& text) {
  const auto source = parse_huggingface_config(text, "c.json");
  return source ? QString() : QString::fromStdString(source.error().message());
}

qint64 parameters_of(const std::string& text) {
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) return qWarning("%s", source.error().message().c_str()), 0;
  const auto model = (*source)->bind({1, 0});
  if (!model) return qWarning("%s", model.error().message().c_str()), 0;
  return (*model)->parameters;
}

const std::string kSizes = R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
  "intermediate_size": 128)";

}  // namespace

class HuggingfaceNearestTest : public QObject {
  Q_OBJECT

 private slots:
  void an_offer_is_of_the_same_kind_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* name, const std::string& config, const char* said) {
      QTest::newRow(name) << QString::fromStdString("{" + config + "}") << said;
    };
    const std::string more = R"(, "odd_rank": 7, )" + kSizes;
    row("decoder", R"("model_type": "oddity", "architectures": ["OddForCausalLM"], "vocab_size": 100)" + more,
        "--as llama");
    row("sound", R"("model_type": "oddity_audio", "num_mel_bins": 80)" + more, "encoder' is no family");
    row("picture", R"("model_type": "oddity", "image_size": 224, "patch_size": 16, "num_channels": 3)" + more,
        "vi");
    row("parts", R"("model_type": "oddity", "audio_config": {"hidden_size": 64}, "text_config": {"model_type": "new"})",
        "a model of several parts");
    row("convolutions", R"("model_type": "oddnet", "architectures": ["OddForImageClassification"], "depths": [1, 2])",
        "no family of its kind (model of pictures)");
    row("nothing told", R"("model_type": "oddity", "horizon": 7, "hidden_size": 64)", "no family has keys like these");
  }
  void an_offer_is_of_the_same_kind() {
    QFETCH(QString, config);
    QFETCH(QString, said);
    const QString message = refusal_of(config.toStdString());
    QVERIFY2(message.contains("ONNX"), qPrintable(message));
    if (QTest::currentDataTag() == QByteArray("sound")) {
      // Never a decoder, nor RWKV, whose few keys everything has.
      QVERIFY2(!message.contains("--as") || message.contains("--as audio") || message.contains("--as voxtral") ||
                   message.contains("--as qwen2_audio") || message.contains("--as glmasr"),
               qPrintable(message));
    } else if (QTest::currentDataTag() == QByteArray("picture")) {
      QVERIFY2(message.contains("--as") && (message.contains("vi") || message.contains("deit")), qPrintable(message));
    } else {
      QVERIFY2(message.contains(said), qPrintable(message));
      QCOMPARE(message.contains("--as"), said.contains("--as"));
    }
  }

  // Counts that the transformers library (5.23) has for these configs on the meta device.
  void sizes_other_than_the_usual_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<qint64>("parameters");
    QTest::newRow("doge.1") << QString(R"({"model_type": "doge", "architectures": ["DogeForCausalLM"], "hidden_size": 256,
        "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 100,
        "num_hidden_layers": 2, "vocab_size": 500, "attention_bias": true, "mlp_bias": false,
        "tie_word_embeddings": true})")
                          << qint64(679824);
    QTest::newRow("doge.5") << QString(R"({"model_type": "doge", "architectures": ["DogeForCausalLM"], "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 100,
        "num_hidden_layers": 1, "vocab_size": 100, "attention_bias": true, "mlp_bias": false,
        "tie_word_embeddings": true})")
                          << qint64(38500);
    QTest::newRow("axk2.1") << QString(R"({"model_type": "axk2", "architectures": ["AXK2ForCausalLM"], "hidden_size": 192,
        "num_attention_heads": 8, "intermediate_size": 256, "moe_intermediate_size": 32,
        "num_hidden_layers": 4, "vocab_size": 500, "q_lora_rank": 32, "kv_lora_rank": 16,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "index_n_heads": 2,
        "index_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
        "gated_norm_rank": 4, "attention_bias": false})")
                          << qint64(798464);
    QTest::newRow("axk2.5") << QString(R"({"model_type": "axk2", "architectures": ["AXK2ForCausalLM"], "hidden_size": 64,
        "num_attention_heads": 8, "intermediate_size": 256, "moe_intermediate_size": 48,
        "num_hidden_layers": 2, "vocab_size": 500, "q_lora_rank": 24, "kv_lora_rank": 40,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 24, "index_n_heads": 2,
        "index_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 2,
        "gated_norm_rank": 4, "attention_bias": true})")
                          << qint64(259856);
    QTest::newRow("xlstm.0") << QString(R"({"model_type": "xlstm", "architectures": ["xLSTMForCausalLM"], "hidden_size": 320,
        "num_heads": 2, "num_hidden_layers": 2, "vocab_size": 500, "qk_dim_factor": 1.0,
        "v_dim_factor": 1.0, "ffn_proj_factor": 2.667})")
                          << qint64(3069128);
    QTest::newRow("xlstm.5") << QString(R"({"model_type": "xlstm", "architectures": ["xLSTMForCausalLM"], "hidden_size": 320,
        "num_heads": 4, "num_hidden_layers": 2, "vocab_size": 500, "qk_dim_factor": 0.5,
        "v_dim_factor": 1.0, "ffn_proj_factor": 2.667})")
                          << qint64(2866896);
    QTest::newRow("clip_text_model.1") << QString(R"({"model_type": "clip_text_model", "architectures": ["CLIPTextModel"], "hidden_size": 256,
        "intermediate_size": 300, "num_hidden_layers": 2, "num_attention_heads": 4,
        "vocab_size": 100})")
                          << qint64(882520);
    QTest::newRow("clip_text_model.5") << QString(R"({"model_type": "clip_text_model", "architectures": ["CLIPTextModel"], "hidden_size": 64,
        "intermediate_size": 300, "num_hidden_layers": 2, "num_attention_heads": 4,
        "vocab_size": 777})")
                          << qint64(166104);
    QTest::newRow("audio-spectrogram-transformer.1") << QString(R"({"model_type": "audio-spectrogram-transformer", "architectures": ["ASTModel"],
        "hidden_size": 256, "intermediate_size": 100, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_mel_bins": 64, "max_length": 301, "frequency_stride": 10,
        "time_stride": 9, "patch_size": 16, "qkv_bias": false})")
                          << qint64(738248);
    QTest::newRow("audio-spectrogram-transformer.5") << QString(R"({"model_type": "audio-spectrogram-transformer", "architectures": ["ASTModel"],
        "hidden_size": 64, "intermediate_size": 300, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_mel_bins": 64, "max_length": 301, "frequency_stride": 16, "time_stride": 10,
        "patch_size": 8, "qkv_bias": false})")
                          << qint64(123160);
    QTest::newRow("pixtral.1") << QString(R"({"model_type": "pixtral", "architectures": ["PixtralVisionModel"], "hidden_size": 256,
        "intermediate_size": 300, "num_hidden_layers": 2, "num_attention_heads": 4,
        "image_size": 128})")
                          << qint64(1182976);
    QTest::newRow("pixtral.5") << QString(R"({"model_type": "pixtral", "architectures": ["PixtralVisionModel"], "hidden_size": 64,
        "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4,
        "image_size": 128})")
                          << qint64(120640);
    QTest::newRow("video_llama_3_vision.1") << QString(R"({"model_type": "video_llama_3_vision", "architectures": ["VideoLlama3VisionModel"],
        "hidden_size": 256, "intermediate_size": 100, "num_hidden_layers": 2,
        "num_attention_heads": 4})")
                          << qint64(828872);
    QTest::newRow("video_llama_3_vision.5") << QString(R"({"model_type": "video_llama_3_vision", "architectures": ["VideoLlama3VisionModel"],
        "hidden_size": 64, "intermediate_size": 300, "num_hidden_layers": 2,
        "num_attention_heads": 2})")
                          << qint64(160664);
    QTest::newRow("glmasr_encoder.1") << QString(R"({"model_type": "glmasr_encoder", "architectures": ["GlmAsrEncoder"], "hidden_size": 256,
        "intermediate_size": 300, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4})")
                          << qint64(1132120);
    QTest::newRow("glmasr_encoder.5") << QString(R"({"model_type": "glmasr_encoder", "architectures": ["GlmAsrEncoder"], "hidden_size": 64,
        "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4})")
                          << qint64(96712);
  }
  void sizes_other_than_the_usual() {
    QFETCH(QString, config);
    QFETCH(qint64, parameters);
    QCOMPARE(parameters_of(config.toStdString()), parameters);
  }

  // A config that says no more than its family and class stands for the library's defaults.
  void families_are_right_noted_or_refused_with_a_way_out() {
    REQUIRE_DATA(folder);
    std::ifstream in(folder / "hf_families.csv");
    if (!in) QSKIP("hf_families.csv absent from the data folder");
    int right = 0, decoders = 0, right_decoders = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.ends_with('\r')) line.pop_back();
      const auto cells = split(line, ',');
      const auto truth = cells.size() == 3 ? parse_int(cells[2]) : std::nullopt;
      if (!truth) continue;
      const std::string name(cells[0]), head(cells[1]);
      const bool decoder = head.ends_with("ForCausalLM") || head.ends_with("LMHeadModel") || head.ends_with("Decoder");
      decoders += decoder;
      const auto source =
          parse_huggingface_config(R"({"model_type": ")" + name + R"(", "architectures": [")" + head + R"("]})", name);
      if (!source) {
        QVERIFY2(source.error().message().find("ONNX") != std::string::npos, source.error().message().c_str());
        continue;
      }
      const auto model = (*source)->bind({1, 0});
      QVERIFY2(model, name.c_str());
      const bool close = std::abs(double((*model)->parameters) / double(*truth) - 1) <= 0.005;
      QVERIFY2(close || !(*model)->warnings.empty(), name.c_str());
      right += close;
      right_decoders += close && decoder;
    }
    QVERIFY2(right_decoders >= 80, qPrintable(QString("%1 of %2").arg(right_decoders).arg(decoders)));
    QVERIFY(right > 100);
  }
};

QTEST_GUILESS_MAIN(HuggingfaceNearestTest)
#include "huggingface_nearest_test.moc"
