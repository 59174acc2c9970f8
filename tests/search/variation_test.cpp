// SPDX-License-Identifier: Apache-2.0
// One quantity varied: every cell is what a search of that scenario by itself answers, and what is taken from an answer
// is checked with methods whose points are written down here.
#include <QtTest>
#include <fstream>
#include <map>
#include <stop_token>

#include "core/search/fitting_batch.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"
#include "core/search/variation.h"

using namespace turnpoint;

namespace {

using State = VariationCell::State;

VariationSubject subject_of(const std::string& model, const std::string& hardware, const Settings& settings) {
  const auto source = open_model(model);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto cluster = open_hardware(hardware);
  if (!cluster) qFatal("%s", cluster.error().message().c_str());
  const auto scenario = scenario_on(**source, *cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return {*source, *cluster, hardware, settings, *scenario};
}

std::vector<VariedMethod> methods_named(const std::vector<std::string>& names) {
  std::vector<VariedMethod> list;
  for (const std::string& name : names) {
    const auto choice = choose_method(name);
    if (!choice) qFatal("%s", choice.error().message().c_str());
    list.push_back({choice->method, choice->parameters});
  }
  return list;
}

Variation run_all(const VariationRequest& request) {
  Variation variation = variation_of(request);
  const auto done = run_variation(request, {}, [&](const VariationCell& cell) { variation.put(cell); });
  if (!done) qFatal("%s", done.error().message().c_str());
  return variation;
}

/// What a search of the scenario by itself answers, judged by peaks.
ResultPtr searched(const std::string& method, const std::string& model, const std::string& hardware,
                   const Settings& settings) {
  const auto source = open_model(model);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto scenario = scenario_of(**source, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  const auto choice = choose_method(method);
  const auto searcher = make_searcher(*choice->method, choice->parameters);
  if (!searcher) qFatal("%s", searcher.error().message().c_str());
  const auto result = (*searcher)->run(*scenario, SearchPass::exact, {});
  if (!result) qFatal("%s", result.error().message().c_str());
  return *judged_by_peaks(*result, {});
}

bool same(const std::optional<VariedPlan>& plan, const Result& result, std::optional<std::size_t> index) {
  if (plan.has_value() != index.has_value()) return false;
  if (!plan) return true;
  const ResultPoint& point = result.points[*index];
  return plan->point == *index && plan->time_s == point.time_s && plan->memory_bytes == point.memory_bytes &&
         plan->simulated_time_s == point.simulated_time_s &&
         plan->simulated_memory_bytes == point.simulated_memory_bytes;
}

/// A method whose answers are written down.
using Answers = std::function<Expected<ResultPtr>(const ScenarioPtr&)>;
struct WrittenSearcher : Searcher {
  explicit WrittenSearcher(Answers given) : answers(std::move(given)) {}
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext&) override {
    return answers(scenario);
  }
  Answers answers;
};
Method written(const std::string& name, bool frontier, Answers answers) {
  Method method;
  method.name = method.title = name;
  method.frontier = frontier;
  method.make = [answers] { return std::make_unique<WrittenSearcher>(answers); };
  return method;
}

/// Points of {bytes, seconds} by rising memory, of a limit that the scenario has.
ResultPtr answer_of(const ScenarioPtr& scenario, const std::vector<std::pair<std::int64_t, double>>& points) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->exact = true;
  for (const auto& [bytes, seconds] : points)
    result->points.push_back({bytes, seconds, seconds, 0, bytes <= scenario->memory_limit()});
  find_marks(*result);
  return result;
}

Settings settings_with(std::int64_t batch, std::int64_t limit = 0) {
  Settings settings;
  settings.batch = batch;
  settings.memory_limit = limit;
  return settings;
}

}  // namespace

class VariationTest : public QObject {
  Q_OBJECT

