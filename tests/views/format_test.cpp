// SPDX-License-Identifier: Apache-2.0
// Figures as the window writes them: units, separators, signs, digits.
#include <QtTest>

#include "views/common/format.h"

using namespace turnpoint::views;

class FormatTest : public QObject {
  Q_OBJECT

 private slots:
  void numbers() {
    QCOMPARE(grouped_number(1012, 0), QStringLiteral("1\u2009012"));
    QCOMPARE(grouped_number(-0.04, 1), QStringLiteral("0.0"));
    QCOMPARE(grouped_number(-4.1, 1), QStringLiteral("\u22124.1"));
    QCOMPARE(memory_text(10307921510LL), QStringLiteral("9.6\u00a0GiB"));
    QCOMPARE(bytes_beside(20e6, 9e9), QStringLiteral("<0.1\u00a0GiB"));  // little is not nothing
    QCOMPARE(bytes_beside(0, 9e9), QStringLiteral("0\u00a0GiB"));
    QCOMPARE(memory_text(148LL << 20), QStringLiteral("148\u00a0MiB"));
    QCOMPARE(memory_text(600LL << 10), QStringLiteral("600\u00a0KiB"));
    QCOMPARE(time_text(0.812), QStringLiteral("812\u00a0ms"));
    QCOMPARE(time_text(0.0316), QStringLiteral("31.6\u00a0ms"));
    QCOMPARE(time_text(12.4), QStringLiteral("12.4\u00a0s"));
    QCOMPARE(time_text(0.09996), QStringLiteral("100\u00a0ms"));
    QCOMPARE(percent_text(0.041), QStringLiteral("+4.1%"));
    QCOMPARE(share_text(0.996), QStringLiteral("100%"));
    QCOMPARE(portion_text(0.5), QStringLiteral("50%"));
    QCOMPARE(portion_text(0.525), QStringLiteral("52.5%"));
    QCOMPARE(portion_text(0.475), QStringLiteral("47.5%"));
    QCOMPARE(portion_text(0.2625), QStringLiteral("26.25%"));
    QCOMPARE(shares_text({1, 1, 1}), (std::vector<QString>{"34%", "33%", "33%"}));
    QCOMPARE(shares_text({52.5, 47.5}), (std::vector<QString>{"53%", "47%"}));
    QCOMPARE(shares_text({0, 0}), (std::vector<QString>{"", ""}));
    QCOMPARE(progress_text(0.996), QStringLiteral("99%"));
    QCOMPARE(progress_text(0.4), QStringLiteral("40%"));
    QCOMPARE(percent_text(-0.027), QStringLiteral("\u22122.7%"));
    QCOMPARE(percent_text(0.48), QStringLiteral("+48%"));
    QCOMPARE(bandwidth_text(65e9), QStringLiteral("65\u00a0GB/s"));
    QCOMPARE(latency_text(5e-6), QStringLiteral("5.0\u00a0\u00b5s"));
    QCOMPARE(speed_text(125e12), QStringLiteral("125\u00a0TFLOP/s"));
    QCOMPARE(factor_text(0.5), QStringLiteral("\u00d70.50"));
    QCOMPARE(
        with_groups(QStringLiteral("The run needs 14534.8 GiB, 2790 s of 1234567 ms; batch 2048 of gpt1234 s, 812 ms")),
        QStringLiteral(
            "The run needs 14\u2009534.8 GiB, 2\u2009790 s of 1\u2009234\u2009567 ms; batch 2048 of gpt1234 s, "
            "812 ms"));
  }
};

QTEST_MAIN(FormatTest)
#include "format_test.moc"
