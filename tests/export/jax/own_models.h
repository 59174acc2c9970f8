// SPDX-License-Identifier: Apache-2.0
// The models that run_own_model.py holds as somebody would write them, and the same as Turnpoint reads them.
#pragma once

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "core/export/format.h"
#include "core/import/source/model_source.h"
#include "engine.h"
#include "search/scenarios.h"
#include "search/small_models.h"

namespace turnpoint::test {

class OwnModel {
 public:
  /// mlp, lenet, gpt2, llama, "tied llama", or block (one layer of llama), whose files go to the folder.
  OwnModel(const QTemporaryDir& folder, const QString& name)
      : file_(folder.filePath("sharding.py")), config_(folder.filePath("config.json")), name_(name) {
    scenario_ = scenario_on(model(), "v100-16gb-2x4", [](Settings& settings) {
      settings.offload = false;
      settings.recompute = false;
    });
  }

  const ScenarioPtr& scenario() const { return scenario_; }

  /// The file for the first plan of a method; what refuses it.
  std::string annotations(const char* method) const {
    const auto result = run(method, scenario_);
    if (!result) qFatal("%s: %s", method, result.error().message().c_str());
    const auto text = find_format("jax")->plan(*(*result)->scenario, (*result)->plans->sharding(0));
    return text ? *text : text.error().message();
  }

  const QString& config() const { return config_; }

  /// What came of a step of the model laid out by these annotations.
  QJsonObject laid_out(const QString& python, const std::string& annotations, const QStringList& more = {}) const {
    write(file_, QByteArray::fromStdString(annotations));
    const EngineRun run =
        run_engine(python, QStringList{QString(TURNPOINT_SOURCE_DIR) + "/tests/export/jax/run_own_model.py", file_,
                                       QString::number(scenario_->cluster->devices()), name_.split(' ').last(),
                                       QString::number(kBatch), QString::number(kSequence), config_} +
                               more);
    if (run.code != 0) qWarning("%s", run.err.right(3000).constData());
    return run.json();
  }

 private:
  static constexpr int kBatch = 16, kSequence = 16;

  static void write(const QString& path, const QByteArray& text) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) qFatal("cannot write a file");
  }

  ModelPtr model() const {
    write(config_, "{}");
    if (name_ == "mlp") return mlp(kBatch);
    if (name_ == "lenet") return builtin("lenet", kBatch);
    if (name_ == "gpt2") {
      write(config_, R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 64,
          "n_positions": 32, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})");
      auto own = std::make_shared<Model>(*bound_to_sizes());
      own->source = "test";  // called as we call it, not as in Transformers
      return own;
    }
    write(config_, QByteArray(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 64, "max_position_embeddings": 64,
        "num_hidden_layers": )") +
                       (name_ == "block" ? "1" : "2") + R"(, "tie_word_embeddings": )" +
                       (name_ == "tied llama" ? "true}" : "false}"));
    return bound_to_sizes();
  }

  ModelPtr bound_to_sizes() const {
    const auto source = open_model(config_.toStdString());
    if (!source) qFatal("%s", source.error().message().c_str());
    const auto bound = (*source)->bind({kBatch, kSequence});
    if (!bound) qFatal("%s", bound.error().message().c_str());
    return *bound;
  }

  const QString file_, config_, name_;
  ScenarioPtr scenario_;
};

}  // namespace turnpoint::test
