// SPDX-License-Identifier: Apache-2.0
// What is exported for engines, beside what they then do: kinds of collectives, groups, counts and bytes, memory, and
// how far numbers are from those of the model on one device.
//   build/bench/exports_bench [--json FILE] [--only CASE]
// Runs in the environments that packaging/engines makes; targets without one are left out, which is said. FILE gets the
// table as resources/figures has them. Ends with 1 where a plan of a typed split differs for no reason known by name.
#include <fmt/format.h>

#include <QTemporaryDir>
#include <cstring>
#include <optional>

#include "bench/figure_tables.h"
#include "core/plan/evaluator.h"
#include "export/engines/received.h"
#include "export/jax/by_xla.h"
#include "export/jax/own_models.h"

namespace {

using namespace turnpoint;
using namespace turnpoint::test;

struct Point {
  const char* name;
  const char* method;
  bool typed;  ///< one split for all operators
};

constexpr Point kPoints[] = {{"data parallel", "data-parallel", true},
                             {"ZeRO-3", "fsdp:zero=3", true},
                             {"tensor 4 x data 2", "manual:tp=4:dp=2", true},
                             {"tensor 4 x data 2 by sequence", "manual:tp=4:dp=2:sequence-parallel", true},
                             {"least memory", "ft:micro-batches=1", false},
                             {"turning point", "ft:micro-batches=1", false}};

std::string bytes_of(double bytes) { return fmt::format("{:.0f}", bytes); }

class Bench {
 public:
  explicit Bench(std::string only) : only_(std::move(only)) {
    table_.title = "Exports beside the engines that run them";
    table_.conditions =
        "8 devices of v100-16gb-2x4, 16 samples, 16 positions, fp32; JAX on virtual devices, PyTorch on ranks that "
        "pretend; bytes that a device receives in a step";
    table_.columns = {"case",
                      "point",
                      "target",
                      "collective",
                      "among",
                      "count, plan",
                      "count, engine",
                      "bytes, plan",
                      "bytes, by name",
                      "bytes, engine",
                      "weights and state, plan",
                      "the same, engine",
                      "furthest number"};
  }

  bool run() {
    for (const char* name : {"mlp", "lenet", "block", "gpt2", "llama"})
      if (only_.empty() || only_ == name) add_case(name);
    for (const std::string& reason : reasons_) table_.notes.push_back("By name: " + reason + ".");
    table_.notes.push_back(
        fmt::format("{} of {} rows of annotations for typed splits are within 1 % of the plan, {} after "
                    "what is known by name; along frontiers {} and {} of {}.",
                    typed_.close, typed_.rows, typed_.named, mixed_.close, mixed_.named, mixed_.rows));
    table_.notes.push_back(
        fmt::format("{} of {} rows of programs (jax:explicit) are equal.", explicit_.close, explicit_.rows));
    return failures_ == 0;
  }
  const FigureTable& table() const { return table_; }

 private:
  struct Tally {
    int rows = 0, close = 0, named = 0;
    void add(const KindBytes& row) { ++rows, close += row.is_close(row.plan), named += row.is_close(row.by_xla); }
  };

  struct Memory {
    std::int64_t plan = 0, engine = 0;
    std::optional<double> apart;
  };

  void add_case(const char* name) {
    const OwnModel own(folder_, name);
    for (const Point& point : kPoints) {
      const auto result = turnpoint::test::run(point.method, own.scenario());
      if (!result) {
        std::fprintf(stderr, "%s, %s: %s\n", name, point.name, result.error().message().c_str());
        continue;
      }
      const std::size_t k = std::strcmp(point.name, "turning point") == 0 ? (*result)->turning_point.value_or(0) : 0;
      const Plan plan = (*result)->plans->sharding(k);
      explicit_program(name, point, own, plan);
      annotations(name, point, own, plan);
      modules(name, point, own, plan);
    }
  }

