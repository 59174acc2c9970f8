// SPDX-License-Identifier: Apache-2.0
// Searches on the graphs of configs and built-ins: every point is a plan that evaluates to it, and mixtures of experts
// are planned by experts.
#include <QTest>
#include <algorithm>
#include <cmath>

#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"
#include "core/plan/evaluator.h"
#include "core/search/registry.h"

using namespace turnpoint;

namespace {

ModelPtr open(const std::string& text, ModelBinding binding) {
  const auto source = text.starts_with("{") ? parse_huggingface_config(text, "c.json") : open_builtin(text);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind(binding);
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

ScenarioPtr scenario_on(ModelPtr model, const std::string& hardware) {
  auto cluster = cluster_preset(hardware);
  if (!cluster) qFatal("%s", cluster.error().message().c_str());
  Settings settings;
  settings.batch = model->batch;
  auto scenario = make_scenario(std::move(model), *cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

ResultPtr search(const ScenarioPtr& scenario, SearchPass pass) {
  auto result = (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, pass, {});
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

bool is_split_by(const Operator& op, const Configuration& configuration, int axes, DimName name) {
  for (int a = 0; a < axes; ++a) {
    const int loop = configuration.axis[static_cast<std::size_t>(a)];
    if (loop >= 0 && op.dims[static_cast<std::size_t>(loop)].name == name) return true;
  }
  return false;
}

const char* const kMixture =
    R"({"model_type": "mixtral", "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 512,
  "intermediate_size": 4096, "num_hidden_layers": 1, "num_local_experts": 8, "num_experts_per_tok": 2})";

}  // namespace

class HuggingfaceSearchTest : public QObject {
  Q_OBJECT

 private slots:
  void every_plan_evaluates_to_its_point_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("hardware");
    const auto row = [](const char* name, const char* model, const char* hardware) {
      QTest::newRow(name) << model << hardware;
    };
    row("mixtral", kMixture, "v100-16gb-2x2");
    row("deepseek",
        R"({"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "moe_intermediate_size": 32, "n_routed_experts": 8, "num_experts_per_tok": 2, "q_lora_rank": 32,
        "first_k_dense_replace": 1, "kv_lora_rank": 16, "vocab_size": 96})",
        "v100-16gb-2x2");
    row("qwen2_moe", R"({"model_type": "qwen2_moe", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 3, "vocab_size": 96})",
        "v100-16gb-1x4");
    row("t5",
        R"({"model_type": "t5", "d_model": 64, "d_ff": 96, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 96})",
        "v100-16gb-2x2");
    row("bart",
        R"({"model_type": "bart", "d_model": 64, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 96,
        "decoder_ffn_dim": 96, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "vocab_size": 96})",
        "v100-16gb-2x2");
    row("albert", R"({"model_type": "albert", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
        "embedding_size": 16, "vocab_size": 96, "num_hidden_layers": 3})",
        "v100-16gb-1x2");
    row("falcon",
        R"({"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 96})",
        "v100-16gb-2x2");
    row("gemma2", R"({"model_type": "gemma2", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 96})",
        "v100-16gb-1x4");
    row("olmo2", R"({"model_type": "olmo2", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 96})",
        "v100-16gb-2x2");
    row("cohere", R"({"model_type": "cohere", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 96, "use_qk_norm": true})",
        "v100-16gb-2x2");
    row("gpt_oss", R"({"model_type": "gpt_oss", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 64, "head_dim": 16, "num_hidden_layers": 1, "vocab_size": 96, "num_local_experts": 4,
        "num_experts_per_tok": 2})",
        "v100-16gb-1x4");
    row("deberta", R"({"model_type": "deberta-v2", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 96,
        "num_attention_heads": 4, "intermediate_size": 96, "relative_attention": true, "position_buckets": 8,
        "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p", "max_position_embeddings": 32})",
        "v100-16gb-1x2");
    row("vit", R"({"model_type": "vit", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96,
        "num_hidden_layers": 2, "image_size": 32, "patch_size": 8})",
        "v100-16gb-2x2");
    row("whisper",
        R"({"model_type": "whisper", "d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 96,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96,
        "max_source_positions": 24, "max_target_positions": 16, "num_mel_bins": 8})",
        "v100-16gb-1x4");
    row("gnmt", "gnmt?hidden=64&layers=3&sequence=16", "v100-16gb-2x2");
    row("char-crn", "char-crn?hidden=64&layers=2&sequence=16", "v100-16gb-2x2");
    row("e3d", "e3d?hidden=32&layers=2&sequence=4", "v100-16gb-2x2");
    row("ncf", "ncf", "v100-16gb-2x4");
    row("trn", "trn?hidden=64&layers=1&width=96&sequence=16", "v100-16gb-2x2");
    row("wrn", "wrn?layers=2&width=2", "v100-16gb-2x4");
  }
  void every_plan_evaluates_to_its_point() {
    QFETCH(QString, model);
    QFETCH(QString, hardware);
    const auto scenario = scenario_on(open(model.toStdString(), {16, 0}), hardware.toStdString());
    // A coarse pass: its points are plans like those of an exact one, and come in a tenth of the time.
    const auto result = search(scenario, SearchPass::coarse);
    const std::size_t count = result->points.size(), stride = std::max<std::size_t>(1, count / 20);
    QVERIFY(count > 0);
    for (std::size_t k = 0; k < count; k += stride) {
      const auto cost = evaluate_plan(*scenario, result->plans->sharding(k));
      QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
      QCOMPARE(cost->memory_bytes(), result->points[k].memory_bytes);
      QVERIFY(std::abs(cost->time_s() - result->points[k].time_s) <= 1e-9 * result->points[k].time_s);
    }
  }

  // The plan of least memory splits the experts; on the way there are plans whose tokens travel by all-to-all.
  void mixtures_are_planned_by_experts() {
    const auto scenario = scenario_on(open(kMixture, {64, 128}), "a100-80gb-1x8");
    const auto result = search(scenario, SearchPass::exact);
    std::size_t by_expert = 0, by_all_to_all = 0;
    const std::size_t stride = std::max<std::size_t>(1, result->points.size() / 100);
    std::size_t looked_at = 0;
    for (std::size_t k = 0; k < result->points.size(); k += stride, ++looked_at) {
      const Plan plan = result->plans->sharding(k);
      const Model& model = *scenario->model;
      bool split = false, exchanged = false;
      for (const auto& planned : plan.operators)
        if (model.operators[planned.op].name == "layer0/mlp/experts_up")
          split = is_split_by(model.operators[planned.op], planned.split, plan.mesh.count(), DimName::expert);
      for (const auto& reshard : plan.reshards) {
        if (model.operators[reshard.producer].name != "layer0/mlp/dispatch") continue;
        for (const auto& step : reshard.forward) exchanged = exchanged || step.move == ReshardMove::all_to_all;
      }
      by_expert += split;
      by_all_to_all += split && exchanged;
    }
    qInfo("%zu of %zu plans split the experts, %zu by all-to-all", by_expert, looked_at, by_all_to_all);
    QVERIFY(by_expert * 2 > looked_at);
    QVERIFY(by_all_to_all > 0);
  }
};

QTEST_APPLESS_MAIN(HuggingfaceSearchTest)
#include "huggingface_search_test.moc"
