// SPDX-License-Identifier: Apache-2.0
// What either half of a ratio plan's first cut has of every operator, on plans made by hand.
#include "views/common/ratio_shares.h"

#include <QtTest>

#include "plan/ratio_plans.h"
#include "views/common/theme_colors.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

/// 12 samples of a product, the V100 first: it has so many of them, so that the A100 has the others.
RatioSharesPtr shares_of(std::int64_t first, const char* hardware = "v100-16gb-1x1+a100-80gb-1x1") {
  const ScenarioPtr scenario = test::rings_on(test::one_product(), hardware);
  return RatioShares::make(std::make_shared<const RatioPlan>(test::cut_by("batch", first, *scenario)), scenario);
}

double luminance(const QColor& color) {
  const auto linear = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double contrast(const QColor& a, const QColor& b) {
  const double one = luminance(a), other = luminance(b);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

}  // namespace

class RatioSharesTest : public QObject {
  Q_OBJECT

 private slots:
  void the_stronger_half_is_the_one_that_computes_more() {
    const RatioSharesPtr shares = shares_of(3);
    QCOMPARE(shares->stronger(), QString("A100-80GB"));
    QCOMPARE(shares->weaker(), QString("V100-16GB"));
    for (std::uint32_t o = 0; o < shares->operators(); ++o) QCOMPARE(shares->of(OperatorId(o)), 9.0 / 12);
    // The same tree with its halves exchanged: 3 of 12 are the A100's now.
    const RatioSharesPtr turned = shares_of(3, "a100-80gb-1x1+v100-16gb-1x1");
    QCOMPARE(turned->stronger(), QString("A100-80GB"));
    QCOMPARE(turned->of(OperatorId(0)), 3.0 / 12);
    // Of equal ones the first.
    QCOMPARE(shares_of(3, "v100-16gb-1x2")->of(OperatorId(0)), 3.0 / 12);
  }

  void many_weak_devices_are_stronger_than_one() {
    const ScenarioPtr scenario = test::rings_on(test::one_product(), "v100-16gb-1x8+a100-80gb-1x1");
    RatioPlan plan = test::cut_by("batch", 3, *scenario);
    plan.order = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    // Eight in a row, one part within the other: 2 is parts 0 and 0, 3 is parts 0 and 1, and so on.
    plan.parts = {{1, {}}};
    for (std::uint32_t devices = 2; devices <= 8; ++devices) plan.parts.push_back({devices, {0, devices - 2}});
    plan.parts.push_back({9, {7, 0}});
    plan.cuts.front().part = plan.whole();
    const auto shares = RatioShares::make(std::make_shared<const RatioPlan>(plan), scenario);
    QCOMPARE(shares->stronger(), QStringLiteral("8 × V100-16GB"));
    QCOMPARE(shares->words(OperatorId(0)), QStringLiteral("25% on 8 × V100-16GB, 75% on A100-80GB"));
  }

  void words_are_a_hundred_together() {
    const RatioSharesPtr shares = shares_of(4);
    QCOMPARE(shares->words(OperatorId(0)), QString("66.67% on A100-80GB, 33.33% on V100-16GB"));
  }

  void what_both_halves_do_is_said() {
    const ScenarioPtr scenario = test::rings_on(test::one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    RatioPlan plan = test::cut_by("batch", 3, *scenario);
    auto& share = plan.cuts.front().share;
    QVERIFY(share.size() >= 2);
    share[0] = {};
    const auto shares = RatioShares::make(std::make_shared<const RatioPlan>(plan), scenario);
    QCOMPARE(shares->of(OperatorId(0)), RatioShares::kBoth);
    QCOMPARE(shares->words(OperatorId(0)), QString("both halves do all of it"));
    // Of several that are cut by different units, the least and the most of each half; uncut ones are left out.
    share[1].first = 6;
    const OperatorId two[] = {OperatorId(0), OperatorId(1)};
    const auto mixed = RatioShares::make(std::make_shared<const RatioPlan>(plan), scenario);
    QCOMPARE(mixed->words(two), QString("50% on A100-80GB, 50% on V100-16GB"));
    share[0] = {share[1].loop, 3};
    QCOMPARE(RatioShares::make(std::make_shared<const RatioPlan>(plan), scenario)->words(two),
             QString("50% \u2013 75% on A100-80GB, 25% \u2013 50% on V100-16GB"));
  }

  void steps_are_the_same_on_both_sides_of_a_half() {
    QCOMPARE(RatioShares::step_of(RatioShares::kBoth), int(RatioShares::kBothStep));
    QCOMPARE(RatioShares::step_of(0.5), int(RatioShares::kEven));
    int last = 0;
    for (int percent = 0; percent <= 100; ++percent) {
      const int step = RatioShares::step_of(percent / 100.0);
      QVERIFY(step == last || step == last + 1);
      last = step;
      QCOMPARE(RatioShares::step_of((100 - percent) / 100.0), RatioShares::kSteps - 1 - step);
    }
    QCOMPARE(last, RatioShares::kSteps - 1);
    QCOMPARE(RatioShares::step_words(RatioShares::step_of(0.68)), QString("60% to 75%"));
    QCOMPARE(RatioShares::step_words(RatioShares::step_of(0.1)), QString("below 25%"));
    QCOMPARE(RatioShares::step_words(RatioShares::step_of(0.9)), QString("above 75%"));
  }

  void a_plan_that_cuts_nothing_has_none() {
    const ScenarioPtr scenario = test::rings_on(test::one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    QVERIFY(!RatioShares::make(nullptr, scenario));
    RatioPlan plan = test::cut_by("batch", 3, *scenario);
    plan.cuts.front().share.pop_back();
    QVERIFY(!RatioShares::make(std::make_shared<const RatioPlan>(plan), scenario));
    plan.cuts.clear();
    QVERIFY(!RatioShares::make(std::make_shared<const RatioPlan>(plan), scenario));
  }

  void colours_are_told_apart_and_bear_text() {
    for (const bool dark : {false, true}) {
      const ThemeColors& theme = theme_colors(make_palette(dark));
      for (std::size_t a = 0; a < theme.ratio.size(); ++a) {
        const QColor& color = theme.ratio[a];
        const QColor text = qGray(color.rgb()) < 128 ? Qt::white : Qt::black;
        QVERIFY2(contrast(color, text) >= 4.5, qPrintable(color.name()));
        for (std::size_t b = 0; b < a; ++b) {
          const QColor& other = theme.ratio[b];
          const int apart = std::abs(color.red() - other.red()) + std::abs(color.green() - other.green()) +
                            std::abs(color.blue() - other.blue());
          QVERIFY2(apart >= 48, qPrintable(color.name() + ' ' + other.name()));
        }
      }
    }
  }
};

QTEST_MAIN(RatioSharesTest)
#include "ratio_shares_test.moc"
