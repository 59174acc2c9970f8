// SPDX-License-Identifier: Apache-2.0
// The tab Study in a window: the answers that came with the program, asking again, stopping, and sessions.
#include <QComboBox>
#include <QDockWidget>
#include <QMessageBox>
#include <QPushButton>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/studies.h"
#include "views/study/study_view.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct StudyWindow : WindowFixture {
  views::StudyView& view() { return *part<views::StudyView>(window); }
  const BatchStudy& study() { return *view().chart()->study(); }
  void look() { window->findChild<QDockWidget*>(QStringLiteral("study"))->raise(); }
  bool runs() { return view().run_button()->text() == QStringLiteral("Stop"); }
  /// A session whose tab has this study.
  QString session_with(const BatchStudy& of) {
    const QString path = folder.filePath(QStringLiteral("s.turnpoint"));
    if (!window->sessions().save(path)) return {};
    std::ifstream file(path.toStdString());
    auto document = nlohmann::json::parse(file);
    document["window"]["views"]["study"] = {{"study", write_batch_study(of)}, {"figure", 1}};
    std::ofstream(path.toStdString()) << document.dump();
    return path;
  }
};

/// One network on one and two devices; `slow`: all ten of the study, whose answers take minutes.
BatchStudy study_to_ask(bool slow = false) {
  auto study = *app::load_batch_study();
  study.cells.clear();
  if (slow) return study;
  study.devices = {1, 2};
  study.methods = {"heft", "single-device"};
  study.networks = {{"builtin:lenet", "LeNet", {64, 0}}};
  return study;
}

}  // namespace

class StudyTabTest : public QObject {
  Q_OBJECT

 private slots:
  void it_is_drawn_at_once_as_it_came() {
    StudyWindow f;
    f.look();
    QTRY_VERIFY(f.view().chart()->study());
    QCOMPARE(f.study().networks.size(), std::size_t(10));
    QVERIFY(!f.study().cells.empty() && !f.runs());
    // Every cell of a network that the paper has a batch for was asked, at it and at the largest.
    for (const StudiedNetwork& network : f.study().networks)
      for (std::size_t i = 0; i < f.study().devices.size(); ++i)
        for (const std::string& method : f.study().methods) {
          StudyCell asked;
          asked.model = network.model, asked.devices = f.study().devices[i], asked.method = method;
          asked.at_reported = true;
          QVERIFY2((network.reported[i] > 0) == (f.study().find(asked) != nullptr), network.title.c_str());
        }
    QVERIFY(f.open());
    const QString path = f.folder.filePath("plain.turnpoint");
    QVERIFY(f.window->sessions().save(path));
    std::ifstream file(path.toStdString());
    QVERIFY(!nlohmann::json::parse(file)["window"]["views"]["study"].contains("study"));  // nothing of its own
  }

  void asked_again_it_is_answered_and_kept() {
    StudyWindow f;
    QVERIFY(f.open());
    const QString path = f.session_with(study_to_ask());
    f.window->sessions().open(path);
    QVERIFY(f.settle());
    f.look();
    QTRY_VERIFY(f.view().chart()->study() && f.study().networks.size() == 1);
    QCOMPARE(f.view().figure_box()->currentIndex(), 1);
    QVERIFY(f.study().cells.empty());
    f.view().run_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(!f.runs() && !f.study().cells.empty(), 60000);
    // On one device both at the largest batch and the paper's; on two the paper has none.
    QCOMPARE(f.study().cells.size(), std::size_t(6));
    QVERIFY(!f.study().made.empty() && f.view().findings().contains("of 1 cases with several devices"));
    // With another parameter the answers stand beside these, and nothing says that all are of the same day.
    BatchStudy old = f.study();
    old.made = "2001-02-03";
    f.window->sessions().open(f.session_with(old));
    QVERIFY(f.settle());
    QTRY_COMPARE(f.study().made, std::string("2001-02-03"));
    f.view().choose(views::StudyFigure::batch, "whole-layers");
    f.view().run_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(!f.runs() && f.study().cells.size() == 12, 60000);
    QCOMPARE(f.study().made, std::string("2001-02-03"));
    const std::string written = write_batch_study(f.study());
    QVERIFY(f.window->sessions().save(path));
    StudyWindow other;
    other.window->sessions().open(path);
    QVERIFY(other.settle());
    QVERIFY(write_batch_study(other.study()) == written);
    QCOMPARE(other.view().graph(), std::string("whole-layers"));
  }

  void its_answers_are_asked_about_before_they_are_lost() {
    StudyWindow f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    const QString path = f.session_with(study_to_ask());
    f.window->sessions().open(path);
    QVERIFY(f.settle());
    f.look();
    QTRY_VERIFY(f.view().chart()->study() && f.study().networks.size() == 1);
    const auto question = [&] { return f.window->findChild<QMessageBox*>(QStringLiteral("ask_save")); };
    const QString plain = f.folder.filePath(QStringLiteral("plain.turnpoint"));
    QVERIFY(QFile::copy(path, plain));
    // What the session holds is in its file.
    f.window->opener().open_path(plain);
    QVERIFY(f.settle() && !question());
    f.view().run_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(!f.runs() && f.study().cells.size() == 6, 60000);
    for (const bool ends : {false, true}) {
      if (ends)
        QVERIFY(!f.window->close());
      else
        f.window->opener().open_path(path);
      QTRY_VERIFY(question());
      QCOMPARE(question()->informativeText(),
               QStringLiteral("Changed since it was opened or saved: answers of the study."));
      question()->button(QMessageBox::Cancel)->click();
      QTRY_VERIFY(!question());
      QCOMPARE(f.study().cells.size(), std::size_t(6));
    }
    QVERIFY(f.window->sessions().save(plain));
    QVERIFY(f.window->close());
    QVERIFY(!question());
  }

  void stopped_it_keeps_what_it_had() {
    StudyWindow f;
    QVERIFY(f.open());
    f.window->sessions().open(f.session_with(study_to_ask(true)));
    QVERIFY(f.settle());
    f.look();
    QTRY_VERIFY(f.view().chart()->study() && f.study().cells.empty());
    f.view().run_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(!f.study().cells.empty(), 120000);
    QVERIFY(f.runs());
    f.view().run_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(!f.runs(), 10000);
    QVERIFY(f.view().state_words().startsWith("stopped; answers that the study had not asked for again"));
    const std::size_t kept = f.study().cells.size();
    QTest::qWait(200);
    QCOMPARE(f.study().cells.size(), kept);
    QVERIFY(kept < 100);
    // Another beginning has the study as it came.
    f.window->sessions().begin_anew();
    QVERIFY(f.study().cells.size() > kept);
  }
};

QTEST_MAIN(StudyTabTest)
#include "study_tab_test.moc"
