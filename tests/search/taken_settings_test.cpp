// SPDX-License-Identifier: Apache-2.0
// What a model's file says of precision, batch and sequence is taken where nobody says otherwise, and told with its
// reason; where nothing fits, the batch that does is found.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/scenario/scenario_json.h"
#include "core/schedule/fitting.h"
#include "core/search/fitting_batch.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"

using namespace turnpoint;

namespace {

/// A small decoder whose config has these keys besides.
ModelSourcePtr config_with(const std::string& keys) {
  QTemporaryDir folder;
  const std::string path = folder.filePath(QStringLiteral("config.json")).toStdString();
  std::ofstream(path) << R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
    "num_attention_heads": 4, "vocab_size": 1000)"
                      << keys << "}";
  const auto source = open_model(path);
  return source ? *source : nullptr;
}

std::string told(const ModelSource& source, const GivenSettings& given, const Settings& settings = {}) {
  const auto scenario = scenario_of(source, "v100-16gb-1x2", with_stated(source, settings, given));
  return scenario ? words_of(taken_settings(source, **scenario, given)) : scenario.error().message();
}

}  // namespace

class TakenSettingsTest : public QObject {
  Q_OBJECT

 private slots:
  void type_names() {
    for (const char* name : {"float32", "torch.float32", "F32"})
      QCOMPARE(stated_precision(name), std::optional(Precision::fp32));
    for (const char* name : {"bfloat16", "BF16", "float16", "torch.half", "F8_E4M3"})
      QCOMPARE(stated_precision(name), std::optional(Precision::bf16));
    for (const char* name : {"", "int8", "float64", "auto"}) QVERIFY(!stated_precision(name));
  }

  void a_config_says_its_type_and_its_longest_sequence() {
    const auto long_one = config_with(R"(, "torch_dtype": "float16", "max_position_embeddings": 131072)");
    QCOMPARE(
        told(*long_one, {}),
        std::string("precision bf16 (torch_dtype says float16, counted as bf16), batch 256 (the default), sequence "
                    "8192 (the most that is taken unasked; the model's own maximum is 131072)"));
    const auto short_one = config_with(R"(, "dtype": "bfloat16", "max_position_embeddings": 512)");
    QCOMPARE(told(*short_one, {}),
             std::string("precision bf16 (dtype says bfloat16), batch 256 (the default), sequence "
                         "512 (the model's own maximum)"));
    const auto silent = config_with(R"(, "max_position_embeddings": 512)");
    QVERIFY(told(*silent, {}).starts_with("precision fp32 (the default), "));
    const auto nested = config_with(R"(, "torch_dtype": "auto", "dtype": 7, "max_position_embeddings": 64)");
    QVERIFY(told(*nested, {}).starts_with("precision fp32 (the default), "));
  }

  void what_was_given_stays_and_is_not_called_taken() {
    const auto source = config_with(R"(, "torch_dtype": "bfloat16", "max_position_embeddings": 512)");
    Settings settings;
    settings.precision = Precision::fp32;
    settings.batch = 8;
    settings.sequence = 32;
    const GivenSettings all = {true, true, true};
    QCOMPARE(with_stated(*source, settings, all), settings);
    QVERIFY(told(*source, all, settings).empty());
    QCOMPARE(with_stated(*source, settings, {}), [] {
      Settings stated;
      stated.precision = Precision::bf16;
      return stated;
    }());
    QCOMPARE(told(*source, {true, true, false}, settings), std::string("precision bf16 (torch_dtype says bfloat16)"));
  }

