// SPDX-License-Identifier: Apache-2.0
// Exported files in the hands of the engines' own classes, on a processor: Megatron-Core's TransformerConfig and its
// count of layers for every rank, torchtitan's configuration, groups and schedule, DeepSpeed's configuration. They
// understand what the plan has, and refuse files in which a number was changed to what is refused here as well. Needs
// the environment that packaging/engines makes.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/search/baselines/expert_loops.h"
#include "engine.h"
#include "export/engines/exported.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct TypedFile {
  std::string name;
  TypedSplit split;
  std::string text;
  std::vector<int> layers;  ///< of each run, as the plan has them
};

std::vector<int> layers_of_runs(const Scenario& scenario, const Plan& plan) {
  if (plan.pipeline->stages == 1) return {};
  const Model& model = *plan.pipeline->micro_batch;
  const auto roles = find_transformer_roles(model, scenario.settings.split_windows);
  std::map<int, std::set<int>> met;
  for (const PlanOperator& op : plan.operators)
    if (const int layer = roles->layer_of[op.op.index]; layer >= 0 && layer < roles->layers)
      met[plan.pipeline->run_of(op)].insert(layer);
  std::vector<int> layers;
  for (const auto& [run, own] : met) layers.push_back(int(own.size()));
  return layers;
}

/// Files of random splits that the engine takes, at most so many.
std::vector<TypedFile> drawn_files(const char* key, const ScenarioPtr& scenario, std::size_t most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TypedFile> files;
  for (int trial = 0; trial < 400 && files.size() < most; ++trial) {
    TypedSplit split = drawn_split(random, int(scenario->cluster->devices()));
    if (search::find_expert_loops(*scenario->model).experts == 0) split.ep = 1;
    // Whatever else was drawn, two of three have what only some can say.
    if (std::string(key) == "deepspeed")
      split.tp = split.pp = split.vp = split.cp = split.ep = 1, split.dp = 8, split.by_time = false;
    const auto result = run("manual:" + split.text(), scenario);
    if (!result) continue;
    auto text = exported(key, *result);
    if (!text) continue;
    const Plan plan = (*result)->plans->sharding(0);
    files.push_back({fmt::format("plan-{}.{}", files.size(), std::string(key) == "deepspeed" ? "json" : "py"),
                     split.plainly(), std::move(*text),
                     plan.pipeline ? layers_of_runs(*scenario, plan) : std::vector<int>()});
  }
  return files;
}

class Answers {
 public:
  /// What the engine says of the files, by name.
  Answers(const QString& python, const char* engine, int devices, const std::vector<TypedFile>& files) {
    QTemporaryDir folder;
    QStringList arguments{QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/export/engines/check_files.py"), engine,
                          QString::number(devices)};
    for (const TypedFile& file : files) {
      const QString path = folder.filePath(QString::fromStdString(file.name));
      std::ofstream(path.toStdString()) << file.text;
      arguments << path;
    }
    const EngineRun run = run_engine(python, arguments);
    all_ = nlohmann::json::parse(run.out.toStdString(), nullptr, false);
    if (!all_.is_object()) qFatal("%s says nothing: %s", engine, run.err.right(2000).constData());
  }
  const nlohmann::json& operator[](const TypedFile& file) const { return all_.at(file.name); }

 private:
  nlohmann::json all_;
};

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) qFatal("there is no %s in %s", from.c_str(), text.c_str());
  return text.replace(at, from.size(), to);
}

QByteArray told(const TypedFile& file, const nlohmann::json& answer) {
  return QByteArray::fromStdString(file.split.text() + ": " + answer.dump());
}

}  // namespace

class OwnClassesTest : public QObject {
  Q_OBJECT

  QString python_;
  const ScenarioPtr gpt_ = scenario_on(builtin("gpt2?layers=6&hidden=512&sequence=32", 64), "v100-16gb-1x8");
  const ScenarioPtr llama_ = scenario_on(builtin("llama-2-70b?layers=8&hidden=1024&width=2048&sequence=64", 64),
                                         "h100-80gb-2x4", [](Settings& s) { s.precision = Precision::bf16; });
  const ScenarioPtr mixture_ = scenario_on(builtin("mixtral-8x7b?layers=4&hidden=1024&width=512&sequence=32", 64),
                                           "h100-80gb-1x8", [](Settings& s) { s.precision = Precision::bf16; });