 private slots:
  void a_cell_is_what_a_search_of_its_own_answers_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("over");
    QTest::addColumn<int>("limit");  // MiB: little enough that some plans do not fit
    const QString gpt2 = "builtin:gpt2?layers=1&hidden=128";
    QTest::newRow("batch") << "builtin:lenet"
                           << "batch=8,64" << 2;
    QTest::newRow("sequence") << gpt2 << "sequence=32,64" << 60;
    QTest::newRow("devices, more than there are") << "builtin:lenet"
                                                  << "devices=1,2,8" << 60;
    QTest::newRow("micro-batches") << gpt2 << "micro-batches=1..4" << 1024;
    QTest::newRow("hidden size") << gpt2 << "hidden=64,256" << 3500;
  }
  void a_cell_is_what_a_search_of_its_own_answers() {
    QFETCH(QString, model);
    QFETCH(QString, over);
    QFETCH(int, limit);
    const std::string hardware = "v100-16gb-1x4";
    Settings settings = settings_with(16, std::int64_t(limit) << 20);
    settings.devices = 2;  // half of those that there are
    VariationRequest request{subject_of(model.toStdString(), hardware, settings),
                             *parse_varied_axis(over.toStdString()),
                             methods_named({"ft", "data-parallel", "fsdp:zero=2"})};
    const Variation variation = run_all(request);
    QVERIFY(variation.complete());
    int fit = 0;
    for (const std::int64_t value : request.axis.values)
      for (const std::string method : {"ft", "data-parallel", "fsdp:zero=2"}) {
        const VariationCell* cell = variation.find(value, method);
        QVERIFY(cell);
        Settings own = settings;
        std::string name = method, of = model.toStdString();
        switch (request.axis.quantity) {
          case Varied::batch: own.batch = value; break;
          case Varied::sequence: own.sequence = value; break;
          case Varied::devices: own.devices = int(value); break;
          case Varied::micro_batches: name += ":micro-batches=" + std::to_string(value); break;
          case Varied::hidden: of = "builtin:gpt2?layers=1&hidden=" + std::to_string(value); break;
        }
        const ResultPtr result = searched(name, of, hardware, own);
        const auto fastest = result->fastest_that_fits();
        QVERIFY(same(cell->fastest, *result, fastest));
        QVERIFY(same(cell->turning, *result, fastest ? result->turning_point : std::nullopt));
        QCOMPARE(cell->plans, result->points.size());
        QCOMPARE(cell->exact, result->exact);
        QVERIFY((cell->state == State::fits) == fastest.has_value());
        QCOMPARE(cell->devices, result->scenario->cluster->devices());
        QCOMPARE(cell->memory_limit, result->scenario->memory_limit());
        QVERIFY(!fastest || !cell->fastest->words.empty());
        fit += fastest.has_value();
      }
    QVERIFY(fit > 0);
  }

  /// Points by hand: at batch b three plans of b, 2 b and 4 b bytes in 4 b, 2 b and b ms, of which 40 bytes fit.
  void what_is_taken_of_an_answer() {
    const Method method = written("written", true, [](const ScenarioPtr& scenario) -> Expected<ResultPtr> {
      const std::int64_t b = scenario->model->batch;
      return answer_of(scenario, {{b, 4e-3 * double(b)}, {2 * b, 2e-3 * double(b)}, {4 * b, 1e-3 * double(b)}});
    });
    Settings settings = settings_with(8, 40);
    settings.price_per_hour = 3.6;
    const VariationRequest request{
        subject_of("builtin:lenet", "v100-16gb-1x4", settings), {Varied::batch, {8, 16, 64}}, {{&method, {}}}};
    const Variation variation = run_all(request);
    QCOMPARE(variation.own, std::int64_t(8));
    const VariationCell& small = *variation.find(8, "written");  // 32 bytes in 8 ms fit
    QVERIFY(small.fits() && small.fastest->point == 2 && small.fastest->time_s == 8e-3);
    QVERIFY(small.turning && small.turning->point == 1);
    QCOMPARE(small.samples_per_second(8e-3).value(), 1000.0);
    QVERIFY(!small.tokens_per_second(8e-3));  // LeNet has no sequence
    // Four devices for 3.6 an hour each: 4 thousandths a second.
    QVERIFY(std::abs(small.price_per_step(8e-3).value() - 3.2e-5) < 1e-12);
    QVERIFY(std::abs(small.price_per_million(8e-3).value() - 4.0) < 1e-9);
    const VariationCell& middle = *variation.find(16, "written");  // 64 bytes do not, 32 in 32 ms do
    QVERIFY(middle.fits() && middle.fastest->point == 1 && middle.fastest->time_s == 32e-3);
    QVERIFY(!middle.turning);  // of two that fit none turns
    const VariationCell& large = *variation.find(64, "written");
    QCOMPARE(large.state, State::nothing_fits);
    QVERIFY(!large.fastest && !large.turning);
    QCOMPARE(large.least_bytes, std::int64_t(64));
    QCOMPARE(large.reason, std::string("no plan without micro-batches fits 40 B: the least any needs is 64 B"));
  }

  void tokens_are_counted_where_there_are_some() {
    VariationCell cell;
    cell.batch = 100, cell.sequence = 10, cell.devices = 4, cell.price_per_hour = 3.6;
    QCOMPARE(cell.samples_per_second(0.5).value(), 200.0);
    QCOMPARE(cell.tokens_per_second(0.5).value(), 2000.0);
    QVERIFY(std::abs(cell.price_per_step(0.5).value() - 0.002) < 1e-15);
    QVERIFY(std::abs(cell.price_per_million(0.5).value() - 2.0) < 1e-12);  // a thousand tokens a step
    cell.price_per_hour.reset();
    QVERIFY(!cell.price_per_step(0.5) && !cell.price_per_million(0.5));
  }

  void what_cannot_be_stays_with_its_reason() {
    const VariationSubject gpt2 = subject_of("builtin:gpt2?layers=1&hidden=128", "v100-16gb-2x4", settings_with(16));
    const auto reasons = [&](const char* over, const std::vector<std::string>& methods) {
      std::vector<std::string> list;
      for (const VariationCell& cell : run_all({gpt2, *parse_varied_axis(over), methods_named(methods)}).cells)
        list.push_back(cell.state == State::cannot_be ? cell.reason : std::string(to_string(cell.state)));
      return list;
    };
    const auto counts = reasons("devices=3,6", {"data-parallel"});  // 4 devices a node: no 6
    QVERIFY(counts.size() == 2 && counts[0] == "fits" && counts[1].find("6") != std::string::npos);
    const auto sizes = reasons("hidden=100,128", {"ft"});
    QVERIFY(sizes.size() == 2 && sizes[0] != "fits" && sizes[1] == "fits");
    const auto parts = reasons("micro-batches=2,3", {"data-parallel"});  // 3 does not divide 16
    QVERIFY(parts.size() == 2 && parts[0] == "fits" && parts[1].find("3") != std::string::npos);
    const auto without = reasons("micro-batches=2", {"hypar"});
    QVERIFY(without == std::vector<std::string>{"hypar has no number of micro-batches to choose"});
  }

  void what_cannot_be_varied_is_refused() {
    const VariationSubject lenet = subject_of("builtin:lenet", "v100-16gb-1x4", settings_with(8));
    QCOMPARE(check_can_vary(Varied::sequence, lenet).error().message(),
             std::string("builtin:lenet: has no sequence to choose"));
    QVERIFY(check_can_vary(Varied::hidden, lenet));
    const VariationSubject e = subject_of("builtin:inception-v3", "v100-16gb-1x4", settings_with(8));
    QCOMPARE(check_can_vary(Varied::hidden, e).error().message(),
             std::string("builtin:inception-v3: has no hidden size"));
    const VariationSubject mixed = subject_of("builtin:lenet", "tpu-v2-1x2+tpu-v3-1x2", settings_with(8));
    QVERIFY(!check_can_vary(Varied::devices, mixed) && check_can_vary(Varied::batch, mixed));
    VariationSubject tasks = subject_of(TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json", "v100-16gb-1x4", {});
    QVERIFY(!check_can_vary(Varied::batch, tasks) && check_can_vary(Varied::devices, tasks));
    const auto never = [](const VariationCell&) { QFAIL("was asked"); };
    const auto done = run_variation({lenet, {Varied::sequence, {8}}, methods_named({"ft"})}, {}, never);
    QVERIFY(!done && done.error().code == ErrorCode::usage);
  }

  void a_task_graph_on_more_devices() {
    const VariationSubject tasks =
        subject_of(TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json", "v100-16gb-1x4", {});
    const Variation found = run_all({tasks, {Varied::devices, {1, 2}}, methods_named({"heft"})});
    for (const int devices : {1, 2}) {
      const VariationCell& cell = *found.find(devices, "heft");
      QVERIFY(cell.fits() && cell.devices == devices && cell.clock == Clock::simulated);
      QVERIFY(!cell.samples_per_second(1));
    }
  }

  /// One answer after the other; what was found before stays.
  void a_stop_keeps_what_was_found() {
    std::stop_source stop;
    int runs = 0;
    const Method method = written("written", false, [&](const ScenarioPtr& scenario) -> Expected<ResultPtr> {
      if (++runs == 3) stop.request_stop();
      return answer_of(scenario, {{1, 1.0}});
    });
    RunContext context;
    context.stop = stop.get_token();
    std::vector<std::int64_t> found;
    const VariationRequest request{subject_of("builtin:lenet", "v100-16gb-1x4", settings_with(8)),
                                   {Varied::batch, {8, 16, 32, 64}},
                                   {{&method, {}}}};
    const auto done = run_variation(request, context, [&](const VariationCell& cell) { found.push_back(cell.value); });
    QVERIFY(!done && done.error().code == ErrorCode::cancelled);
    QVERIFY(found == std::vector<std::int64_t>({8, 16}));  // the third had not ended when it was stopped
    QCOMPARE(runs, 3);
  }

  void quick_methods_come_first_and_progress_rises() {
    const auto one = [](const ScenarioPtr& scenario) -> Expected<ResultPtr> { return answer_of(scenario, {{1, 1.0}}); };
    const Method slow = written("slow", true, one), quick = written("quick", false, one);
    const Method fails = written("fails", false, [](const ScenarioPtr&) -> Expected<ResultPtr> {
      return Error{ErrorCode::infeasible, "gave up", {}, {}};
    });
    const VariationRequest request{subject_of("builtin:lenet", "v100-16gb-1x4", settings_with(8)),
                                   {Varied::batch, {8, 16}},
                                   {{&slow, {}}, {&quick, {}}, {&fails, {}}}};
    std::vector<double> fractions;
    RunContext context;
    context.progress = [&](const Progress& progress) { fractions.push_back(progress.fraction); };
    std::vector<std::string> order;
    Variation found = variation_of(request);
    const auto done = run_variation(request, context, [&](const VariationCell& cell) {
      order.push_back(cell.method + std::to_string(cell.value));
      found.put(cell);
    });
    QVERIFY(done);
    QVERIFY(order == std::vector<std::string>({"quick8", "fails8", "quick16", "fails16", "slow8", "slow16"}));
    QVERIFY(fractions.size() >= 6 && std::is_sorted(fractions.begin(), fractions.end()) && fractions.back() < 1);
    QVERIFY(found.cells.front().method == "slow" && found.cells.back().value == 16);  // in the request's order
    QCOMPARE(found.find(8, "fails")->state, State::failed);
    QCOMPARE(found.find(8, "fails")->reason, std::string("gave up"));
  }

  void an_answer_that_is_there_is_taken() {
    int runs = 0;
    const Method method = written("written", false, [&](const ScenarioPtr& scenario) -> Expected<ResultPtr> {
      ++runs;
      return answer_of(scenario, {{1, 1.0}});
    });
    VariationRequest request{
        subject_of("builtin:lenet", "v100-16gb-1x4", settings_with(8)), {Varied::batch, {8, 16}}, {{&method, {}}}};
    request.known = [&](const std::string& name) -> ResultPtr {
      auto there = std::make_shared<Result>(*answer_of(request.subject.scenario, {{1, 2.0}}));
      there->search_s = 77;
      return name == "written" ? there : nullptr;
    };
    const Variation found = run_all(request);
    QCOMPARE(runs, 1);
    QCOMPARE(found.find(8, "written")->fastest->time_s, 2.0);
    QCOMPARE(found.find(8, "written")->search_s, 77.0);  // what it took then
    QCOMPARE(found.find(16, "written")->fastest->time_s, 1.0);
  }

  void values_are_read_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("values");  // empty: refused
    QTest::newRow("a list") << "batch=8,16,32"
                            << "8 16 32";
    QTest::newRow("in order, each once") << "batch=32,8,8, 16"
                                         << "8 16 32";
    QTest::newRow("doubled") << "devices=1..16"
                             << "1 2 4 8 16";
    QTest::newRow("to an end of its own") << "devices=1..12"
                                          << "1 2 4 8 12";
    QTest::newRow("both") << "sequence=100,512..2048"
                          << "100 512 1024 2048";
    QTest::newRow("one") << "hidden=768..768"
                         << "768";
    for (const char* wrong : {"batch", "batch=", "batch=0", "batch=8,,16", "batch=-8", "batch=8.5", "batch=16..8",
                              "batch=8..", "batch=99999999999999999999", "batch=16777217", "devices=65537", "bathc=8",
                              "=8", "batch=1e3", "micro-batches=all"})
      QTest::newRow(wrong) << wrong << "";
    QString many = "batch=1";
    for (int i = 2; i <= 65; ++i) many += "," + QString::number(i);
    QTest::newRow("too many") << many << "";
  }
  void values_are_read() {
    QFETCH(QString, text);
    QFETCH(QString, values);
    const auto axis = parse_varied_axis(text.toStdString());
    QStringList read;
    if (axis)
      for (const std::int64_t value : axis->values) read << QString::number(value);
    QCOMPARE(read.join(' '), values);
    if (!axis) QVERIFY(axis.error().code == ErrorCode::usage && !axis.error().what.empty());
  }

  void usual_values_are_around_the_own() {
    using Values = std::vector<std::int64_t>;
    Settings settings = settings_with(48);
    const VariationSubject gpt2 = subject_of("builtin:gpt2", "v100-16gb-2x8", settings);
    QVERIFY(usual_values(Varied::batch, gpt2) == Values({12, 24, 48, 96, 192}));
    QVERIFY(usual_values(Varied::sequence, gpt2) == Values({256, 512, 1024, 2048, 4096}));
    QVERIFY(usual_values(Varied::devices, gpt2) == Values({2, 4, 8, 16}));
    QVERIFY(usual_values(Varied::micro_batches, gpt2) == Values({1, 2, 4, 8, 16}));
    QVERIFY(usual_values(Varied::hidden, gpt2) == Values({192, 384, 768, 1536, 3072}));
    settings.batch = 6, settings.devices = 6;
    const VariationSubject odd = subject_of("builtin:lenet", "v100-16gb-2x8", settings);
    QVERIFY(usual_values(Varied::batch, odd) == Values({3, 6, 12, 24}));
    QVERIFY(usual_values(Varied::devices, odd) == Values({1, 2, 4, 6, 8, 16}));
    QVERIFY(usual_values(Varied::sequence, odd).empty());
    QVERIFY(usual_values(Varied::micro_batches, odd) == Values({1, 2}));
  }

  void parameters_at_a_value() {
    const Method method = written("m", false, {});
    QCOMPARE(varied_parameters({&method, "zero=2"}, Varied::batch, 4), std::string("zero=2"));
    QCOMPARE(varied_parameters({&method, ""}, Varied::micro_batches, 4), std::string("micro-batches=4"));
    QCOMPARE(varied_parameters({&method, "tp=2:micro-batches=8:pp=2"}, Varied::micro_batches, 4),
             std::string("tp=2:pp=2:micro-batches=4"));
  }

  void numbers_of_micro_batches_of_their_own_give_way() {
    const auto names = [](const std::vector<std::string>& of, Varied quantity) {
      std::vector<std::string> list;
      for (const VariedMethod& method : varied_methods(methods_named(of), quantity)) list.push_back(method.name());
      return list;
    };
    using Names = std::vector<std::string>;
    const Names asked{"fsdp:micro-batches=4", "ft", "fsdp", "fsdp:zero=2:micro-batches=8"};
    QVERIFY(names(asked, Varied::micro_batches) == Names({"fsdp", "ft", "fsdp:zero=2"}));
    QVERIFY(names(asked, Varied::batch) == asked);
  }

  /// Plans of no operators, which no schedule can be made of.
  void where_no_peak_can_be_had_a_note_says_so() {
    struct NoPlans : PlanSource {
      AnyPlan plan(std::size_t) const override { return std::make_shared<Plan>(); }
      PlanKind kind(std::size_t) const override { return PlanKind::sharding; }
    };
    const Method method = written("written", false, [](const ScenarioPtr& scenario) -> Expected<ResultPtr> {
      auto result = std::make_shared<Result>(*answer_of(scenario, {{1, 1.0}}));
      result->plans = std::make_shared<NoPlans>();
      result->points.front().memory_bytes = 64 << 20;
      return ResultPtr(result);
    });
    const Variation found = run_all(
        {subject_of("builtin:lenet", "v100-16gb-1x4", settings_with(8)), {Varied::batch, {8}}, {{&method, {}}}});
    const VariationCell& cell = found.cells.front();
    QVERIFY(cell.fits() && !cell.fastest->simulated_memory_bytes);
    QCOMPARE(cell.notes.size(), std::size_t(1));
    QVERIFY2(cell.notes[0].starts_with("what fits is judged by plain sums, as no peak could be had: "),
             cell.notes[0].c_str());
  }

  void in_a_table_every_column_has_one_name_and_what_is_unknown_is_empty() {
    Settings settings = settings_with(16);
    settings.price_per_hour = 3.6;
    const auto rows_of = [&](const char* model, const char* over) {
      const Variation found =
          run_all({subject_of(model, "v100-16gb-1x4", settings), *parse_varied_axis(over), methods_named({"ft"})});
      std::vector<std::map<QString, QString>> rows;
      const QStringList lines = QString::fromStdString(variation_csv(found)).split('\n', Qt::SkipEmptyParts);
      const QStringList head = lines[0].split(',');
      for (const QString& line : lines.mid(1)) {
        const QStringList fields = QString(line).replace(QRegularExpression("\"[^\"]*\""), "quoted").split(',');
        rows.emplace_back();
        for (qsizetype i = 0; i < std::min(head.size(), fields.size()); ++i) rows.back()[head[i]] = fields[i];
        if (fields.size() != head.size() || rows.back().size() != std::size_t(head.size())) rows.clear();
      }
      return rows;
    };
    auto rows = rows_of("builtin:lenet", "batch=16,24");
    QVERIFY(rows.size() == 2 && rows[0]["quantity"] == "batch" && rows[1]["value"] == "24");
    QVERIFY(rows[0]["sequence"].isEmpty() && rows[0]["price_per_million_tokens"].isEmpty());
    // Four devices for 3.6 an hour are 0.004 a second: 250 a million of 16 samples in each second.
    QVERIFY(std::abs(rows[0]["price_per_million_samples"].toDouble() / (250 * rows[0]["time_s"].toDouble()) - 1) <
            1e-9);
    rows = rows_of("builtin:gpt2?layers=1&hidden=128&sequence=64", "hidden=100,128");
    QVERIFY(rows.size() == 2 && rows[0]["state"] == "cannot be" && rows[1]["state"] == "fits");
    for (const auto& [column, text] : rows[0])
      if (column != "quantity" && column != "value" && column != "method" && column != "state" && column != "reason")
        QVERIFY2(text.isEmpty(), qPrintable(column + ": " + text));
    QVERIFY(rows[1]["price_per_million_samples"].isEmpty() && !rows[1]["price_per_million_tokens"].isEmpty());
  }

  void written_and_read_it_is_the_same() {
    Settings settings = settings_with(16, 30 << 20);
    settings.price_per_hour = 2.5;
    const Variation found = run_all({subject_of("builtin:gpt2?layers=1&hidden=128", "v100-16gb-2x2", settings),
                                     {Varied::devices, {1, 2, 3, 4}},
                                     methods_named({"ft", "data-parallel"})});
    const std::string text = write_variation(found);
    const auto again = read_variation(text, "sweep.json");
    QVERIFY2(again, again ? "" : again.error().message().c_str());
    QVERIFY(write_variation(*again) == text);
    QVERIFY(variation_csv(*again) == variation_csv(found));
    QCOMPARE(again->cells.size(), found.cells.size());
    const auto csv = QString::fromStdString(variation_csv(found)).split('\n', Qt::SkipEmptyParts);
    QCOMPARE(csv.size(), 9);
    for (const QString& line : csv)  // reasons have commas, in quotes
      QCOMPARE(QString(line).remove(QRegularExpression("\"[^\"]*\"")).count(','), csv.front().count(','));
  }

  void what_is_wrong_in_a_file_is_said_data() {
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::newRow("format") << "turnpoint/sweep@1"
                            << "turnpoint/result@1";
    QTest::newRow("quantity") << "\"quantity\": \"batch\""
                              << "\"quantity\": \"colour\"";
    QTest::newRow("a value of its own") << "\"value\": 8,"
                                        << "\"value\": 9,";
    QTest::newRow("a method of its own") << "\"method\": \"data-parallel\""
                                         << "\"method\": \"ft\"";
    QTest::newRow("state") << "\"state\": \"fits\""
                           << "\"state\": \"fitting\"";
    QTest::newRow("no plan") << "\"fastest\""
                             << "\"slowest\"";
    QTest::newRow("time") << "\"time_s\": "
                          << "\"time_s\": -";
    QTest::newRow("memory") << "\"memory_bytes\": "
                            << "\"memory_bytes\": 9999999999999999999";
  }
  void what_is_wrong_in_a_file_is_said() {
    QFETCH(QString, from);
    QFETCH(QString, to);
    const Variation found = run_all({subject_of("builtin:lenet", "v100-16gb-1x4", settings_with(8)),
                                     {Varied::batch, {8}},
                                     methods_named({"data-parallel"})});
    const QString text = QString::fromStdString(write_variation(found));
    QVERIFY2(text.contains(from), qPrintable(text));
    const auto read = read_variation(QString(text).replace(from, to).toStdString(), "sweep.json");
    QVERIFY(!read && read.error().code == ErrorCode::bad_input);
    QVERIFY2(read.error().where.starts_with("sweep.json"), read.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(VariationTest)
#include "variation_test.moc"
