// SPDX-License-Identifier: Apache-2.0
#include "core/base/options.h"

#include <QtTest>
#include <array>
#include <cmath>
#include <random>

using namespace turnpoint;

namespace {

constexpr std::array<std::string_view, 2> kPrecisions = {"fp32", "bf16"};

OptionRecord real_option() { return {"scale", "Scale", "", OptionType::real, 0.01, 1, 100, {}, {}}; }
OptionRecord integer_option() { return {"batch", "Batch", "samples", OptionType::integer, 1, 256, 1e6, {}, {}}; }
OptionRecord choice_option() { return {"precision", "Precision", "", OptionType::choice, 0, 0, 1, kPrecisions, {}}; }
OptionRecord flag_option() { return {"split-windows", "Split windows", "", OptionType::flag, 0, 0, 1, {}, {}}; }
OptionRecord bytes_option() { return {"memory-limit", "Memory limit", "B", OptionType::bytes, 0, 0, 0, {}, {}}; }

double value_of(const Expected<double>& value) { return value ? *value : std::nan(""); }
QString message_of(const Expected<double>& value) {
  return value ? QString("accepted") : QString::fromStdString(value.error().message());
}

}  // namespace

class OptionsTest : public QObject {
  Q_OBJECT

 private slots:
  void values_are_read() {
    QCOMPARE(value_of(parse_option(real_option(), "0.5")), 0.5);
    QCOMPARE(value_of(parse_option(real_option(), "0.01")), 0.01);
    QCOMPARE(value_of(parse_option(real_option(), "100")), 100.0);
    QCOMPARE(value_of(parse_option(integer_option(), "256")), 256.0);
    QCOMPARE(value_of(parse_option(integer_option(), "1e3")), 1000.0);
    QCOMPARE(value_of(parse_option(choice_option(), "bf16")), 1.0);
    QCOMPARE(value_of(parse_option(bytes_option(), "16GiB")), 17179869184.0);
    for (const char* on : {"true", "1", "on"}) QCOMPARE(value_of(parse_option(flag_option(), on)), 1.0);
    for (const char* off : {"false", "0", "off"}) QCOMPARE(value_of(parse_option(flag_option(), off)), 0.0);
  }

  void parameters_are_written_without_their_defaults_and_read_back() {
    const std::array options = {integer_option(), choice_option(), flag_option()};
    const auto text = [&](double batch, double precision, double flag) {
      const std::array values = {batch, precision, flag};
      return format_parameters(options, values);
    };
    QCOMPARE(text(256, 0, 0), std::string());
    QCOMPARE(text(8, 1, 1), std::string("batch=8:precision=bf16:split-windows"));
    QCOMPARE(text(256, 0, 1), std::string("split-windows"));
    QVERIFY((parse_parameters(options, "batch=8:precision=bf16:split-windows") == std::vector<double>{8, 1, 1}));
    QVERIFY((parse_parameters(options, "") == std::vector<double>{256, 0, 0}));
    for (const char* wrong : {"batch", "batch=0", "bach=8", "precision=fp64", "batch=8:", ":", "="})
      if (std::string_view(wrong) != "batch") QVERIFY2(!parse_parameters(options, wrong), wrong);
  }

  void mistakes_are_usage_errors_that_name_the_option() {
    const auto check = [](const OptionRecord& option, const char* text, const char* message) {
      const auto value = parse_option(option, text);
      QCOMPARE(message_of(value), QString(message));
      QVERIFY(value.error().code == ErrorCode::usage);
    };
    check(real_option(), "fast", "--scale expects a number, not 'fast'");
    check(real_option(), "", "--scale expects a number, not ''");
    check(real_option(), "nan", "--scale expects a number, not 'nan'");
    check(real_option(), "0.001", "--scale must be between 0.01 and 100, not 0.001");
    check(real_option(), "101", "--scale must be between 0.01 and 100, not 101");
    check(integer_option(), "2.5", "--batch expects a whole number, not '2.5'");
    check(integer_option(), "0", "--batch must be between 1 and 1000000, not 0");
    check(choice_option(), "fp16", "--precision expects one of fp32, bf16, not 'fp16'");
    check(flag_option(), "maybe", "--split-windows expects true or false, not 'maybe'");
    check(bytes_option(), "16 apples", "--memory-limit expects bytes such as 16GiB, not '16 apples'");
    OptionRecord bounded = bytes_option();
    bounded.minimum = 1048576;
    bounded.maximum = 1073741824;
    check(bounded, "1KiB", "--memory-limit must be between 1.00 MiB and 1.0 GiB, not 1KiB");
    check(bounded, "2GiB", "--memory-limit must be between 1.00 MiB and 1.0 GiB, not 2GiB");
    QCOMPARE(value_of(parse_option(bounded, "1GiB")), 1073741824.0);
  }

  void what_is_written_is_read_back() {
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> exponent(-1.99, 1.99);
    for (int i = 0; i < 2000; ++i) {
      const double real = std::pow(10, exponent(random));
      QCOMPARE(value_of(parse_option(real_option(), format_option(real_option(), real))), real);
      const double whole = static_cast<double>(1 + random() % 1000000);
      QCOMPARE(value_of(parse_option(integer_option(), format_option(integer_option(), whole))), whole);
      const double bytes = static_cast<double>(random() >> 12);
      QCOMPARE(value_of(parse_option(bytes_option(), format_option(bytes_option(), bytes))), bytes);
    }
    for (const double value : {0.0, 1.0}) {
      QCOMPARE(value_of(parse_option(choice_option(), format_option(choice_option(), value))), value);
      QCOMPARE(value_of(parse_option(flag_option(), format_option(flag_option(), value))), value);
    }
  }

  void a_choice_that_does_not_exist_has_no_text() {
    for (const double value : {-1.0, 2.0, 1e300, std::nan("")})
      QCOMPARE(format_option(choice_option(), value), std::string());
  }
};

QTEST_APPLESS_MAIN(OptionsTest)
#include "options_test.moc"
