// SPDX-License-Identifier: Apache-2.0
#include "app/manual_window.h"

#include <QDir>
#include <QFileInfo>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QTextBrowser>
#include <QtTest>

using namespace turnpoint::app;

class ManualWindowTest : public QObject {
  Q_OBJECT

 private slots:
  void every_page_of_the_manual_can_be_read() {
    auto* window = new ManualWindow;
    window->show();
    const QDir sources(QStringLiteral(TURNPOINT_SOURCE_DIR "/resources/manual"));
    QSet<QString> listed;
    for (int row = 0; row < window->pages()->count(); ++row) {
      window->pages()->setCurrentRow(row);
      const QString path = window->page()->source().path();
      listed << path;
      QVERIFY2(window->page()->toPlainText().size() > 200, qPrintable(path));
      QVERIFY(!window->pages()->item(row)->text().isEmpty());
    }
    for (const QFileInfo& page : sources.entryInfoList({QStringLiteral("*.md")}))
      QVERIFY2(listed.contains(QStringLiteral("/resources/manual/") + page.fileName()), qPrintable(page.fileName()));
    window->close();
  }

  // Links from page to page stay in the window; what is not packed says where it is.
  void links_lead_to_pages_or_say_that_they_are_sources() {
    auto* window = new ManualWindow;
    static const QRegularExpression kLink(QStringLiteral("\\]\\(([^)#]+\\.md)"));
    int followed = 0;
    for (int row = 0; row < window->pages()->count(); ++row) {
      window->pages()->setCurrentRow(row);
      const QUrl page = window->page()->source();
      QFile file(u':' + page.path());
      QVERIFY(file.open(QIODevice::ReadOnly));
      auto link = kLink.globalMatch(QString::fromUtf8(file.readAll()));
      while (link.hasNext()) {
        const QUrl to(link.next().captured(1));
        if (!to.isRelative()) continue;
        window->pages()->setCurrentRow(row);
        window->open(to);
        const QUrl target = page.resolved(to);
        QVERIFY2(window->page()->source().path() == target.path(), qPrintable(page.path() + " " + target.path()));
        ++followed;
      }
    }
    QVERIFY(followed > 20);
    window->open(QUrl(QStringLiteral("../schemas/plan@1.schema.json")));
    QVERIFY(window->findChild<QLabel*>()->text().contains(u"part of the sources"));
    window->close();
  }

  void back_leads_to_the_page_before() {
    auto* window = new ManualWindow;
    const QUrl first = window->page()->source();
    window->pages()->setCurrentRow(3);
    QVERIFY(window->page()->source() != first);
    for (auto* button : window->findChildren<QPushButton*>())
      if (button->text().contains(u"Back")) button->click();
    QCOMPARE(window->page()->source(), first);
    QCOMPARE(window->pages()->currentRow(), 0);
    window->close();
  }
};

QTEST_MAIN(ManualWindowTest)
#include "manual_window_test.moc"
