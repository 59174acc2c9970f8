// SPDX-License-Identifier: Apache-2.0
// The measuring loop over made-up devices whose clock only moves when something is measured: sizes between the listed
// ones where a collective's time jumps, the statistic on a disturbed host, a budget that ends, groups apart.
#include <QTest>
#include <nlohmann/json.hpp>

#include "gpu_probe/measure/loop.h"
#include "gpu_probe/ranks/host_team.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

using nlohmann::json;

double g_now = 0;  // s

class Timed : public Prepared {
 public:
  explicit Timed(std::function<double()> time) : time_(std::move(time)) {}
  Expected<double> sample(bool) override {
    const double time = time_();
    g_now += time;
    return time;
  }
  std::string implementation() const override { return "made up"; }

 private:
  std::function<double()> time_;
};

class NoBackend : public Backend {
 public:
  json describe() override { return {}; }
  Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator&) override {
    return std::unique_ptr<Prepared>(new Timed([] { return 1e-3; }));
  }
  std::vector<json> check() override { return {}; }
  bool cold() const override { return false; }
  bool shared_host() const override { return true; }
};

/// Four ranks of which only this one exists.
class OneOfFour : public Team {
 public:
  explicit OneOfFour(std::function<double(const ProbeCollective&)> device) : device_(std::move(device)) {}
  int rank() const override { return 0; }
  int ranks() const override { return 4; }
  bool barrier() override { return true; }
  bool agree(std::span<float>) override { return true; }
  bool largest(float&) override { return true; }
  Expected<std::unique_ptr<Prepared>> prepare(const ProbeCollective& c) override {
    return std::unique_ptr<Prepared>(std::make_unique<Timed>([this, c] { return device_(c); }));
  }
  DeviceGroup shape(const ProbeCollective& c) const override {
    return {c.group_size, 1, c.group_size, 4 / c.group_size};
  }

 private:
  std::function<double(const ProbeCollective&)> device_;
};

std::vector<json> run(const ProbeJob& job, const std::function<double(const ProbeCollective&)>& device) {
  g_now = 0;
  std::vector<json> said;
  NoBackend backend;
  OneOfFour team(device);
  LoopOptions options;
  options.deadline = job.budget_s;
  options.clock = [] { return g_now; };
  options.say = [&](const json& line) { said.push_back(line); };
  if (!run_loop(job, backend, team, options)) said.clear();
  return said;
}

std::vector<json> items(const std::vector<json>& said) {
  std::vector<json> found;
  for (const auto& line : said)
    if (line["type"] == "item") found.push_back(line);
  return found;
}

ProbeJob listed(Collective kind, int size) {
  ProbeJob job;
  job.ranks = 4;
  job.budget_s = 1000;
  job.item_s = 1e-3;
  job.refine = 0.1;
  for (int i = 6; i <= 24; ++i) job.collectives.push_back({kind, size, std::int64_t(1) << i});
  return job;
}

}  // namespace

class LoopTest : public QObject {
  Q_OBJECT

 private slots:
  void sizes_between_the_listed_ones_lie_at_the_jump() {
    constexpr double kJump = 90000;
    const auto device = [](const ProbeCollective& c) {
      const auto bytes = static_cast<double>(c.bytes);
      const double time = 2e-6 + bytes / 1e10;
      return c.kind == Collective::all_reduce && bytes >= kJump ? 4 * time : time;
    };
    ProbeJob job = listed(Collective::all_reduce, 4);
    for (const auto& c : listed(Collective::all_to_all, 2).collectives) job.collectives.push_back(c);
    const auto said = run(job, device);
    const auto measured = items(said);
    QVERIFY(measured.size() > job.items());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      QCOMPARE(measured[i].value("midpoint", false), i >= job.items());
      if (i < job.items()) continue;
      QCOMPARE(measured[i]["index"].get<std::size_t>(), i);
      QCOMPARE(measured[i]["collective"].get<std::string>(), std::string("all_reduce"));  // the other has no jump
      const auto bytes = measured[i]["bytes"].get<std::int64_t>();
      QVERIFY2(bytes > 32768 && bytes < 262144, qPrintable(QString::number(bytes)));
      QCOMPARE(bytes % 16, std::int64_t(0));
    }
    std::int64_t below = 0, above = 1 << 30;
    for (const auto& item : measured) {
      if (item["collective"] != "all_reduce") continue;
      const auto bytes = item["bytes"].get<std::int64_t>();
      if (bytes < kJump) below = std::max(below, bytes);
      if (bytes >= kJump) above = std::min(above, bytes);
    }
    QVERIFY2(above < 1.2 * below, qPrintable(QString("%1 %2").arg(below).arg(above)));
    QCOMPARE(said.back()["type"].get<std::string>(), std::string("done"));
    QCOMPARE(said.back()["midpoints"].get<std::size_t>(), measured.size() - job.items());
    QCOMPARE(said.back()["unresolved"].get<int>(), 0);
    QCOMPARE(said.back()["skipped"].get<int>(), 0);