  // A usual length is told with its reason, and never called the model's own. Bloom's positions have no end.
  void a_length_that_nobody_names_is_no_statement() {
    QTemporaryDir folder;
    for (const auto& [text, words, stated] :
         {std::tuple{R"({"model_type": "bloom", "hidden_size": 64, "n_layer": 1, "n_head": 4, "vocab_size": 1000})",
                     "sequence 2048 (a usual length: the file names no maximum)", false},
          std::tuple{R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 1, "n_head": 4, "n_positions": 64})",
                     "sequence 64 (the model's own maximum)", true}}) {
      const std::string path = folder.filePath(QStringLiteral("config.json")).toStdString();
      std::ofstream(path) << text;
      const auto source = open_model(path);
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
      const auto scenario = scenario_of(**source, "v100-16gb-1x2", with_stated(**source, {}, {}));
      QVERIFY(scenario.has_value());
      const auto taken = taken_settings(**source, **scenario, {});
      QCOMPARE(taken.back().key, std::string("sequence"));
      QCOMPARE(taken.back().stated, stated);
      QVERIFY2(words_of(taken).ends_with(words), words_of(taken).c_str());
    }
  }

  void a_name_with_a_batch_says_it() {
    const auto source = *open_model("builtin:gpt2?layers=1&batch=8");
    QCOMPARE(told(*source, {}), std::string("precision fp32 (the default), batch 8 (the model's name says so)"));
  }

  void results_hold_what_was_taken() {
    const auto source = config_with(R"(, "torch_dtype": "bfloat16", "max_position_embeddings": 512)");
    const auto scenario = scenario_of(*source, "v100-16gb-1x2", with_stated(*source, {}, {}));
    QVERIFY(scenario.has_value());
    auto with = std::make_shared<Scenario>(**scenario);
    with->taken = taken_settings(*source, **scenario, {});
    const nlohmann::json written = write_scenario(*with);
    QCOMPARE(written["taken"].size(), std::size_t(3));
    QCOMPARE(written["taken"][0]["reason"].get<std::string>(), std::string("torch_dtype says bfloat16"));
    QVERIFY(!write_scenario(**scenario).contains("taken"));
    QVERIFY(read_scenario(written, "r.json").has_value());
  }

  // Against a search of every batch: the one that is named fits, twice as much does not.
  void the_batch_that_fits_is_the_largest_half_that_does() {
    const auto source = *open_model("builtin:transformer-s?batch=512");
    Settings settings = with_stated(*source, {}, {});
    settings.update_sharding = settings.offload = false;
    const auto judged = [&](std::int64_t batch) {
      Settings one = settings;
      one.batch = batch;
      const auto searcher = *make_searcher(**find_method("ft"), "micro-batches=1");
      const auto result = *searcher->run(*scenario_of(*source, "v100-16gb-1x2", one), SearchPass::exact, {});
      return *judge_fits(result, RunContext{});
    };
    const auto fits = [&](std::int64_t batch) { return judged(batch)->fastest_that_fits().has_value(); };
    const auto peak = [&](std::int64_t batch) {
      const ResultPtr result = judged(batch);
      const auto least = least_peak(*result);
      return least ? *result->points[*least].simulated_memory_bytes : 0;
    };
    settings.memory_limit = 1;
    const std::int64_t of_few = peak(64), of_all = peak(512);
    QVERIFY(0 < of_few && of_few < of_all);
    settings.memory_limit = (of_few + of_all) / 2;
    QVERIFY(fits(64) && !fits(512));
    const auto found = fitting_batch(*source, *scenario_of(*source, "v100-16gb-1x2", settings), {});
    QVERIFY(found && *found);
    QVERIFY(**found >= 64 && **found < 512);
    QVERIFY(fits(**found));
    QVERIFY(!fits(2 * **found));
  }

  void where_not_even_one_sample_fits_none_is_named() {
    const auto source = *open_model("builtin:transformer-s?batch=4");
    Settings settings = with_stated(*source, {}, {});
    settings.memory_limit = 1 << 20;
    const auto found = fitting_batch(*source, *scenario_of(*source, "v100-16gb-1x2", settings), {});
    QVERIFY(found && !*found);
  }
};

QTEST_APPLESS_MAIN(TakenSettingsTest)
#include "taken_settings_test.moc"
