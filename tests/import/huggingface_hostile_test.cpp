// SPDX-License-Identifier: Apache-2.0
// Configs made to break the reader: one message with the file and the key, quickly and in little memory.
#include <sys/resource.h>
#include <QTemporaryDir>
#include <QTest>
#include <ctime>
#include <fstream>

#include "core/import/huggingface/families.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"
#include "sanitized.h"

using namespace turnpoint;

namespace {

/// Processor time since it was made: the machine may be busy with other tests.
class Stopwatch {
 public:
  double seconds() const { return double(std::clock() - begin_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_ = std::clock();
};
constexpr double kLongest = 5 * turnpoint::test::kSanitizerFactor;

/// Parse and bind; the error of whichever refuses.
std::optional<Error> refusal(const std::string& text) {
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) return source.error();
  const auto model = (*source)->bind({1, 0});
  if (!model) return model.error();
  return std::nullopt;
}

}  // namespace

class HuggingfaceHostileTest : public QObject {
  Q_OBJECT

 private slots:
  void refused_by_key_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const std::string& body, const char* message) {
      QTest::newRow(name) << QString::fromStdString("{\"model_type\": " + body + "}") << message;
    };
    row("nan", R"("mixtral", "num_local_experts": NaN)", "c.json: num_local_experts: must be a finite number, not NaN");
    row("infinity", R"("gpt2", "n_embd": Infinity)", "c.json: n_embd: must be a finite number, not Infinity");
    row("minus infinity", R"("gpt2", "n_embd": -Infinity)", "c.json: n_embd: must be a finite number, not -Infinity");
    row("nan below", R"("dbrx", "ffn_config": {"moe_top_k": NaN})",
        "c.json: ffn_config.moe_top_k: must be a finite number");
    row("beyond doubles", R"("gpt2", "n_embd": 1e999)", "c.json");
    row("twice", R"("gpt2", "n_embd": 768, "n_layer": 2, "n_embd": 64)", "c.json: n_embd: is given twice");
    row("twice below", R"("dbrx", "attn_config": {"kv_n_heads": 1, "kv_n_heads": 2})",
        "c.json: attn_config.kv_n_heads: is given twice");
    row("negative", R"("bloom", "n_layer": -3)", "c.json: n_layer: must be between 1 and 4096, not -3");
    row("layers", R"("t5", "num_layers": 1000000000)",
        "c.json: num_layers: must be between 1 and 4096, not 1000000000");
    row("decoder layers", R"("bart", "decoder_layers": 1e9)", "c.json: decoder_layers: must be between 1 and 4096");
    row("elements", R"("opt", "ffn_dim": 1000000000000000000000000000)",
        "c.json: ffn_dim: must be between 1 and 4194304");
    row("zero heads", R"("bart", "encoder_attention_heads": 0)", "c.json: encoder_attention_heads: must be between 1");
    row("zero heads below", R"("mpt", "attn_config": {"kv_n_heads": 0})",
        "c.json: attn_config.kv_n_heads: must be between 1");
    row("uneven heads", R"("bart", "encoder_attention_heads": 7)",
        "c.json: encoder_attention_heads: 7 heads do not divide the hidden size 1024");
    row("uneven key heads", R"("falcon", "new_decoder_architecture": true, "num_kv_heads": 8)",
        "c.json: num_kv_heads: 8 does not divide the 71");
    row("zero experts", R"("mixtral", "num_local_experts": 0)",
        "c.json: num_local_experts: must be between 1 and 65536, not 0");
    row("too many chosen", R"("mixtral", "num_experts_per_tok": 9)",
        "c.json: num_experts_per_tok: 9 experts per token of only 8");
    row("chosen missing", R"("deepseek_v2")", "c.json: num_experts_per_tok: is missing");
    row("groups", R"("deepseek_v3", "n_group": 7)", "c.json: n_group: 7 does not divide the 256 experts");
    row("rank", R"("deepseek_v3", "kv_lora_rank": 0)", "c.json: kv_lora_rank: must be between 1");
    row("layer list", R"("qwen3_moe", "mlp_only_layers": [0, 24])",
        "c.json: mlp_only_layers: must be a list of layer numbers below 24");
    row("layer list type", R"("qwen3_moe", "mlp_only_layers": {"0": 1})",
        "c.json: mlp_only_layers: must be a list of layer numbers");
    row("layer list entries", R"("qwen3_moe", "mlp_only_layers": [0.5])",
        "c.json: mlp_only_layers: must be a list of layer numbers");
    row("no object", R"("dbrx", "attn_config": [1, 2])", "c.json: attn_config: must be an object, not a list");
    row("nested key", R"("llava", "text_config": {"model_type": "llama", "hidden_size": 0})",
        "c.json: text_config.hidden_size: must be between");
    row("nested family", R"("llava", "text_config": {"model_type": "vicuna"})",
        "c.json: model_type: unknown family 'llava'");
    row("groups of layers", R"("albert", "num_hidden_groups": 13)",
        "c.json: num_hidden_groups: 13 groups are more than the 12 layers");
    row("inner groups", R"("albert", "inner_group_num": 2)",
        "c.json: inner_group_num: only one layer per group is supported");
    row("positions", R"("roberta", "max_position_embeddings": 2)",
        "c.json: max_position_embeddings: must be at least 3, not 2");
    row("flag", R"("falcon", "multi_query": 1)", "c.json: multi_query: must be true or false, not a whole number");
    row("deep", R"("gpt2", "x": )" + std::string(70, '[') + std::string(70, ']'),
        "c.json: nested deeper than 64 levels");
    row("all at their limits",
        R"("mixtral", "num_local_experts": 65536, "num_experts_per_tok": 65536, "num_hidden_layers": 4096,
        "hidden_size": 4194304, "intermediate_size": 4194304, "num_attention_heads": 65536, "num_key_value_heads": 65536)",
        "c.json: num_hidden_layers: 4096 layers of this width are too large even for one sample of 8192 tokens");
    row("parameters",
        R"("bart", "d_model": 4194304, "encoder_layers": 4096, "decoder_layers": 4096, "encoder_ffn_dim": 4194304,
        "decoder_ffn_dim": 4194304, "encoder_attention_heads": 1024, "decoder_attention_heads": 1024)",
        "c.json: the model has more than 2^60 parameters");
  }
  void refused_by_key() {
    QFETCH(QString, text);
    QFETCH(QString, message);
    const Stopwatch timer;
    const auto error = refusal(text.toStdString());
    QVERIFY(timer.seconds() < kLongest);
    QVERIFY(error.has_value());
    QCOMPARE(error->code, ErrorCode::bad_input);
    QVERIFY2(error->message().find(message.toStdString()) != std::string::npos, error->message().c_str());
    QCOMPARE(error->message().find('\n'), std::string::npos);
  }

  // Every family, every whole number of its keys at 0, -1, the largest and beyond: a model or one message with the
  // file.
  void values_swept_over_all_families() {
    const Stopwatch timer;
    int refused = 0, built = 0, turn = 0;
    for (const auto& family : huggingface_families()) {
      ++turn;
      for (const char* key :
           {"hidden_size", "d_model", "num_hidden_layers", "num_layers", "num_attention_heads", "num_heads",
            "vocab_size", "intermediate_size", "num_experts_per_tok", "max_position_embeddings"}) {
        for (const char* value : {"0", "-1", "1", "12", "9223372036854775807", "1e30", "\"12\"", "[12]", "{}", "0.5"}) {
          // Every other pair; the next family has the others.
          if (++turn % 2 != 0) continue;
          const auto error = refusal("{\"model_type\": \"" + family + "\", \"" + key + "\": " + value + "}");
          if (error) {
            ++refused;
            QVERIFY2(error->message().find("c.json") != std::string::npos, error->message().c_str());
          } else {
            ++built;
          }
        }
      }
    }
    qInfo("%d refused, %d built in %.1f s", refused, built, timer.seconds());
    QVERIFY(refused > 500 && built > 500);
  }

  // The largest graphs that are accepted.
  void deepest_models_are_bounded() {
    for (const char* body :
         {R"("deepseek_v3", "num_hidden_layers": 4096)", R"("bart", "encoder_layers": 4096, "decoder_layers": 4096)",
          R"("albert", "num_hidden_layers": 4096, "num_hidden_groups": 4096)"}) {
      const Stopwatch timer;
      const auto source = parse_huggingface_config(std::string("{\"model_type\": ") + body + "}", "c.json");
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
      QVERIFY((*source)->bind({1, 16}).has_value());
      QVERIFY2(timer.seconds() < kLongest, body);
    }
  }

  void huge_files_are_refused() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("config.json").toStdString();
    {
      std::ofstream out(path);
      out << "{\"model_type\": \"gpt2\", \"x\": [";
      for (int i = 0; i < (3 << 20); ++i) out << "[],";
      out << "[]]}";
    }
    const Stopwatch timer;
    const auto source = open_huggingface_config(path);
    QVERIFY(!source.has_value());
    QVERIFY2(source.error().message().find(path) != std::string::npos, source.error().message().c_str());
    QVERIFY(timer.seconds() < kLongest);
  }

  void memory_stays_small() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    qInfo("peak %ld MiB", usage.ru_maxrss / 1024);
    QVERIFY(usage.ru_maxrss < 500 * 1024 * turnpoint::test::kSanitizerFactor);
  }
};

QTEST_APPLESS_MAIN(HuggingfaceHostileTest)
#include "huggingface_hostile_test.moc"
