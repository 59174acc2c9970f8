// SPDX-License-Identifier: Apache-2.0
// The session document: what is written is read back, meets its schema, and no mutation of it can do harm.
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "app/session.h"
#include "core/base/json.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::app;
using nlohmann::json;

namespace {

Session full_session() {
  Session session;
  session.scenario.model = "builtin:vgg16";
  session.scenario.hardware = "v100-16gb-2x8";
  session.scenario.settings.batch = 512;
  session.scenario.settings.factors.intra_bandwidth = 1.0 / 3;
  session.scenario.settings.seed = 9007199254740991ull;
  session.methods = {"ft", "optcnn", "manual:tp=2"};
  session.splits = {"tp=2", "pp=4:recompute"};
  views::PinnedFrontier pinned;
  pinned.label = QStringLiteral("NVLink ×0.33");
  pinned.method = "ft";
  pinned.model = "vgg16";
  for (int i = 1; i < 5; ++i) {
    ResultPoint p;
    p.memory_bytes = std::int64_t(i) << 30;
    p.time_s = 1.0 / i;
    p.compute_s = 0.7 / i;
    p.network_s = 0.3 / i;
    p.fits = i < 3;
    pinned.points.push_back(p);
  }
  session.pinned.push_back(pinned);
  session.picked_method = "ft";
  session.picked_memory = 2e9;
  session.geometry = "AAAA";
  session.layout = "BBBB";
  session.view = {{"log_time", true}};
  session.title = "A study";
  session.notes = "# What\n\nIt *shows*.";
  session.front = "notes";
  app::PinnedSearch search{"PCIe", "ft", session.scenario};
  search.scenario.model = "builtin:vgg11";
  search.scenario.settings.factors.intra_bandwidth = 0.05;
  session.searches.push_back(search);
  session.views = {{"graph", R"({"open":["a","b"]})"}};
  return session;
}

}  // namespace

class SessionTest : public QObject {
  Q_OBJECT

 private slots:
  void round_trip() {
    const Session before = full_session();
    const auto after = read_session(write_session(before), "s");
    QVERIFY(after);
    QCOMPARE(after->scenario.model, before.scenario.model);
    QCOMPARE(after->scenario.hardware, before.scenario.hardware);
    QVERIFY(after->scenario.settings == before.scenario.settings);
    QCOMPARE(after->title, before.title);
    QCOMPARE(after->notes, before.notes);
    QCOMPARE(after->front, before.front);
    QCOMPARE(after->searches.size(), std::size_t(1));
    QCOMPARE(after->searches[0].label, std::string("PCIe"));
    QCOMPARE(after->searches[0].method, std::string("ft"));
    QCOMPARE(after->searches[0].scenario.model, std::string("builtin:vgg11"));
    QCOMPARE(after->searches[0].scenario.hardware, before.scenario.hardware);
    QVERIFY(after->searches[0].scenario.settings == before.searches[0].scenario.settings);
    QCOMPARE(after->methods, before.methods);
    QCOMPARE(after->splits, before.splits);
    QCOMPARE(after->pinned.size(), std::size_t(1));
    QCOMPARE(after->pinned[0].label, before.pinned[0].label);
    QCOMPARE(after->pinned[0].points.size(), std::size_t(4));
    QVERIFY(after->pinned[0].points == before.pinned[0].points);  // every figure of every point
    QCOMPARE(after->pinned[0].model, std::string("vgg16"));
    QCOMPARE(after->picked_memory, before.picked_memory);
    QCOMPARE(after->layout, before.layout);
    QCOMPARE(after->view, before.view);
    QCOMPARE(after->views, before.views);
  }

  void meets_its_schema() {
    test::SchemaCheck schemas{TURNPOINT_SOURCE_DIR "/resources/schemas"};
    QCOMPARE(schemas.check("session@1", write_session(full_session())), std::string());
  }

  void unknown_keys_are_ignored() {
    json document = write_session(full_session());
    document["from_the_future"] = {1, 2, 3};
    document["scenario"]["settings"]["warp"] = "9";
    QVERIFY(read_session(document, "s"));
  }

  void a_newer_version_says_so() {
    json document = write_session(full_session());
    document["format"] = "turnpoint/session@7";
    const auto read = read_session(document, "s.turnpoint");
    QVERIFY(!read);
    QVERIFY(read.error().message().find("newer") != std::string::npos);
  }

  void the_file_is_replaced_whole_or_not_at_all() {
    QTemporaryDir folder;
    const auto path = std::filesystem::path(folder.path().toStdString()) / "a.turnpoint";
    QVERIFY(save_session(full_session(), path));
    const auto first = read_file(path);
    QVERIFY(first && first->size() > 500);
    QVERIFY(
        !save_session(full_session(), std::filesystem::path(folder.path().toStdString()) / "missing" / "a.turnpoint"));
    QCOMPARE(*read_file(path), *first);
    QCOMPARE(
        std::distance(std::filesystem::directory_iterator(path.parent_path()), std::filesystem::directory_iterator()),
        std::ptrdiff_t(1));
  }

  /// Every value replaced by every kind of wrong value: an answer or one message, never a crash.
  void mutations_do_no_harm() {
    const json whole = write_session(full_session()).flatten();
    const json wrong[] = {nullptr,
                          true,
                          -1,
                          1e308,
                          "x",
                          json::array(),
                          json::object(),
                          json::array({json::object()}),
                          std::string(4000, '9')};
    int refused = 0;
    for (const auto& [place, value] : whole.items()) {
      for (const json& bad : wrong) {
        json document = whole.unflatten();
        document[json::json_pointer(place)] = bad;
        const auto read = read_session(document, "s");
        if (read) continue;
        ++refused;
        QVERIFY2(!read.error().what.empty() && read.error().where.starts_with("s"), place.c_str());
      }
    }
    QVERIFY(refused > 100);
  }

  void random_bytes_do_no_harm() {
    std::mt19937 random(7);
    const std::string text = write_session(full_session()).dump();
    QTemporaryDir folder;
    for (int i = 0; i < 300; ++i) {
      std::string broken = text;
      for (int k = 0; k < 1 + i % 8; ++k) broken[random() % broken.size()] = static_cast<char>(random());
      if (i % 3 == 0) broken.resize(random() % broken.size());
      const auto document = parse_json(broken, "s");
      if (document) (void)read_session(*document, "s").has_value();
    }
  }
};

QTEST_GUILESS_MAIN(SessionTest)
#include "session_test.moc"