 private slots:
  void initTestCase() {
    python_ = engine_python("pytorch");
    if (python_.isEmpty()) QSKIP("pytorch is absent: 'packaging/engines pytorch' makes this test run");
  }

  void megatron() {
    struct Case {
      ScenarioPtr scenario;
      std::vector<int> heads;  ///< of queries, of keys; channels of each
      int hidden, inner;
      const char* dtype;
    };
    std::vector<TypedFile> files;
    std::vector<std::pair<std::size_t, Case>> until;
    for (const Case& one :
         {Case{gpt_, {8, 8, 64}, 512, 2048, "torch.float32"}, Case{llama_, {64, 8, 16}, 1024, 2048, "torch.bfloat16"},
          Case{mixture_, {8, 8, 128}, 1024, 512, "torch.bfloat16"}}) {
      for (TypedFile& file : drawn_files("megatron", one.scenario, 12, files.size())) {
        file.name = fmt::format("plan-{}.py", files.size());
        files.push_back(std::move(file));
      }
      until.emplace_back(files.size(), one);
    }
    QCOMPARE(files.size(), std::size_t(36));
    const Answers answers(python_, "megatron", 8, files);
    int pipelines = 0;
    for (std::size_t k = 0; k < files.size(); ++k) {
      const TypedFile& file = files[k];
      const nlohmann::json& answer = answers[file];
      const QByteArray what = told(file, answer);
      QVERIFY2(!answer.contains("refused"), what);
      const Case& one = std::ranges::find_if(until, [&](const auto& last) { return k < last.first; })->second;
      QVERIFY2(answer["dp"] == file.split.dp && answer["tp"] == file.split.tp && answer["pp"] == file.split.pp, what);
      QVERIFY2(answer["sequence_parallel"] == file.split.sequence_parallel, what);
      QVERIFY2(answer["recompute"] == file.split.recompute, what);
      QVERIFY2(answer["heads"] == one.heads && answer["hidden"] == one.hidden && answer["inner"] == one.inner, what);
      QVERIFY2(answer["cp"] == file.split.cp, what);
      QVERIFY2(answer["dtype"] == one.dtype && answer["experts"] == file.split.ep, what);
      // Layers as Megatron-Core builds them on every rank.
      if (!file.layers.empty()) QVERIFY2(answer["vp"] == file.split.vp && answer["layers"] == file.layers, what);
      pipelines += !file.layers.empty();
    }
    QVERIFY(pipelines >= 5);
  }

  // What methods and exports refuse here, Megatron-Core refuses there.
  void megatron_refuses() {
    const auto plain = run("manual:dp=4:tp=2:sequence-parallel", gpt_),
               uneven = run("manual:dp=2:pp=4:micro-batches=4", gpt_);
    QVERIFY(plain && uneven);
    const std::string one = *exported("megatron", *plain), two = *exported("megatron", *uneven);
    QVERIFY(!run("manual:tp=3", scenario_on(builtin("gpt2?layers=6&hidden=512&sequence=32", 64), "v100-16gb-1x3")));
    std::vector<TypedFile> files(4);
    files[0].text = with(one, "tensor_model_parallel_size=2", "tensor_model_parallel_size=3");
    files[1].text = with(one, "tensor_model_parallel_size=2", "tensor_model_parallel_size=1");  // by sequence alone
    files[2].text = with(two, "pipeline_model_parallel_layout=\"Et*1|", "pipeline_model_parallel_layout=\"Et*2|");
    files[3].text =
        with(one, "tensor_model_parallel_size=2", "expert_model_parallel_size=2, tensor_model_parallel_size=2");
    for (std::size_t k = 0; k < files.size(); ++k) files[k].name = fmt::format("changed-{}.py", k);
    const Answers answers(python_, "megatron", 8, files);
    for (const TypedFile& file : files) QVERIFY2(answers[file].contains("refused"), told(file, answers[file]));
  }

