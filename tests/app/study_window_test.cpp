// SPDX-License-Identifier: Apache-2.0
// Sample studies and notes in the real window on the fake backend: opening, pinning what is searched, saving.
#include <QAction>
#include <QDockWidget>
#include <QFile>
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QTextBrowser>
#include <QToolButton>
#include <QtTest>

#include "app/pinned_searches.h"
#include "app/session.h"
#include "app/start_page.h"
#include "app/studies.h"
#include "views/common/toggle_button.h"
#include "views/notes/notes_view.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

int index_of(const char* file) {
  int index = 0;
  for (const app::Study& study : app::studies()) {
    if (std::string(study.file) == file) return index;
    ++index;
  }
  return -1;
}

bool in_front(app::MainWindow& window, const char* key) {
  auto* dock = window.findChild<QDockWidget*>(QString::fromLatin1(key));
  return dock && !dock->visibleRegion().isEmpty();
}

}  // namespace

class StudyWindowTest : public QObject {
  Q_OBJECT

 private slots:
  void a_study_opens_with_its_notes_and_frontiers() {
    WindowFixture f;
    f.window->sessions().open_study(index_of("network-bandwidth"));
    QVERIFY(f.settle());
    QVERIFY(QTest::qWaitFor([&] { return f.document().pinned().size() == 3 && f.window->work().settled(); }, 60000));
    QCOMPARE(f.document().pinned()[0].label, QStringLiteral("inter-node ×0.5"));
    for (const auto& pinned : f.document().pinned()) QCOMPARE(pinned.points.size(), std::size_t(58));  // exact ones
    // Slower links between nodes: every point of the first is above the last one's.
    QVERIFY(f.document().pinned()[0].points[10].time_s > f.document().pinned()[2].points[10].time_s);
    QCOMPARE(part<views::NotesView>(f.window)->title(), QStringLiteral("Bandwidth between nodes"));
    QVERIFY(in_front(*f.window, "notes"));
    QCOMPARE(f.scenario_settings().accounting, Accounting::paper);
    QVERIFY(!f.scenario_settings().recompute);
    QVERIFY(f.window->work().pinned_searches.waiting().empty());
    QVERIFY(f.settings.recent_sessions().isEmpty());  // it is always at hand
  }