  /// The text of the target, or nothing where it or its environment refuses, which is said.
  std::optional<std::string> text_of(const char* name, const Point& point, const char* target, const OwnModel& own,
                                     const Plan& plan) {
    const auto text = find_format(target)->plan(*own.scenario(), plan);
    if (text) return *text;
    std::fprintf(stderr, "%s, %s, %s: %s\n", name, point.name, target, text.error().message().c_str());
    return std::nullopt;
  }

  QString python_for(const char* engine) {
    const QString python = engine_python(engine);
    if (python.isEmpty() && told_.insert(engine).second)
      table_.notes.push_back(fmt::format("{} is absent: 'packaging/engines {}' makes its rows.", engine, engine));
    return python;
  }

  static std::int64_t planned_memory(const OwnModel& own, const Plan& plan) {
    const auto cost = evaluate_plan(*own.scenario(), plan);
    if (!cost) qFatal("%s", cost.error().message().c_str());
    return cost->memory[std::size_t(MemoryPart::parameters)] + cost->memory[std::size_t(MemoryPart::optimizer)];
  }

  static double furthest(const QJsonObject& apart) {
    double most = 0;
    for (const auto& value : apart) most = std::max(most, value.toDouble(1));
    return most;
  }

  void explicit_program(const char* name, const Point& point, const OwnModel& own, const Plan& plan) {
    const QString python = python_for("jax");
    const auto text = text_of(name, point, "jax:explicit", own, plan);
    if (python.isEmpty() || !text) return;
    const QString path = folder_.filePath("program.py");
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text->data(), qint64(text->size())) < 0) qFatal("cannot write");
    file.close();
    const EngineRun run =
        run_engine(python, {QString(TURNPOINT_SOURCE_DIR) + "/tests/export/jax/run_program.py", path, "8"});
    if (run.code != 0) qFatal("%s", run.err.right(2000).constData());
    const QJsonObject said = run.json();
    CollectiveTable rows;
    for (const Listed& listed : planned(*own.scenario(), plan)) {
      auto& row = rows[{listed.kind, listed.groups}];
      row.plan += listed.bytes, row.by_xla += listed.bytes + listed.slack, ++row.plan_count;
    }
    for (const Listed& listed : carried_out(said["collectives"].toArray())) {
      auto& row = rows[{listed.kind, listed.groups}];
      row.theirs += listed.bytes, ++row.their_count;
    }
    for (auto& [key, row] : rows) {
      const bool equal =
          row.plan_count == row.their_count && row.theirs >= row.plan - 1 && row.theirs <= row.by_xla + 1;
      ++explicit_.rows, explicit_.close += equal;
      failures_ += !equal;
      row.by_xla = row.plan;
    }
    add_rows(name, point, "jax:explicit", rows,
             {planned_memory(own, plan), std::int64_t(said["weight_bytes"].toDouble() + said["state_bytes"].toDouble()),
              furthest(said["apart"].toObject())});
  }

  void annotations(const char* name, const Point& point, const OwnModel& own, const Plan& plan) {
    const QString python = python_for("jax");
    const auto text = text_of(name, point, "jax", own, plan);
    if (python.isEmpty() || !text) return;
    const QJsonObject said = own.laid_out(python, *text);
    if (!said.contains("apart")) qFatal("%s, %s: the engine failed", name, point.name);
    const auto rows = ByXla(*own.scenario(), plan).beside(carried_out(said["collectives"].toArray()));
    for (const auto& [key, row] : rows) {
      (point.typed ? typed_ : mixed_).add(row);
      reasons_.insert(row.reasons.begin(), row.reasons.end());
      failures_ += point.typed && !row.is_close(row.by_xla);
    }
    add_rows(name, point, "jax", rows,
             {planned_memory(own, plan), std::int64_t(said["weight_bytes"].toDouble() + said["state_bytes"].toDouble()),
              furthest(said["apart"].toObject())});
  }

  // Of models that Transformers makes, too: weights alone, since no step is taken.
  void modules(const char* name, const Point& point, const OwnModel& own, const Plan& plan) {
    if (own.scenario()->model->source != own.config().toStdString()) return;
    const QString python = python_for("pytorch");
    const auto text = text_of(name, point, "pytorch", own, plan);
    if (python.isEmpty() || !text) return;
    const QString path = folder_.filePath("parallelize.py");
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text->data(), qint64(text->size())) < 0) qFatal("cannot write");
    file.close();
    const int tensor = text->find("\"tensor\": 4") != std::string::npos ? 4 : 1;
    const EngineRun run =
        run_engine(python, {QString(TURNPOINT_SOURCE_DIR) + "/tests/export/engines/run_annotations.py", path,
                            own.config(), "8", QString::number(16 * tensor / 8), "16"});
    const auto said = nlohmann::json::parse(run.out.toStdString(), nullptr, false);
    if (!said.is_object() || !said.contains("bytes")) qFatal("%s", run.err.right(2000).constData());
    Received theirs = received_by_log(said["forward"]), ours = received_by_plan(*own.scenario(), plan);
    for (const auto& [key, bytes] : received_by_log(said["backward"])) theirs[key] += bytes;
    CollectiveTable rows;
    const auto row_of = [&](const std::pair<std::string, int>& key) -> KindBytes& {
      std::string kind = key.first;
      std::replace(kind.begin(), kind.end(), '_', '-');
      return rows[{kind, {std::vector<int>(std::size_t(key.second))}}];
    };
    for (const auto& [key, bytes] : ours) row_of(key).plan = row_of(key).by_xla = bytes;
    for (const auto& [key, bytes] : theirs) row_of(key).theirs = bytes;
    for (const PlanOperator& op : plan.operators)
      for (const ParameterSteps& steps : op.parameters)
        if (own.scenario()->model->operators[op.op].kind == OperatorKind::embedding)
          for (const ReshardStep& step : steps.gather) {
            row_of({"all_gather", int(plan.mesh.size_of(step.axes))}).by_xla += step.bytes;
            reasons_.insert("fully_shard() gathers the table of tokens once more");
          }
    for (const auto& [key, row] : rows) failures_ += !row.is_close(row.by_xla);
    const std::int64_t weights = plan.cost.memory[std::size_t(MemoryPart::parameters)];
    add_rows(name, point, "pytorch (weights alone)", rows, {weights, said["bytes"].get<std::int64_t>(), {}});
  }

  void add_rows(const char* name, const Point& point, const char* target, const CollectiveTable& rows,
                const Memory& memory) {
    bool first = true;
    const auto add = [&](std::vector<std::string> cells) {
      const std::vector<std::string> behind =
          first ? std::vector<std::string>{std::to_string(memory.plan), std::to_string(memory.engine),
                                           memory.apart ? fmt::format("{:.1e}", *memory.apart) : ""}
                : std::vector<std::string>(3);
      cells.insert(cells.end(), behind.begin(), behind.end());
      table_.rows.push_back(std::move(cells));
      first = false;
    };
    for (const auto& [key, row] : rows)
      add({name, point.name, target, key.first, key.second.empty() ? "" : std::to_string(key.second.front().size()),
           row.plan_count ? std::to_string(row.plan_count) : "", row.their_count ? std::to_string(row.their_count) : "",
           bytes_of(row.plan), bytes_of(row.by_xla), bytes_of(row.theirs)});
    if (rows.empty()) add({name, point.name, target, "none", "", "", "", "0", "0", "0"});
    std::fprintf(stderr, "%s, %s, %s: done\n", name, point.name, target);
  }

  const std::string only_;
  QTemporaryDir folder_;
  FigureTable table_;
  Tally typed_, mixed_, explicit_;
  std::set<std::string> reasons_, told_;
  int failures_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const char* json = nullptr;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--json") == 0) json = argv[i + 1];
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  Bench bench(only);
  const bool fine = bench.run();
  print_figures(bench.table());
  if (json &&
      !write_figures(
          {"exports_bench", "Exports", "What is exported for engines, beside what they do with it.", {bench.table()}},
          json)) {
    std::fprintf(stderr, "%s cannot be written\n", json);
    return 1;
  }
  return fine ? 0 : 1;
}
