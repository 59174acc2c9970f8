// SPDX-License-Identifier: Apache-2.0
// Splits of the user's own in the window: typed, refused, drawn, changed, taken out, saved and opened again.
#include <QLabel>
#include <QLineEdit>

#include "views/scenario/methods_list.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

void type_split(WindowFixture& f, const QString& text) {
  auto* line = part<views::ScenarioPanel>(f.window)->findChild<QLineEdit*>(QStringLiteral("split_line"));
  line->setFocus();
  line->clear();
  QTest::keyClicks(line, text);
  QTest::keyClick(line, Qt::Key_Return);
}

const views::MethodRow* row_of(WindowFixture& f, const QString& name) {
  for (const auto& row : part<views::ScenarioPanel>(f.window)->methods_model()->rows())
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

class SplitsTest : public QObject {
  Q_OBJECT

 private slots:
  void a_typed_split_is_searched_and_drawn() {
    WindowFixture f;
    QVERIFY(f.open());
    QVERIFY(!row_of(f, QStringLiteral("manual")));  // the method itself is a line, not a row
    const auto series = f.chart().data().series.size();
    type_split(f, QStringLiteral("tp=2  recompute"));
    QVERIFY(f.settle());
    const auto* row = row_of(f, QStringLiteral("manual:tp=2:recompute"));
    QVERIFY(row);
    QCOMPARE(row->title, QStringLiteral("tp=2 recompute"));
    QVERIFY(row->enabled);
    QCOMPARE(row->state, views::MethodRow::State::done);
    QCOMPARE(f.chart().data().series.size(), series + 1);
    QCOMPARE(f.chart().data().series.back().title, QStringLiteral("tp=2 recompute"));
    auto* line = part<views::ScenarioPanel>(f.window)->findChild<QLineEdit*>(QStringLiteral("split_line"));
    QVERIFY(line->text().isEmpty());
    // The same one again is the same row.
    for (const char* again : {"tp=2:recompute", "tp=2, recompute", "tp=2,recompute"}) type_split(f, QString(again));
    QVERIFY(f.settle());
    QCOMPARE(f.runner().splits(), std::vector<std::string>{"tp=2:recompute"});
    // It outlives an edit and its undo.
    f.document().set_option("batch", 512, 0);
    QVERIFY(f.settle());
    f.document().undo_stack().undo();
    QVERIFY(f.settle());
    QVERIFY(row_of(f, QStringLiteral("manual:tp=2:recompute"))->enabled);
    QCOMPARE(f.chart().data().series.size(), series + 1);
  }

  void nonsense_keeps_its_text_and_says_why() {
    WindowFixture f;
    QVERIFY(f.open());
    type_split(f, QStringLiteral("foo"));
    auto* note = part<views::ScenarioPanel>(f.window)->findChild<QLabel*>(QStringLiteral("split_note"));
    auto* line = part<views::ScenarioPanel>(f.window)->findChild<QLineEdit*>(QStringLiteral("split_line"));
    QVERIFY(note->isVisible());
    QCOMPARE(note->text(), QStringLiteral("a split is written tp=2"));
    QCOMPARE(line->text(), QStringLiteral("foo"));
    QVERIFY(f.runner().splits().empty());
    QTest::keyClick(line, Qt::Key_Backspace);
    QVERIFY(!note->isVisible());
  }

  void a_refused_split_is_shown_with_its_reason() {
    WindowFixture f;
    QVERIFY(f.open());
    type_split(f, QStringLiteral("tp=3"));
    QVERIFY(f.settle());
    const auto* row = row_of(f, QStringLiteral("manual:tp=3"));
    QVERIFY(row);
    QCOMPARE(row->state, views::MethodRow::State::refused);
    QVERIFY(!row->enabled);
    QVERIFY(row->tool_tip.startsWith(QStringLiteral("3 does not divide 16")));
  }

  void delete_takes_it_out_even_while_it_runs() {
    WindowFixture f;
    QVERIFY(f.open());
    fake_world().other_ms = 400;
    type_split(f, QStringLiteral("tp=4"));
    QTRY_COMPARE(row_of(f, QStringLiteral("manual:tp=4"))->state, views::MethodRow::State::running);
    auto* list = part<views::ScenarioPanel>(f.window)->findChild<views::MethodsList*>();
    list->setCurrentIndex(list->model()->index(list->model()->rowCount() - 1, 0));
    list->setFocus();
    QTest::keyClick(list, Qt::Key_Delete);
    QVERIFY(!row_of(f, QStringLiteral("manual:tp=4")));
    QVERIFY(f.settle());
    // Methods of the registry cannot be taken out.
    const int rows = list->model()->rowCount();
    list->setCurrentIndex(list->model()->index(0, 0));
    QTest::keyClick(list, Qt::Key_Delete);
    QCOMPARE(list->model()->rowCount(), rows);
  }

  void sessions_keep_splits_checked_or_not() {
    const QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("a.turnpoint"));
    {
      WindowFixture f;
      QVERIFY(f.open());
      type_split(f, QStringLiteral("tp=2"));
      type_split(f, QStringLiteral("tp=8"));
      QVERIFY(f.settle());
      f.runner().set_enabled("manual:tp=8", false);
      QVERIFY(f.window->sessions().save(path));
    }
    WindowFixture f;
    f.window->sessions().open(path);
    QVERIFY(f.settle());
    QTRY_VERIFY(row_of(f, QStringLiteral("manual:tp=8")));
    QVERIFY(row_of(f, QStringLiteral("manual:tp=2"))->enabled);
    QVERIFY(!row_of(f, QStringLiteral("manual:tp=8"))->enabled);
    QTRY_COMPARE(row_of(f, QStringLiteral("manual:tp=2"))->state, views::MethodRow::State::done);
  }
};

QTEST_MAIN(SplitsTest)
#include "splits_test.moc"
