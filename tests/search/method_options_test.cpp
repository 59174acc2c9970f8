// SPDX-License-Identifier: Apache-2.0
// What the window offers as a method's settings is what the method takes: records and readers of the texts agree.
#include <QtTest>

#include "core/search/registry.h"

using namespace turnpoint;

class MethodOptionsTest : public QObject {
  Q_OBJECT

 private slots:
  void every_value_on_offer_is_taken() {
    int tried = 0;
    for (const Method& method : methods()) {
      if (!method.make_with) continue;
      QVERIFY2(!method.options.empty(), method.name.c_str());
      std::vector<double> values;
      for (const OptionRecord& option : method.options) values.push_back(option.default_value);
      QCOMPARE(format_parameters(method.options, values), std::string());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const OptionRecord& option = method.options[i];
        std::vector<double> offered;
        if (option.type == OptionType::choice)
          for (std::size_t c = 0; c < option.choices.size(); ++c) offered.push_back(double(c));
        else
          offered = {option.type == OptionType::flag ? 1.0 : std::min(option.minimum + 2, option.maximum)};
        for (const double value : offered) {
          std::vector<double> chosen = values;
          chosen[i] = value;
          const std::string text = format_parameters(method.options, chosen);
          QCOMPARE(text.empty(), value == option.default_value);
          const auto searcher = make_searcher(method, text);
          QVERIFY2(searcher.has_value(), searcher ? "" : searcher.error().message().c_str());
          const auto read = parse_parameters(method.options, text);
          QVERIFY2(read && *read == chosen, text.c_str());
          ++tried;
        }
      }
    }
    QVERIFY(tried > 20);
  }

  void searches_that_end_by_time_are_known() {
    for (const auto& [method, parameters] :
         {std::pair{"ft", "time-limit=3"}, {"ft", "gap=0.1:time-limit=0.5"}, {"simulated-annealing", "seconds=2"}})
      QVERIFY2(ends_by_time(method, parameters), parameters);
    for (const auto& [method, parameters] : {std::pair{"ft", ""},
                                             {"ft", "gap=0.1"},
                                             {"ft", "time-limit=0"},
                                             {"ft-published", ""},  // it gives up then, and finds nothing
                                             {"simulated-annealing", "calls=100"},
                                             {"nobody", "seconds=2"}})
      QVERIFY2(!ends_by_time(method, parameters), parameters);
  }

  void parameters_are_described_by_their_records() {
    const auto joined = [](const std::vector<std::string>& words) {
      QStringList list;
      for (const std::string& word : words) list << QString::fromStdString(word);
      return list.join(u' ');
    };
    const Method &fsdp = **find_method("fsdp"), &manual = split_method();
    QCOMPARE(joined(parameter_words(fsdp.options)),
             QStringLiteral("zero=1|2|3 group=node|all shard=N|all micro-batches=N recompute=op|selective"));
    QCOMPARE(described(fsdp),
             fsdp.description +
                 "; parameters zero=1|2|3, group=node|all, shard=N|all, micro-batches=N, recompute=op|selective");
    QCOMPARE(joined(parameter_completions(manual.options)),
             QStringLiteral("dp= tp= cp= ep= pp= vp= cut=time cut=layers schedule=gpipe schedule=1f1b micro-batches= zero=1 zero=2 zero=3 shard=all shard= gather-first reduce-last "
                            "recompute=op recompute=selective recompute=full sequence-parallel tp-comm-overlap"));
    // The least value of a number may have a word.
    const Method& ft = **find_method("ft");
    QCOMPARE(joined(parameter_words(ft.options)), QStringLiteral("micro-batches=N|all gap=NUMBER time-limit=SECONDS"));
    QCOMPARE(joined(parameter_completions(ft.options)),
             QStringLiteral("micro-batches=all micro-batches= gap= time-limit="));
    QCOMPARE(format_option(ft.options[0], 0), std::string("all"));
    for (const auto& [text, value] : {std::pair{"all", 0.0}, {"0", 0.0}, {"8", 8.0}}) {
      const auto read = parse_option(ft.options[0], text);
      QVERIFY(read && *read == value);
    }
    QVERIFY(!parse_option(ft.options[0], "every"));
    // What a line completes to is understood.
    for (const Method& method : methods())
      for (const std::string& word : parameter_completions(method.options)) {
        std::string text = word;
        for (const OptionRecord& option : method.options)
          if (word == std::string(option.key) + "=") text += format_option(option, std::min(2.0, option.maximum));
        QVERIFY2(make_searcher(method, text).has_value(), text.c_str());
      }
  }

  void each_kind_of_scenario_has_one_default() {
    QCOMPARE(default_method().name, std::string("ft"));
    QCOMPARE(default_method(true).name, std::string("pardnn"));
    QCOMPARE(split_method().name, std::string("manual"));
    std::size_t defaults = 0, splits = 0;
    for (const Method& method : methods()) defaults += method.default_method, splits += method.own_split;
    QCOMPARE(defaults, std::size_t(2));
    QCOMPARE(splits, std::size_t(1));
  }

  void traits_follow_the_parameters() {
    // Fully sharded, Megatron and manual are what engines do: one collective for a change of layout where one will do.
    const MethodTraits plain{}, sharded{.shards_updates = true, .fewest_collectives = true},
        engine{.fewest_collectives = true};
    QVERIFY(traits_of("ft", "micro-batches=1") == plain && traits_of("no-such", "") == plain &&
            traits_of("tofu", "") == plain && traits_of("accpar", "") == plain && traits_of("owt", "") == plain);
    QVERIFY(traits_of("fsdp", "") == sharded && traits_of("fsdp", "zero=1:group=node") == sharded);
    QVERIFY(traits_of("fsdp", "recompute=selective").recomputes && traits_of("fsdp", "recompute=op").recomputes);
    const MethodTraits split{.fewest_collectives = true, .micro_batches = true}, in_parts{.micro_batches = true};
    QVERIFY(traits_of("manual", "dp=4") == split && traits_of("manual", "zero=0:recompute=none") == split);
    QVERIFY(traits_of("manual", "zero=1").shards_updates && traits_of("manual", "recompute").recomputes &&
            traits_of("manual", "recompute=op").recomputes);
    QVERIFY(traits_of("megatron", "") == engine && traits_of("megatron", "recompute=selective").recomputes);
    for (const char* method : {"ft", "data-parallel", "optcnn"})
      QVERIFY(traits_of(method, "micro-batches=4") == in_parts && traits_of(method, "micro-batches=1") == plain);
    QVERIFY(traits_of("megatron", "micro-batches=4") == split && traits_of("megatron", "micro-batches=1") == engine);
  }

  void texts_that_people_type_fill_the_boxes() {
    const Method& manual = **find_method("manual");
    const auto read = parse_parameters(manual.options, "dp=4:tp=2:recompute:sequence-parallel");
    QVERIFY(read.has_value());
    QCOMPARE(format_parameters(manual.options, *read), std::string("dp=4:tp=2:recompute=full:sequence-parallel"));
    QVERIFY(!parse_parameters(manual.options, "dp=4:xp=2"));
    QVERIFY(!parse_parameters(manual.options, "dp=four"));
    QCOMPARE(parse_parameters(manual.options, "")->front(), 0.0);
  }
};

QTEST_APPLESS_MAIN(MethodOptionsTest)
#include "method_options_test.moc"