  void torchtitan() {
    std::vector<TypedFile> files = drawn_files("torchtitan", llama_, 24, 5);
    QCOMPARE(files.size(), std::size_t(24));
    const Answers answers(python_, "torchtitan", 8, files);
    int pipelines = 0;
    for (const TypedFile& file : files) {
      const nlohmann::json& answer = answers[file];
      const QByteArray what = told(file, answer);
      QVERIFY2(!answer.contains("refused"), what);
      QVERIFY2(answer["dp"] == file.split.dp && answer["tp"] == file.split.tp && answer["pp"] == file.split.pp, what);
      QVERIFY2(answer["micro_batches"] == file.split.micro_batches, what);
      QVERIFY2(answer["cp"] == file.split.cp && answer["experts"] == 1, what);
      const int group = file.split.shard > 0 ? file.split.shard : file.split.dp * file.split.cp;
      QVERIFY2(answer["shards"] == (file.split.zero > 0 ? group : 1), what);
      if (file.split.zero > 0) QVERIFY2(answer["gathers_again"] == (file.split.zero == 3 ? "always" : "never"), what);
      QVERIFY2(answer["sequence_parallel"] == file.split.sequence_parallel, what);
      QVERIFY2(answer["recompute"] == file.split.recompute && answer["dtype"] == "bfloat16", what);
      QVERIFY2(answer["layers"] == file.layers && answer["vp"] == file.split.vp, what);
      pipelines += !file.layers.empty();
    }
    QVERIFY(pipelines >= 5);
    std::vector<TypedFile> changed(3);
    const auto staged = run("manual:dp=4:pp=2:micro-batches=4", llama_);
    QVERIFY(staged);
    const std::string text = *exported("torchtitan", *staged);
    changed[0].text = with(text, "\"--parallelism.data_parallel_replicate_degree\", \"4\"",
                           "\"--parallelism.data_parallel_replicate_degree\", \"3\"");
    changed[1].text =
        with(text, "pipeline_parallel_microbatch_size\", \"4\"", "pipeline_parallel_microbatch_size\", \"3\"");
    changed[2].text = with(text, "\"1F1B\"", "\"Interleaved1F1B\"");
    for (std::size_t k = 0; k < changed.size(); ++k) changed[k].name = fmt::format("changed-{}.py", k);
    const Answers refused(python_, "torchtitan", 8, changed);
    for (const TypedFile& file : changed) QVERIFY2(refused[file].contains("refused"), told(file, refused[file]));
  }

  void deepspeed() {
    std::vector<TypedFile> files = drawn_files("deepspeed", llama_, 20, 7);
    QCOMPARE(files.size(), std::size_t(20));
    const auto one = run("manual:micro-batches=2", gpt_);
    QVERIFY(one);
    files.push_back({"changed.json",
                     {},
                     with(*exported("deepspeed", *one), "\"train_batch_size\": 64", "\"train_batch_size\": 63"),
                     {}});
    files.push_back({"unknown.json", {}, with(*exported("deepspeed", *one), "\"stage\": 0", "\"stage\": 4"), {}});
    const Answers answers(python_, "deepspeed", 8, files);
    for (const TypedFile& file : files) {
      const nlohmann::json& answer = answers[file];
      const QByteArray what = told(file, answer);
      QCOMPARE(answer.contains("refused"), file.name == "changed.json" || file.name == "unknown.json");
      if (answer.contains("refused")) continue;
      QVERIFY2(answer["zero"] == file.split.zero && answer["micro_batches"] == file.split.micro_batches, what);
      QVERIFY2(answer["batch"] == 64 && answer["recompute"] == file.split.recompute, what);
      QVERIFY2(answer["bf16"] == true && answer["sums"] == "bf16" && answer["offload"] == "none", what);
      QVERIFY2(answer["bucket"] == (25 << 20) / 2, what);
      if (file.split.zero == 3) QVERIFY2(answer["kept_whole"] == 0, what);
    }
  }
};

QTEST_APPLESS_MAIN(OwnClassesTest)
#include "own_classes_test.moc"