  void a_study_is_saved_as_a_session_of_the_users() {
    WindowFixture f;
    f.window->sessions().open_study(index_of("network-bandwidth"));
    QVERIFY(f.settle());
    QVERIFY(QTest::qWaitFor([&] { return f.window->work().settled() && f.document().pinned().size() == 3; }, 60000));
    const QString path = f.folder.filePath(QStringLiteral("mine.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    const auto saved = app::load_session(path.toStdString());
    QVERIFY(saved.has_value());
    QCOMPARE(saved->title, std::string("Bandwidth between nodes"));
    QCOMPARE(saved->notes, part<views::NotesView>(f.window)->notes().toStdString());
    QVERIFY(saved->searches.empty());  // they are answered: their points are in the file
    QCOMPARE(saved->pinned.size(), std::size_t(3));
  }

  void what_is_not_answered_yet_is_saved_as_a_search() {
    WindowFixture f;
    fake_world().exact_ms = 300;
    f.window->sessions().open_study(index_of("network-bandwidth"));
    QVERIFY(QTest::qWaitFor([&] { return f.document().pinned().size() == 3; }, 60000));  // the sketches
    QVERIFY(!f.window->work().pinned_searches.waiting().empty());
    const QString path = f.folder.filePath(QStringLiteral("early.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    const auto saved = app::load_session(path.toStdString());
    QVERIFY(saved.has_value());
    QVERIFY(!saved->searches.empty());
    QCOMPARE(saved->searches.back().scenario.settings.factors.inter_bandwidth, 4.0);
    // Removing them ends the work.
    f.window->actions()[app::ActionId::clear_pinned]->trigger();
    QVERIFY(QTest::qWaitFor([&] { return !f.window->work().tasks.busy(); }, 60000));
    QVERIFY(f.document().pinned().empty());
  }

  // Markers alone are no reason to wait for a curve.
  void pinned_searches_need_no_frontier() {
    WindowFixture f;
    app::Session session;
    session.scenario = {.model = "builtin:transformer-s", .hardware = "v100-16gb-2x8", .settings = {}};
    session.methods = {"data-parallel"};
    session.searches = {{"another batch", "data-parallel", session.scenario}};
    session.searches.front().scenario.settings.batch = 64;
    const QString path = f.folder.filePath(QStringLiteral("markers.turnpoint"));
    QVERIFY(app::save_session(session, path.toStdString()));
    f.window->sessions().open(path);
    QVERIFY(QTest::qWaitFor([&] { return f.document().pinned().size() == 1; }, 60000));
    QCOMPARE(f.document().pinned()[0].label, QStringLiteral("another batch"));
    QVERIFY(f.settle());
    QVERIFY(f.window->work().pinned_searches.waiting().empty());
  }

  void another_session_ends_what_the_study_searched() {
    WindowFixture f;
    QVERIFY(f.open());
    const QString path = f.folder.filePath(QStringLiteral("plain.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    fake_world().exact_ms = 200;
    f.window->sessions().open_study(index_of("hidden-size"));
    QVERIFY(QTest::qWaitFor([&] { return !f.document().pinned().empty(); }, 60000));
    f.window->sessions().open(path);
    QVERIFY(QTest::qWaitFor([&] { return f.document().pinned().empty(); }, 60000));
    QVERIFY(f.settle());
    QVERIFY(f.document().pinned().empty());
    QVERIFY(part<views::NotesView>(f.window)->notes().isEmpty());
  }

  void start_page_and_menu_list_every_study() {
    WindowFixture f;
    auto* page = f.window->findChild<app::StartPage*>();
    QVERIFY(page);
    QStringList links;
    for (QToolButton* button : page->findChildren<QToolButton*>()) links << button->text();
    QMenu* menu = nullptr;
    for (QMenu* each : f.window->menuBar()->findChildren<QMenu*>())
      if (each->title() == QStringLiteral("Sample studies")) menu = each;
    QVERIFY(menu);
    QCOMPARE(menu->actions().size(), qsizetype(app::studies().size()));
    for (const app::Study& study : app::studies()) {
      QVERIFY(links.contains(QString::fromLatin1(study.title)));
      const auto session = app::load_study(app::study_path(study));
      QVERIFY2(session.has_value(), session ? "" : session.error().message().c_str());
      QCOMPARE(session->title, std::string(study.title));
    }
    menu->actions().constFirst()->trigger();
    QVERIFY(f.settle());
    QCOMPARE(f.document().state().model, std::string("builtin:rnn"));
    QVERIFY(!app::load_study(QStringLiteral(":/studies/absent.turnpoint")));
  }

  void the_parallelism_study_opens_on_its_tab() {
    WindowFixture f;
    f.window->sessions().open_study(index_of("parallelism-transformer"));
    QVERIFY(f.settle());
    QVERIFY(in_front(*f.window, "parallelism"));
  }

  void notes_are_written_saved_and_read() {
    WindowFixture f;
    QVERIFY(f.open());
    views::NotesView& notes = *part<views::NotesView>(f.window);
    QVERIFY(notes.page()->toPlainText().contains(QStringLiteral("No notes")));
    QVERIFY(notes.notes().isEmpty());
    notes.edit_button()->setChecked(true);
    notes.editor()->setPlainText(QStringLiteral("# Mine\n\nTwo *words*, <b>no tags</b>."));
    const QString path = f.folder.filePath(QStringLiteral("noted.turnpoint"));
    QVERIFY(f.window->sessions().save(path));  // while still writing
    notes.edit_button()->setChecked(false);
    QVERIFY(notes.page()->toPlainText().contains(QStringLiteral("Two words")));
    QVERIFY(notes.page()->toPlainText().contains(QStringLiteral("<b>")));
    notes.set_notes({}, {});
    f.window->sessions().open(path);
    QVERIFY(f.settle());
    QCOMPARE(notes.notes(), QStringLiteral("# Mine\n\nTwo *words*, <b>no tags</b>."));
    QVERIFY(notes.page()->toHtml().contains(QStringLiteral("Mine")));
  }
};

QTEST_MAIN(StudyWindowTest)
#include "study_window_test.moc"
