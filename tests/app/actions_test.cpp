// SPDX-License-Identifier: Apache-2.0
#include <QAction>
#include <QKeySequence>
#include <QLayout>
#include <QLineEdit>
#include <QMap>
#include <QTest>
#include <QWidget>

#include "app/actions.h"
#include "app/command_palette.h"
#include "app/start_page.h"
#include "core/export/format.h"
#include "views/common/message_bar.h"

using namespace turnpoint::app;
namespace views = turnpoint::views;

class ActionsTest : public QObject {
  Q_OBJECT

 private slots:
  void no_two_shortcuts_collide() {
    QMap<QString, QString> taken;
    for (int i = 1; i <= 7; ++i) taken.insert(QStringLiteral("Ctrl+%1").arg(i), QStringLiteral("view %1").arg(i));
    for (const ActionRecord& record : action_table()) {
      if (!*record.shortcut) continue;
      const QKeySequence keys(QString::fromLatin1(record.shortcut), QKeySequence::PortableText);
      QVERIFY2(!keys.isEmpty(), record.shortcut);
      const QString text = keys.toString();
      QVERIFY2(
          !taken.contains(text),
          qPrintable(QStringLiteral("%1: %2 and %3").arg(text, taken.value(text), QString::fromLatin1(record.key))));
      taken.insert(text, QString::fromLatin1(record.key));
    }
  }

  void every_record_is_complete_and_every_icon_exists() {
    QWidget window;
    const ActionSet actions(&window);
    QSet<QString> keys;
    for (const ActionRecord& record : action_table()) {
      QVERIFY(*record.text && *record.tip);
      QVERIFY2(!keys.contains(QString::fromLatin1(record.key)), record.key);
      keys.insert(QString::fromLatin1(record.key));
      QAction* action = record.format ? actions[*record.format] : actions[record.id];
      QVERIFY2(action, record.key);
      if (*record.icon)
        QVERIFY2(!action->icon().isNull() && !action->icon().pixmap(16, 16).toImage().isNull(), record.icon);
    }
  }

  void every_format_has_an_action() {
    QWidget window;
    const ActionSet actions(&window);
    QStringList texts;
    for (const turnpoint::ExportFormat& format : turnpoint::export_formats()) {
      QAction* action = actions[format];
      QVERIFY2(action && actions.all().contains(action), format.title().c_str());
      QCOMPARE(action->text(), QString::fromStdString(format.title()) + QStringLiteral("…"));
      QVERIFY2(!texts.contains(action->text()), qPrintable(action->text()));
      texts << action->text();
      actions.allow(action, QStringLiteral("Not now."));
      QVERIFY(!action->isEnabled() && action->toolTip().endsWith(QStringLiteral("\nNot now.")));
      QVERIFY(action->toolTip().startsWith(QString::fromUtf8(format.text)));
    }
  }

  void palette_ranks_word_starts_first() {
    const std::vector<PaletteEntry> entries{{QStringLiteral("layer0/unpin"), {}, {}},
                                            {QStringLiteral("Pin frontier"), {}, {}},
                                            {QStringLiteral("layer1/fc"), {}, {}}};
    QCOMPARE(find_entries(entries, QStringLiteral("pin"), 10), (std::vector<std::size_t>{1, 0}));
    QCOMPARE(find_entries(entries, QStringLiteral("fc layer1"), 10), std::vector<std::size_t>{2});
    QCOMPARE(find_entries(entries, QStringLiteral("nothing"), 10), std::vector<std::size_t>{});
    QCOMPARE(find_entries(entries, QString(), 2).size(), std::size_t(2));
  }

  void palette_is_as_high_as_what_it_found() {
    QWidget window;
    window.resize(1200, 800);
    window.show();
    CommandPalette palette(&window);
    std::vector<PaletteEntry> entries(40, {QStringLiteral("layer"), {}, {}});
    entries.push_back({QStringLiteral("Batch"), {}, {}});
    palette.open(entries);
    const int full = palette.height();
    QVERIFY(full > 300 && full <= 420);
    auto* field = palette.findChild<QLineEdit*>();
    field->setText(QStringLiteral("batch"));
    QVERIFY2(palette.height() < 100, qPrintable(QString::number(palette.height())));
    field->clear();
    QCOMPARE(palette.height(), full);
  }

  // An error at the start would hide the very buttons that lead out of it.
  void the_start_page_begins_below_a_message() {
    QWidget window;
    const ActionSet actions(&window);
    QWidget area;
    StartPage page(actions, &area);
    views::MessageBar messages;
    QWidget head(&area);
    head.hide();
    connect(&messages, &views::MessageBar::covers, &page, &StartPage::keep_clear);
    messages.hang_below(&head, &area);
    area.resize(600, 400);
    page.resize(600, 400);
    area.show();
    messages.show_message({views::Message::Kind::error, QStringLiteral("No such file"), QStringLiteral("/a"), {}});
    QVERIFY(messages.height() > 20);
    QCOMPARE(page.layout()->contentsMargins().top(), messages.height());
    messages.dismiss();
    QCOMPARE(page.layout()->contentsMargins().top(), 0);
  }
};

QTEST_MAIN(ActionsTest)
#include "actions_test.moc"
