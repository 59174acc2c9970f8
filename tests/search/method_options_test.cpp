// SPDX-License-Identifier: Apache-2.0
// What the window offers as a method's settings is what the method takes: records and readers of the texts agree.
#include <QtTest>

#include "core/search/method.h"

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
          offered = {option.type == OptionType::flag ? 1.0 : option.minimum + 2};
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
