// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <clocale>
#include <cmath>
#include <limits>
#include <random>

using namespace turnpoint;

namespace {

QString shown(const std::string& text) { return QString::fromStdString(text); }

// Switches LC_ALL to German (decimal comma) for one scope. Debian's minimal systems have no such locale, so it is
// compiled into a temporary folder from the sources in package `locales`.
class GermanLocale {
 public:
  GermanLocale() : before_(std::setlocale(LC_ALL, nullptr)) {
    active_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
    if (active_) return;
    QProcess::execute("localedef", {"--quiet", "-c", "-i", "de_DE", "-f", "UTF-8", folder_.filePath("de_DE.UTF-8")});
    qputenv("LOCPATH", folder_.path().toUtf8());
    active_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  }
  ~GermanLocale() {
    std::setlocale(LC_ALL, before_.c_str());
    qunsetenv("LOCPATH");
  }
  bool active() const { return active_; }

 private:
  QTemporaryDir folder_;
  std::string before_;
  bool active_ = false;
};

}  // namespace

class TextTest : public QObject {
  Q_OBJECT

 private slots:
  void bytes_data() {
    QTest::addColumn<qint64>("value");
    QTest::addColumn<QString>("text");
    const auto row = [](qint64 value, const char* text) {
      QTest::addRow("%s", text) << value << QString::fromUtf8(text);
    };
    row(0, "0 B");
    row(1, "1 B");
    row(1023, "1023 B");
    row(1024, "1.00 KiB");
    row(10 * 1024, "10.0 KiB");
    row(100 * 1024, "100 KiB");
    row(1048576 - 1, "1.00 MiB");  // never "1024 KiB"
    row(1048576, "1.00 MiB");
    row(148 * 1048576LL, "148 MiB");
    row(1073741824LL - 1, "1.0 GiB");  // never "1024 MiB"
    row(1073741824LL, "1.0 GiB");
    row(10307921510LL, "9.6 GiB");
    row(-148 * 1048576LL, "-148 MiB");
    row(std::numeric_limits<std::int64_t>::max(), "8589934592.0 GiB");
    row(std::numeric_limits<std::int64_t>::min(), "-8589934592.0 GiB");
  }
  void bytes() {
    QFETCH(qint64, value);
    QFETCH(QString, text);
    QCOMPARE(shown(format_bytes(value)), text);
  }

  void seconds_data() {
    QTest::addColumn<double>("value");
    QTest::addColumn<QString>("text");
    const auto row = [](double value, const char* text) {
      QTest::addRow("%s %g", text, value) << value << QString::fromUtf8(text);
    };
    row(0, "0 ms");
    row(0.812, "812 ms");
    row(0.0316, "31.6 ms");
    row(0.00103, "1.03 ms");
    row(12.4, "12.4 s");
    row(124.4, "124 s");
    row(9.9994, "9\u2009999 ms");
    row(9.9996, "10.0 s");      // never "10000 ms"
    row(0.009996, "10.0 ms");   // never "10.00 ms"
    row(0.09996, "100 ms");     // never "100.0 ms"
    row(0.0009996, "1.00 ms");  // never "1000 us"
    row(5e-6, "5.00 \u00b5s");
    row(3.2e-9, "3.20 ns");
    row(-0.0316, "-31.6 ms");
  }
  void seconds() {
    QFETCH(double, value);
    QFETCH(QString, text);
    QCOMPARE(shown(format_seconds(value)), text);
  }

  void counts_data() {
    QTest::addColumn<double>("value");
    QTest::addColumn<QString>("text");
    const auto row = [](double value, const char* text) {
      QTest::addRow("%s %g", text, value) << value << QString::fromUtf8(text);
    };
    row(0, "0");
    row(9999, "9999");
    row(10000, "10.0 k");
    row(999960, "1.00 M");  // never "1000 k"
    row(124.4e6, "124 M");
    row(1.31e9, "1.31 B");
    row(2.5e12, "2.50 T");
  }
  void counts() {
    QFETCH(double, value);
    QFETCH(QString, text);
    QCOMPARE(shown(format_count(value)), text);
  }

  void factors_and_percents() {
    QCOMPARE(shown(format_factor(0.5)), QString::fromUtf8("\u00d70.50"));
    QCOMPARE(shown(format_factor(8)), QString::fromUtf8("\u00d78.00"));
    QCOMPARE(shown(format_percent(0.041)), QString("+4.1%"));
    QCOMPARE(shown(format_percent(-0.027)), QString::fromUtf8("\u22122.7%"));
    QCOMPARE(shown(format_percent(0.48)), QString("+48%"));
    QCOMPARE(shown(format_percent(0.0996)), QString("+10%"));  // never "+10.0%"
    QCOMPARE(shown(format_percent(-0.0001)), QString("0.0%"));
    QCOMPARE(shown(format_percent(0)), QString("0.0%"));
  }

