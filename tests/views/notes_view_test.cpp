// SPDX-License-Identifier: Apache-2.0
// Notes as a page: tables, and no more than text where a file wants to be a web page. With
// TURNPOINT_SCREENSHOTS=<folder> it also writes pictures.
#include "views/notes/notes_view.h"

#include <QApplication>
#include <QDir>
#include <QTest>
#include <QTextBrowser>
#include <QTextTable>

#include "views/common/theme_colors.h"

using namespace turnpoint::views;

namespace {

const QString kNotes = QStringLiteral(
    "# Result\n\nWhat was found:\n\n| Method | Memory | Time |\n|:--|--:|--:|\n| FT | 4.1 GiB | 512 ms |\n"
    "| Data parallel | 9.6 GiB | 530 ms |\n\nThat is **all**, ~~nearly~~.\n");

QTextTable* table_of(const NotesView& notes) {
  for (QTextFrame* frame : notes.page()->document()->rootFrame()->childFrames())
    if (auto* table = qobject_cast<QTextTable*>(frame)) return table;
  return nullptr;
}

QString cell_text(QTextTable* table, int row, int column) {
  QTextCursor cursor = table->cellAt(row, column).firstCursorPosition();
  cursor.setPosition(table->cellAt(row, column).lastCursorPosition().position(), QTextCursor::KeepAnchor);
  return cursor.selectedText();
}

}  // namespace

class NotesViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { QApplication::setStyle(QStringLiteral("Fusion")); }

  void tables_are_tables() {
    NotesView notes;
    notes.set_notes(QStringLiteral("Session"), kNotes);
    QTextTable* table = table_of(notes);
    QVERIFY(table);
    QCOMPARE(table->rows(), 3);
    QCOMPARE(table->columns(), 3);
    QCOMPARE(cell_text(table, 0, 1), QStringLiteral("Memory"));
    QCOMPARE(cell_text(table, 2, 0), QStringLiteral("Data parallel"));
    QVERIFY(!notes.page()->toPlainText().contains(u'|'));
    // With lines and room around the words, and a head that stands out.
    QVERIFY(table->format().border() >= 1 && table->format().cellPadding() >= 2);
    QVERIFY(table->cellAt(0, 0).format().background().style() != Qt::NoBrush);
    QVERIFY(table->cellAt(1, 0).format().background().style() == Qt::NoBrush);
  }

  void they_follow_the_palette_and_the_editor() {
    NotesView notes;
    notes.set_notes({}, kNotes);
    const QBrush light = table_of(notes)->cellAt(0, 0).format().background();
    notes.setPalette(make_palette(true));
    QTest::qWait(10);
    QVERIFY(table_of(notes) && table_of(notes)->cellAt(0, 0).format().background() != light);
    QCOMPARE(notes.notes(), kNotes);
    notes.set_notes({}, QStringLiteral("no | table"));
    QVERIFY(!table_of(notes));
  }

  void short_rules_are_rules_too() {
    NotesView notes;
    for (const char* rule : {"|--|--|", "| - | -: |", "--|--", "|:-|:-:|"}) {
      notes.set_notes({}, QStringLiteral("| a | b |\n%1\n| x | y |\n").arg(QLatin1String(rule)));
      QVERIFY2(table_of(notes), rule);
      QCOMPARE(cell_text(table_of(notes), 1, 1), QStringLiteral("y"));
    }
    // What stands in code, and what is kept, is as it was written.
    const QString code = QStringLiteral("```\n|--|--|\n```\n\na - b\n");
    notes.set_notes({}, code);
    QVERIFY(notes.page()->toPlainText().contains(QStringLiteral("|--|--|")));
    QVERIFY(notes.page()->toPlainText().contains(QStringLiteral("a - b")));
    QCOMPARE(notes.notes(), code);
  }

  void html_stays_text() {
    NotesView notes;
    notes.set_notes({}, QStringLiteral("<b>bold</b>\n\n| a | b |\n|---|---|\n| <i>x</i> | y |\n"));
    QVERIFY(notes.page()->toPlainText().contains(QStringLiteral("<b>bold</b>")));
    QVERIFY(table_of(notes));
    QCOMPARE(cell_text(table_of(notes), 1, 0), QStringLiteral("<i>x</i>"));
  }

  void pictures() {
    const QString folder = qEnvironmentVariable("TURNPOINT_SCREENSHOTS");
    if (folder.isEmpty()) QSKIP("set TURNPOINT_SCREENSHOTS to a folder");
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      NotesView notes;
      notes.resize(600, 300);
      notes.set_notes(QStringLiteral("Session"), kNotes);
      notes.show();
      QVERIFY(QTest::qWaitForWindowExposed(&notes));
      QVERIFY(notes.grab().save(QDir(folder).filePath(dark ? "notes_dark.png" : "notes_light.png")));
    }
  }
};

QTEST_MAIN(NotesViewTest)
#include "notes_view_test.moc"
