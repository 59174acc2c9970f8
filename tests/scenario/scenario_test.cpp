// SPDX-License-Identifier: Apache-2.0
#include "core/scenario/scenario.h"

#include <QTest>
#include <memory>
#include <set>

using namespace turnpoint;

class ScenarioTest : public QObject {
  Q_OBJECT

 private slots:
  // The keys are the command line (resources/manual/command-line.md); sessions and the window use the same ones.
  void keys_are_the_contract() {
    const std::set<std::string_view> expected = {"batch",
                                                 "sequence",
                                                 "devices",
                                                 "precision",
                                                 "optimizer",
                                                 "optimizer-state",
                                                 "gradients",
                                                 "attention",
                                                 "loss",
                                                 "kernels",
                                                 "accounting",
                                                 "collectives",
                                                 "gathers",
                                                 "checkpoint-every",
                                                 "summary-every",
                                                 "evaluation-every",
                                                 "bucket",
                                                 "intra-bandwidth-scale",
                                                 "inter-bandwidth-scale",
                                                 "latency-scale",
                                                 "device-memory-scale",
                                                 "device-speed-scale",
                                                 "memory-limit",
                                                 "reserve",
                                                 "price-per-hour",
                                                 "seed",
                                                 "split-windows",
                                                 "split-loss",
                                                 "recompute",
                                                 "update-sharding",
                                                 "offload"};
    std::set<std::string_view> keys;
    for (const auto& option : scenario_options()) {
      QVERIFY(keys.insert(option.key).second);
      QVERIFY(!option.text.empty() && !option.help.empty());
      QVERIFY(option.minimum <= option.default_value && option.default_value <= option.maximum);
    }
    QVERIFY(keys == expected);
  }

  void defaults_are_those_of_the_settings() {
    Settings settings;
    for (const auto& option : scenario_options()) QCOMPARE(get_option(settings, option.key), option.default_value);
    QCOMPARE(settings.batch, std::int64_t(256));
  }

  // Each record writes one field only, and what it writes it reads back, also through text.
  void every_option_round_trips() {
    for (const auto& option : scenario_options()) {
      const double value = option.default_value == option.maximum ? option.minimum
                           : option.type == OptionType::real      ? 0.37
                           : option.type == OptionType::integer   ? 24
                                                                  : option.maximum;
      Settings settings;
      const auto parsed = parse_option(option, format_option(option, value));
      QVERIFY2(parsed.has_value(), parsed ? "" : parsed.error().message().c_str());
      QCOMPARE(*parsed, value);
      set_option(settings, option.key, *parsed);
      QCOMPARE(get_option(settings, option.key), value);
      QVERIFY(!(settings == Settings{}));
      set_option(settings, option.key, option.default_value);
      QVERIFY(settings == Settings{});
    }
  }

  void text_reaches_the_field() {
    const auto set = [](Settings& settings, std::string_view key, std::string_view text) {
      for (const auto& option : scenario_options())
        if (option.key == key) {
          const auto value = parse_option(option, text);
          if (!value) return false;
          set_option(settings, key, *value);
          return true;
        }
      return false;
    };
    Settings settings;
    QVERIFY(set(settings, "precision", "bf16") && settings.precision == Precision::bf16);
    QVERIFY(set(settings, "optimizer", "adafactor") && settings.optimizer == Optimizer::adafactor);
    QVERIFY(set(settings, "accounting", "paper") && settings.accounting == Accounting::paper);
    QVERIFY(set(settings, "memory-limit", "16GiB") && settings.memory_limit == std::int64_t(16) << 30);
    QVERIFY(set(settings, "inter-bandwidth-scale", "0.5") && settings.factors.inter_bandwidth == 0.5);
    QVERIFY(set(settings, "split-windows", "true") && settings.split_windows);
    for (const auto& [key, text] : {std::pair{"batch", "0"},
                                    {"batch", "1.5"},
                                    {"batch", "-3"},
                                    {"batch", "nan"},
                                    {"batch", "1e30"},
                                    {"batch", ""},
                                    {"precision", "fp16"},
                                    {"latency-scale", "0"},
                                    {"latency-scale", "inf"},
                                    {"latency-scale", "0,5"},
                                    {"seed", "-1"},
                                    {"memory-limit", "-1GiB"},
                                    {"devices", "70000"}})
      QVERIFY2(!set(settings, key, text), key);
  }

