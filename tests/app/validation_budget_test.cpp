// SPDX-License-Identifier: Apache-2.0
// How long a run may take is said in the Validation tab itself, and so is what would be enough.
#include <QRegularExpression>
#include <QTest>

#include "app/real_window.h"
#include "app/tabs/validation_tab.h"
#include "views/validation/validation_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

class ValidationBudgetTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { qputenv("TURNPOINT_PROBE", TURNPOINT_BINARY_DIR "/turnpoint-probe"); }
  void cleanupTestCase() { qunsetenv("TURNPOINT_PROBE"); }

  void a_budget_is_given_in_the_page() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet?batch=32", "v100-16gb-1x2", 0);
    QVERIFY(real.settle());
    app::ValidationTab* page = tab<app::ValidationTab>(real.window);
    QVERIFY2(page->refusal().isEmpty(), qPrintable(page->refusal()));
    real.window->work().document.set_option("batch", 32768, 0);
    QVERIFY(real.settle());
    views::ValidationView* view = part<views::ValidationView>(real.window);
    view->restore_state({{"budget_s", 1}});
    const QString refusal = page->refusal();
    QVERIFY2(!refusal.isEmpty() && !refusal.contains("--"), qPrintable(refusal));
    const auto asked = QRegularExpression("give a budget of ([0-9]+) s").match(refusal);
    QVERIFY2(asked.hasMatch(), qPrintable(refusal));
    view->restore_state({{"budget_s", asked.captured(1).toDouble()}});
    QVERIFY2(page->refusal().isEmpty(), qPrintable(page->refusal()));
  }
};

QTEST_MAIN(ValidationBudgetTest)
#include "validation_budget_test.moc"