  // Whatever the size, what is shown is within half a unit of its last digit, has at most the promised number of digits
  // and is read back by the parser.
  void shown_bytes_are_close_and_can_be_read_back() {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
      const auto value = static_cast<std::int64_t>(random() >> (2 + random() % 60));
      const std::string text = format_bytes(value);
      const auto read = parse_bytes(text);
      QVERIFY2(read, text.c_str());
      const double tolerance = value >= 1073741824 ? 0.05 * 1073741824.0 + 1 : 0.0051 * static_cast<double>(value) + 1;
      QVERIFY2(std::abs(static_cast<double>(*read - value)) <= tolerance, text.c_str());
      if (value < 1073000000) QVERIFY2(text.size() <= 8, text.c_str());
    }
  }

  void bytes_are_read_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<qint64>("value");
    const auto row = [](const char* text, qint64 value) { QTest::addRow("'%s'", text) << QString(text) << value; };
    row("16GiB", 16LL << 30);
    row("16 GiB", 16LL << 30);
    row("  16GiB\t", 16LL << 30);
    row("1.5KiB", 1536);
    row("2MiB", 2LL << 20);
    row("3TiB", 3LL << 40);
    row("500MB", 500000000);
    row("7kB", 7000);
    row("7KB", 7000);
    row("1GB", 1000000000);
    row("1TB", 1000000000000);
    row("12B", 12);
    row("1073741824", 1073741824);
    row("1e3", 1000);
    row("0", 0);
    row("9007199254740993", 9007199254740993LL);  // 2^53 + 1 has no double
    row("4611686018427387904", 1LL << 62);
    // -1: refused
    row("4611686018427387905", -1);
    row("5e18", -1);
    row("4194305TiB", -1);
    row("1e300GiB", -1);
    row("-1", -1);
    row("-1GiB", -1);
    row("", -1);
    row(" ", -1);
    row("GiB", -1);
    row("B", -1);
    row("16 Gi B", -1);
    row("16gibibytes", -1);
    row("1,5GiB", -1);
    row("inf", -1);
    row("nanGiB", -1);
    row("0x10", -1);
    row("16GiB16", -1);
  }
  void bytes_are_read() {
    QFETCH(QString, text);
    QFETCH(qint64, value);
    const auto read = parse_bytes(text.toStdString());
    QCOMPARE(read.value_or(-1), value);
  }

  void numbers_are_read_whole_or_not_at_all() {
    QCOMPARE(parse_double("0.5").value_or(-1), 0.5);
    QCOMPARE(parse_double(" 1e-3 ").value_or(-1), 1e-3);
    QCOMPARE(parse_double("-2").value_or(0), -2.0);
    for (const char* wrong : {"", " ", "x", "1x", "1,5", "1 2", "inf", "-inf", "nan", "1e999", "0x1p3", "--1", "1e"})
      QVERIFY2(!parse_double(wrong), wrong);
    QCOMPARE(parse_int("-42").value_or(0), std::int64_t(-42));
    QCOMPARE(parse_int("9223372036854775807").value_or(0), std::numeric_limits<std::int64_t>::max());
    for (const char* wrong : {"", "9223372036854775808", "1.0", "1e3", "0x10", "4 2", "four"})
      QVERIFY2(!parse_int(wrong), wrong);
  }

  void numbers_do_not_depend_on_the_locale() {
    const GermanLocale german;
    if (!german.active()) QSKIP("no de_DE.UTF-8 locale and no means to make one");
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "%.1f", 1.5);
    QCOMPARE(QString(buffer), QString("1,5"));  // the locale is really on
    QCOMPARE(parse_double("1.5").value_or(-1), 1.5);
    QVERIFY(!parse_double("1,5"));
    QCOMPARE(parse_bytes("1.5KiB").value_or(-1), std::int64_t(1536));
    QCOMPARE(shown(format_bytes(10307921510LL)), QString("9.6 GiB"));
    QCOMPARE(shown(format_seconds(0.0316)), QString("31.6 ms"));
    QCOMPARE(shown(format_factor(0.5)), QString::fromUtf8("\u00d70.50"));
    QCOMPARE(shown(format_percent(0.041)), QString("+4.1%"));
    QCOMPARE(shown(format_count(1.31e9)), QString("1.31 B"));
  }

  void split_keeps_empty_parts() {
    using Parts = std::vector<std::string_view>;
    QCOMPARE(split("", ','), Parts{""});
    QCOMPARE(split("a", ','), Parts{"a"});
    QCOMPARE(split("a,b,,c,", ','), (Parts{"a", "b", "", "c", ""}));
    QCOMPARE(split(",", ','), (Parts{"", ""}));
  }

  void closest_match_suggests_only_what_is_close() {
    const std::vector<std::string> names = {"transformer", "transformer-s", "vgg16", "vgg19", "gpt2", "resnet50"};
    QCOMPARE(shown(closest_match("transfomer", names)), QString("transformer"));
    QCOMPARE(shown(closest_match("vgg15", names)), QString("vgg16"));  // ties: the first
    QCOMPARE(shown(closest_match("gpt-2", names)), QString("gpt2"));
    QCOMPARE(shown(closest_match("resnet50", names)), QString("resnet50"));
    QCOMPARE(shown(closest_match("something else entirely", names)), QString());
    QCOMPARE(shown(closest_match("bert", names)), QString());
    QCOMPARE(shown(closest_match("x", {})), QString());
    QCOMPARE(shown(closest_match("owt", {"ft", "optcnn"})), QString());
    QCOMPARE(shown(closest_match("fft", {"ft", "optcnn"})), QString("ft"));
    QCOMPARE(shown(closest_match("hetf", {"heft"})), QString("heft"));
  }

  void names_that_match_patterns() {
    const auto matches = [](const char* name, const char* pattern) { return matches_wildcards(name, pattern); };
    QVERIFY(matches("layer7/mlp/up", "layer7/*") && matches("layer7/mlp/up", "*up") && matches("layer7/mlp/up", "*"));
    QVERIFY(matches("h.3.mlp.c_fc", "h.?.mlp.*") && matches("a", "a") && matches("", "") && matches("", "**"));
    QVERIFY(matches("abcabd", "*ab?") && matches("abcabd", "a*c*d") && matches("aaab", "*aab"));
    QVERIFY(!matches("layer17/mlp", "layer7/*") && !matches("layer7", "layer7/*") && !matches("", "?"));
    QVERIFY(!matches("abc", "ab") && !matches("abc", "") && !matches("abc", "*b") && !matches("abc", "abc?"));
  }
};

QTEST_APPLESS_MAIN(TextTest)
#include "text_test.moc"