  void enumerations_match_their_names() {
    const auto find = [](std::string_view key) {
      for (const auto& option : scenario_options())
        if (option.key == key) return option;
      return OptionRecord{};
    };
    for (std::size_t i = 0; i < 6; ++i)
      QCOMPARE(find("optimizer").choices[i], std::string_view(to_string(Optimizer(i))));
    for (std::size_t i = 0; i < 2; ++i)
      QCOMPARE(find("accounting").choices[i], std::string_view(to_string(Accounting(i))));
    for (std::size_t i = 0; i < 3; ++i)
      QCOMPARE(find("precision").choices[i], std::string_view(to_string(Precision(i))));
    QCOMPARE(optimizer_state_bytes(Optimizer::sgd), 0);
    QCOMPARE(optimizer_state_bytes(Optimizer::lars), 4);
    QCOMPARE(optimizer_state_bytes(Optimizer::adam), 8);
  }

  void memory_limit() {
    Scenario scenario;
    scenario.cluster = *cluster_preset("tpu-v2-1x2");  // nobody says what TPUs take of it
    QCOMPARE(scenario.memory_limit(), std::int64_t(64) << 30);
    scenario.settings.factors.device_memory = 0.5;
    QCOMPARE(scenario.memory_limit(), std::int64_t(32) << 30);
    scenario.settings.memory_limit = 12345;
    QCOMPARE(scenario.memory_limit(), std::int64_t(12345));
  }

  // Of the device, not of what the slider leaves of it; never of a limit that the user set.
  void a_reserve_is_not_the_plans() {
    Scenario scenario;
    scenario.cluster = *cluster_preset("v100-16gb-2x8");
    const std::int64_t gib = std::int64_t(1) << 30, own = gib / 2 + 688 * (gib >> 10);
    QCOMPARE(scenario.reserved_bytes(), own);
    QCOMPARE(scenario.memory_limit(), 16 * gib - own);
    scenario.settings.factors.device_memory = 0.5;
    QCOMPARE(scenario.memory_limit(), 8 * gib - own);
    scenario.settings.reserve_bytes = 2 * gib;
    QCOMPARE(scenario.memory_limit(), 6 * gib);
    scenario.settings.reserve_bytes = 20 * gib;
    QCOMPARE(scenario.memory_limit(), std::int64_t(1));
    scenario.settings.accounting = Accounting::paper;
    QCOMPARE(scenario.memory_limit(), 8 * gib);
    scenario.settings.accounting = Accounting::full;
    scenario.settings.memory_limit = 3 * gib;
    QCOMPARE(scenario.reserved_bytes(), std::int64_t(0));
    QCOMPARE(scenario.memory_limit(), 3 * gib);
    QCOMPARE((*cluster_preset("v100-16gb-1x1"))->device.reserve_bytes, gib / 2);
    QCOMPARE((*cluster_preset("v100-16gb-1x2"))->device.reserve_bytes, gib / 2 + 544 * (gib >> 10));
  }

  void fp8_needs_a_device_that_has_it() {
    Settings settings;
    settings.precision = Precision::fp8;
    const auto model = std::make_shared<Model>();
    const auto refused = make_scenario(model, *cluster_preset("a100-80gb-1x8"), "a100-80gb-1x8", settings);
    QVERIFY(!refused && refused.error().message().find("A100-80GB multiplies no 8-bit numbers") != std::string::npos);
    QVERIFY(make_scenario(model, *cluster_preset("h100-80gb-1x8"), "h100-80gb-1x8", settings).has_value());
  }
};

QTEST_APPLESS_MAIN(ScenarioTest)
#include "scenario_test.moc"
