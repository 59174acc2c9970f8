// SPDX-License-Identifier: Apache-2.0
// Settings that people type become a plan, the plan a file for an engine, the file the same settings again, and their
// plan costs the same: over random settings, transformers and machines. What an engine refuses is told here from the
// settings alone.
#include <QtTest>

#include "export/engines/exported.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct RoundTripCase {
  const char *name, *model, *hardware;
  std::int64_t batch;
  bool bf16, mixture;
};
constexpr RoundTripCase kRoundTrips[] = {
    {"gpt2", "gpt2?layers=6&hidden=256&sequence=32", "v100-16gb-2x8", 64, false, false},
    {"gpt2 on eight", "gpt2?layers=6&hidden=512&sequence=64", "v100-16gb-1x8", 32, false, false},
    {"llama", "llama-2-7b?layers=4&hidden=512&width=1024&sequence=64", "h100-80gb-2x4", 64, true, false},
    {"llama with grouped heads", "llama-2-70b?layers=6&hidden=1024&width=2048&sequence=32", "a100-80gb-2x8", 64, true,
     false},
    {"mixture", "mixtral-8x7b?layers=4&hidden=1024&width=512&sequence=32", "h100-80gb-1x8", 32, true, true},
};

ScenarioPtr scenario_of(const RoundTripCase& one) {
  return scenario_on(builtin(one.model, one.batch), one.hardware,
                     [&](Settings& settings) { settings.precision = one.bf16 ? Precision::bf16 : Precision::fp32; });
}

/// What people know of the engines, of a split that is said plainly.
bool engine_can(const std::string& engine, const TypedSplit& split, bool mixture) {
  if (engine == "megatron")
    return split.recompute != "op" && !(split.zero > 1 && split.pp > 1) && !split.gpipe &&
           !(mixture && split.tp > 1 && !split.sequence_parallel) &&
           (split.shard == 0 || split.zero == 1 || (split.zero == 3 && split.ep == 1));
  if (engine == "torchtitan")
    return split.zero != 1 && split.recompute != "selective" && !(split.cp > 1 && split.zero == 0) &&
           !(split.ep > 1 && split.tp > 1) && (split.zero > 0 || split.cp % split.ep == 0) &&
           split.shard % split.cp == 0 && !(split.gpipe && split.vp > 1);
  return split.tp == 1 && split.pp == 1 && split.cp == 1 && split.ep == 1 && split.shard == 0 &&
         (split.recompute == "none" || split.recompute == "full");
}

TypedSplit read_back(const std::string& engine, const std::string& text, int devices) {
  if (engine == "megatron") return read_megatron_file(text, devices);
  if (engine == "torchtitan") return read_torchtitan_file(text, devices);
  return read_deepspeed_file(text);
}

}  // namespace

class RoundTripTest : public QObject {
  Q_OBJECT

 private slots:
  void settings_come_back_data() {
    QTest::addColumn<int>("which");
    for (int k = 0; k < int(std::size(kRoundTrips)); ++k) QTest::newRow(kRoundTrips[k].name) << k;
  }
  void settings_come_back() {
    QFETCH(int, which);
    const RoundTripCase& one = kRoundTrips[which];
    const ScenarioPtr scenario = scenario_of(one);
    const int devices = int(scenario->cluster->devices());
    std::mt19937_64 random(std::uint64_t(which) + 1);
    std::map<std::string, int> written, refused;
    int legal = 0, uneven = 0, interleaved = 0, by_context = 0, by_expert = 0, in_groups = 0, behind = 0, beside = 0,
        first = 0;
    for (int trial = 0; trial < 400; ++trial) {
      TypedSplit split = drawn_split(random, devices);
      const auto result = run("manual:" + split.text(), scenario);
      if (!result || (split.ep > 1 && !one.mixture)) continue;  // of a model without experts ep splits nothing
      ++legal;
      split = split.plainly();
      for (const std::string engine : {"megatron", "torchtitan", "deepspeed"}) {
        const std::string what = engine + " of " + split.text();
        const auto text = exported(engine.c_str(), *result);
        const bool can = engine_can(engine, split, one.mixture);
        QVERIFY2(text.has_value() == can, (what + (text ? "" : ": " + text.error().message())).c_str());
        ++(can ? written : refused)[engine];
        if (!can) {
          QCOMPARE(text.error().code, ErrorCode::usage);
          continue;
        }
        TypedSplit back = read_back(engine, *text, devices);
        uneven += back.by_time, interleaved += back.vp > 1;
        by_context += back.cp > 1, by_expert += back.ep > 1, in_groups += back.shard > 0;
        // A cut by time may fall where an equal one does.
        if (split.by_time && !back.by_time) split.by_time = false;
        TypedSplit told = split;  // only Megatron-LM is told when new weights come, and what runs beside what
        if (engine != "megatron") told.gather_first = told.reduce_last = told.tp_comm_overlap = false;
        QCOMPARE(back.text(), told.text());
        behind += told.reduce_last, beside += told.tp_comm_overlap, first += told.gpipe;
        const auto again = run("manual:" + back.text(), scenario);
        QVERIFY2(again, what.c_str());
        const ResultPoint &a = (*result)->points.front(), &b = (*again)->points.front();
        QCOMPARE(a.memory_bytes, b.memory_bytes);
        if (told.tp_comm_overlap == split.tp_comm_overlap)
          QVERIFY2(close(a.time_s, b.time_s) && close(a.compute_s, b.compute_s), what.c_str());
        else
          QVERIFY2(text->find("run beside products") != std::string::npos, what.c_str());
      }
    }
    // The draw meets what it is for.
    QVERIFY2(legal >= 40, std::to_string(legal).c_str());
    for (const char* engine : {"megatron", "torchtitan", "deepspeed"})
      QVERIFY2(written[engine] >= 3 && refused[engine] >= 3,
               fmt::format("{}: {} written, {} refused", engine, written[engine], refused[engine]).c_str());
    QVERIFY(interleaved > 0 && in_groups > 2 && behind > 0 && beside + first > 0);
    QVERIFY(one.mixture ? by_expert > 0 : by_context > 5);
    if (QString(one.name).startsWith("gpt2")) QVERIFY(uneven > 0);
  }
};

QTEST_APPLESS_MAIN(RoundTripTest)
#include "round_trip_test.moc"