    // What is known already is not measured: the same sizes between, and nothing else.
    ProbeJob known = job;
    known.collectives.clear();
    for (const auto& c : job.collectives) known.known.push_back({c, device(c), 0});
    const auto rest = items(run(known, device));
    QCOMPARE(rest.size(), measured.size() - job.items());
    for (std::size_t i = 0; i < rest.size(); ++i) QVERIFY(rest[i]["bytes"] == measured[job.items() + i]["bytes"]);
    job.refine = 0;
    QCOMPARE(items(run(job, device)).size(), job.items());
  }

  void the_budget_ends_it() {
    ProbeJob job = listed(Collective::all_reduce, 2);
    double factor = 1;
    const auto wild = [&](const ProbeCollective&) { return 1e-3 * (factor = factor > 4 ? 1 : factor * 1.7); };
    job.item_s = 0.02;
    job.budget_s = 1;
    auto said = run(job, wild);
    QVERIFY(g_now < 1.3);
    job.budget_s = 0.3;
    said = run(job, wild);
    QVERIFY(said.back()["skipped"].get<int>() > 0);
    QCOMPARE(said.back()["midpoints"].get<int>(), 0);
  }

  void the_least_counts_where_a_host_disturbs() {
    ProbeJob job = listed(Collective::all_reduce, 2);
    job.refine = 0;
    job.collectives.resize(1);
    job.item_s = 0.1;
    int n = 0;
    const auto calm = [&](const ProbeCollective&) { return 1e-5 * (1 + 0.002 * (++n % 3)); };
    auto item = items(run(job, calm)).at(0);
    QVERIFY(!item.contains("statistic"));
    QVERIFY(item["time_s"] == item["q1_s"]);
    QVERIFY(!item["noisy"].get<bool>());
    const auto disturbed = [&](const ProbeCollective&) { return ++n % 10 == 0 ? 1e-5 : 1e-3; };
    item = items(run(job, disturbed)).at(0);
    QVERIFY(std::abs(item["time_s"].get<double>() - 1e-3) < 1e-9);  // nothing tells that it is disturbed
    const auto half = [&](const ProbeCollective&) { return ++n % 2 == 0 ? 1e-5 : 1e-4 * (1 + n % 5); };
    item = items(run(job, half)).at(0);
    QCOMPARE(item["statistic"].get<std::string>(), std::string("least"));
    QVERIFY(std::abs(item["time_s"].get<double>() - 1e-5) < 1e-9);
    QVERIFY(item["noisy"].get<bool>());
    QVERIFY(item["samples"].get<int>() >= kEnoughExchanges);
  }

  void groups_apart() {
    QCOMPARE(strided_group(5, 2, 1), (Group{4, 5}));
    QCOMPARE(strided_group(5, 2, 4), (Group{1, 5}));
    QCOMPARE(strided_group(5, 4, 2), (Group{1, 3, 5, 7}));
    QCOMPARE(strided_group(6, 2, 2), (Group{4, 6}));
    for (const auto& [size, stride] : {std::pair{2, 1}, {2, 2}, {2, 6}, {3, 2}, {4, 3}, {6, 2}, {12, 1}}) {
      std::map<Group, int> members;  // every rank is in one group, and all of one group agree on it
      for (int rank = 0; rank < 12; ++rank) {
        const Group group = strided_group(rank, size, stride);
        QVERIFY(std::find(group.begin(), group.end(), rank) != group.end());
        ++members[group];
      }
      for (const auto& [group, count] : members) QCOMPARE(count, size);
    }
  }
};

QTEST_GUILESS_MAIN(LoopTest)
#include "loop_test.moc"
