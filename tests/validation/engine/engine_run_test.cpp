// SPDX-License-Identifier: Apache-2.0
// Whatever an engine's processes do - crash, hang, never start, print garbage, say what is wrong - ends in one error,
// in time, and nothing of the run stays. The engines here are shell scripts.
#include <QDir>
#include <QFile>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <stop_token>
#include <thread>

#include "core/validation/engine/engine_run.h"
#include "engine.h"

using namespace turnpoint;

namespace {

const QByteArray kProgress = R"(echo '{"type": "progress", "phase": "warm-up", "fraction": 0.5}')"
                             "\n";
const QByteArray kResult =
    R"(echo '[default0]: {"type": "result", "engine": "pytorch 9.9", "backend": "cpu", "ranks": 2, "cores": 3,)"
    R"( "times_s": [0.3, 0.1], "losses": [2.5, 2.25], "memory": {"parameters": 64, "peak": 4096},)"
    R"( "collectives": [{"kind": "all_reduce", "ranks": [0, 1], "count": 3, "bytes": 96}],)"
    R"( "numerics": {"loss_error": 1e-7, "gradient_error": 2e-7, "precision": "fp32", "where": "w"},)"
    R"( "notes": ["a note"]}')"
    "\n";

EngineJob small_job() {
  EngineJob job;
  job.engine = find_engine("pytorch");
  job.program = "the plan";
  job.document = R"({"what": "to run"})";
  job.devices = 2;
  job.budget_s = 5;
  return job;
}

}  // namespace

class EngineRunTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  const EngineJob small_job_ = small_job();
  int count_ = 0;

  /// Stands where an engine's Python should; as a launcher it would be given that Python first.
  EngineLaunch fake(const QByteArray& body) {
    const QString path = folder_.filePath("python" + QString::number(++count_));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write a script");
    file.write("#!/bin/sh\n" + body);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    EngineLaunch launch;
    launch.python = "/the/python";
    launch.launcher = {path.toStdString(), "--ranks", "2"};
    launch.most_s = 20;
    launch.ending_s = 0.4;
    return launch;
  }
  QStringList left() const { return QDir(folder_.filePath("runs")).entryList(QDir::AllEntries | QDir::NoDotAndDotDot); }

 private slots:
  void initTestCase() {
    QVERIFY(QDir(folder_.path()).mkdir("runs"));
    qputenv("TMPDIR", folder_.filePath("runs").toLocal8Bit());
  }
  void cleanup() { QCOMPARE(left(), QStringList()); }

  void a_good_run_is_taken_whole() {
    std::vector<std::string> phases;
    RunContext context;
    context.progress = [&](const Progress& progress) { phases.push_back(progress.phase); };
    const auto launch = fake(
        "echo \"$@\" > " + folder_.filePath("words").toUtf8() + "\ncat \"$5/plan.py\" \"$5/job.json\" > " +
        folder_.filePath("files").toUtf8() + "\ngrep -c 'def run()' \"$4\" >> " + folder_.filePath("files").toUtf8() +
        "\n" + kProgress + "echo 'a library prints'; echo '{\"type\": \"unknown\"}'; echo '{\"type\"'\n" + kResult);
    const auto measured = run_engine(small_job(), launch, context);
    QVERIFY2(measured, measured ? "" : measured.error().message().c_str());
    QCOMPARE(measured->engine, std::string("pytorch 9.9"));
    QCOMPARE(measured->ranks, 2);
    QCOMPARE(measured->cores, 3);
    QCOMPARE(measured->times_s, std::vector<double>({0.3, 0.1}));
    QCOMPARE(measured->losses, std::vector<double>({2.5, 2.25}));
    QCOMPARE(*measured->parameters, std::int64_t(64));
    QCOMPARE(*measured->peak, std::int64_t(4096));
    QVERIFY(!measured->gradients && !measured->optimizer);
    QCOMPARE(measured->collectives.size(), std::size_t(1));
    QCOMPARE(measured->collectives[0].ranks, std::vector<int>({0, 1}));
    QCOMPARE(measured->collectives[0].count, std::int64_t(3));
    QCOMPARE(measured->collectives[0].bytes, 96.0);
    QCOMPARE(measured->numerics->loss_error, 1e-7);
    QCOMPARE(measured->notes, std::vector<std::string>({"a note"}));
    QCOMPARE(phases, std::vector<std::string>({"warm-up", "warm-up", "warm-up", "warm-up", "warm-up"}));
    QFile words(folder_.filePath("words")), files(folder_.filePath("files"));
    QVERIFY(words.open(QIODevice::ReadOnly) && files.open(QIODevice::ReadOnly));
    const QList<QByteArray> told = words.readAll().trimmed().split(' ');
    QCOMPARE(told.mid(0, 3), QList<QByteArray>({"--ranks", "2", "/the/python"}));
    QCOMPARE(told.at(3), told.at(4) + "/run.py");
    QCOMPARE(files.readAll(), QByteArray("the plan{\"what\": \"to run\"}1\n"));
  }

  void what_goes_wrong_is_one_error_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QString>("words");
    QTest::newRow("it fails")
        << QByteArray(
               "echo first >&2; echo ===== >&2; echo second >&2; echo third >&2; "
               "echo the last >&2; exit 7\n")
        << "ended with code 7 before there was a result; its last lines: second | third | the last";
    QTest::newRow("it is killed") << QByteArray("kill -9 $$\n") << "was ended by signal 9";
    QTest::newRow("it ends well and says nothing") << QByteArray("exit 0\n") << "ended with code 0 before";
    QTest::newRow("a process says what it is")
        << QByteArray(R"(echo '{"type": "error", "what": "the launcher started 3 processes"}'; sleep 100)"
                      "\n")
        << "the launcher started 3 processes";
    QTest::newRow("it hangs") << kProgress + "sleep 100\n"
                              << "has not ended after 700 ms; the last that it said of itself is 'warm-up'";
    QTest::newRow("a line without end") << QByteArray("yes | tr -d '\\n'\n") << "line without end";
    QTest::newRow("a result without times")
        << QByteArray(R"(echo '{"type": "result", "engine": "x", "backend": "cpu", "ranks": 2, "losses": [1]}')"
                      "\n")
        << "times_s: must be a list of numbers";
    QTest::newRow("a result with words for times")
        << QByteArray(R"(echo '{"type": "result", "engine": "x", "backend": "cpu", "ranks": 2, "losses": [1],)"
                      R"( "times_s": ["soon"]}')"
                      "\n")
        << "times_s: must be a list of numbers";
    for (const char* times : {"[-0.1]", "[1e31]", "[0.1, null]"})
      QTest::newRow(times) << QByteArray(R"(echo '{"type": "result", "engine": "x", "backend": "cpu", "ranks": 2,)"
                                         R"( "losses": [1], "times_s": )") +
                                  times + "}'; sleep 100\n"
                           << "times_s: ";
    for (const char* ranks : {R"(["0", 1])", "[0.5]", "[-1]", "[0, 2]", "[4294967296]", "0", "null"})
      QTest::newRow(ranks) << QByteArray(R"(echo '{"type": "result", "engine": "x", "backend": "cpu", "ranks": 2,)"
                                         R"( "losses": [1], "times_s": [1], "memory": {}, "collectives": [{)"
                                         R"("kind": "all_reduce", "count": 1, "bytes": 1, "ranks": )") +
                                  ranks + "}]}'; sleep 100\n"
                           << "collectives[0].ranks: must be a list of ranks";
    QTest::newRow("a result that is no JSON")
        << QByteArray(R"(echo '{"type": "result", "engine": "x", "losses": [NaN]}'; sleep 100)"
                      "\n")
        << R"(a process of PyTorch printed a line that cannot be read: {"type": "result", "engine": "x")";
    QTest::newRow("an error that is no JSON") << QByteArray(R"(echo '{"type":"error", "what": it is}'; sleep 100)"
                                                            "\n")
                                              << "printed a line that cannot be read";
    QTest::newRow("no ranks") << QByteArray(R"(echo '{"type": "result", "engine": "x", "backend": "cpu"}')"
                                            "\n")
                              << "ranks";
  }
  void what_goes_wrong_is_one_error() {
    QFETCH(QByteArray, body);
    QFETCH(QString, words);
    EngineLaunch launch = fake(body);
    launch.most_s = words.contains("700 ms") ? 0.7 : 20;
    const auto began = std::chrono::steady_clock::now();
    const auto measured = run_engine(small_job(), launch, {});
    QVERIFY(!measured);
    QVERIFY2(measured.error().code == ErrorCode::device, measured.error().message().c_str());
    QVERIFY2(QString::fromStdString(measured.error().message()).contains(words), measured.error().message().c_str());
    QVERIFY(std::chrono::steady_clock::now() - began < std::chrono::seconds(15));
  }

  void a_launcher_that_is_not_there() {
    EngineLaunch launch = fake("");
    launch.launcher = {"no-such-launcher", "-n", "2"};
    const auto measured = run_engine(small_job(), launch, {});
    QVERIFY(!measured);
    QCOMPARE(measured.error().message(), std::string("no-such-launcher cannot be started: No such file or directory"));
  }

  // The launcher is asked to end first, so that it can end what it has started elsewhere. What it leaves here goes,
  // too.
  void a_stop_ends_the_launcher() {
    const QByteArray asked = folder_.filePath("asked").toUtf8();
    const QString alive = folder_.filePath("alive");
    const auto launch = fake("trap 'echo yes > " + asked + "; exit 0' TERM\n(trap '' TERM; while :; do touch " +
                             alive.toUtf8() + "; sleep 0.05; done) &\nwhile [ ! -e " + alive.toUtf8() +
                             " ]; do sleep 0.05; done\n" + kProgress + "wait\n");
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    context.progress = [&](const Progress&) { stop.request_stop(); };
    const auto began = std::chrono::steady_clock::now();
    const auto measured = run_engine(small_job(), launch, context);
    QVERIFY(!measured);
    QVERIFY(measured.error().code == ErrorCode::cancelled);
    QVERIFY(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
    QVERIFY(QFile::exists(folder_.filePath("asked")));
    QTest::qWait(200);
    QVERIFY(QFile::remove(alive));
    QTest::qWait(300);
    QVERIFY(!QFile::exists(alive));
  }

  // Some launchers stay when all of their processes have gone.
  void a_launcher_that_does_not_end_leaves_the_result() {
    const QByteArray process = folder_.filePath("process").toUtf8();
    const auto began = std::chrono::steady_clock::now();
    const auto measured =
        run_engine(small_job(), fake("echo $$ > " + process + "\n" + kResult + "trap '' TERM; exec sleep 100\n"), {});
    QVERIFY2(measured, measured ? "" : measured.error().message().c_str());
    QVERIFY(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
    QFile file(process);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const int id = file.readAll().trimmed().toInt();
    QVERIFY(id > 0 && ::kill(id, 0) != 0 && errno == ESRCH);
  }

  // What mpirun and srun have started on other hosts only they can end, and they may have much to say meanwhile.
  void a_launcher_has_time_to_tidy_up() {
    const QByteArray tidy = folder_.filePath("tidy").toUtf8();
    EngineLaunch launch = fake("trap 'head -c 1000000 /dev/zero; sleep 0.2; echo yes > " + tidy + "; exit 0' TERM\n" +
                               kResult + "sleep 100 & wait\n");
    launch.ending_s = 3;
    const auto measured = run_engine(small_job(), launch, {});
    QVERIFY2(measured, measured ? "" : measured.error().message().c_str());
    QVERIFY(QFile::exists(folder_.filePath("tidy")));
  }

  // Rank, number of ranks and rank on its host, as the variables of launchers tell them.
  void a_process_knows_its_place_data() {
    QTest::addColumn<QString>("variables");
    QTest::addColumn<QString>("place");
    QTest::newRow("torchrun") << "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1"
                              << "5 of 8, 1";
    QTest::newRow("Open MPI") << "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1"
                              << "5 of 8, 1";
    QTest::newRow("mpirun of PMI") << "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 SLURM_LOCALID=0"
                                   << "5 of 8, 1";
    QTest::newRow("srun by PMI-2") << "PMI_RANK=5 PMI_SIZE=8 SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1"
                                   << "5 of 8, 1";
    QTest::newRow("srun") << "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1"
                          << "5 of 8, 1";
    QTest::newRow("PMI, nothing of the host") << "PMI_RANK=5 PMI_SIZE=8"
                                              << "5 of 8, 5";
    QTest::newRow("nothing") << "NONE=1"
                             << "0 of 1, 0";
  }
  void a_process_knows_its_place() {
    QFETCH(QString, variables);
    QFETCH(QString, place);
    const QString python = QStandardPaths::findExecutable("python3");
    if (python.isEmpty()) QSKIP("python3 is absent: with it this test runs");
    Engine engine = *find_engine("pytorch");
    engine.parts = {
        [] { return std::string_view("def run():\n    say(\"error\", what=f\"{RANK} of {RANKS}, {LOCAL}\")\n"); }};
    EngineJob job = small_job();
    job.engine = &engine;
    EngineLaunch launch;
    launch.python = python.toStdString();
    launch.launcher = {"env", "-i"};
    for (const QString& variable : variables.split(' ')) launch.launcher.push_back(variable.toStdString());
    const auto measured = run_engine(job, launch, {});
    QVERIFY(!measured);
    QCOMPARE(QString::fromStdString(measured.error().message()), place);
  }

  // GPUs that are asked for, or that seemed to be there, and processors that the engine would take in their place.
  void processors_do_not_stand_in_for_gpus() {
    if (QFile::exists("/dev/nvidiactl")) QSKIP("this machine has a GPU: without one this test runs");
    const auto refusal = [&](const char* key, const QString& python, const char* document) {
      EngineJob job = small_job();
      job.engine = find_engine(key);
      job.document = document;
      EngineLaunch launch;
      launch.python = python.toStdString();
      launch.launcher = {"env", "RANK=0", "WORLD_SIZE=9"};
      const auto measured = run_engine(job, launch, {});
      return measured ? QString() : QString::fromStdString(measured.error().message());
    };
    REQUIRE_ENGINE(jax, "jax");
    const QString unseen = refusal("jax", jax, R"({"devices": 1, "backend": "cuda"})");
    QVERIFY2(unseen.startsWith("JAX sees no GPU that it can use"), qPrintable(unseen));
    REQUIRE_ENGINE(pytorch, "pytorch");
    const QString many = refusal("pytorch", pytorch, R"({"devices": 9, "backend": "auto", "most_cpu_ranks": 8})");
    QVERIFY2(many.startsWith("rank 0 has no GPU, and without --launcher at most 8 processes"), qPrintable(many));
  }

  void an_engine_of_one_process_is_started_as_it_is() {
    EngineJob job = small_job();
    job.engine = find_engine("jax");
    EngineLaunch launch;
    launch.python = "/env/bin/python";
    QCOMPARE(engine_command(job, launch, "/run"), std::vector<std::string>({"/env/bin/python", "/run/run.py", "/run"}));
  }

  // JSON has no word for a number that is none.
  void losses_that_are_no_numbers() {
    EngineMessages messages(small_job_);
    QVERIFY(messages.take(R"({"type": "result", "engine": "x", "backend": "cpu", "ranks": 1, "times_s": [1],)"
                          R"( "losses": [2, null], "memory": {},)"
                          R"( "numerics": {"loss_error": null, "gradient_error": 0}})"));
    QVERIFY(messages.measurement() && std::isnan(messages.measurement()->losses[1]));
    QVERIFY(messages.measurement()->numerics->loss_error > 1e20);
  }

  void launchers_start_the_engines_own_python() {
    EngineLaunch launch;
    launch.python = "/env/bin/python";
    const auto words = [&](std::vector<std::string> launcher) {
      launch.launcher = std::move(launcher);
      QStringList list;
      for (const std::string& word : engine_command(small_job(), launch, "/run")) list << QString::fromStdString(word);
      return list.join(' ');
    };
    QCOMPARE(words({}),
             QString("/env/bin/python -m torch.distributed.run --standalone --nproc-per-node 2 /run/run.py /run"));
    QCOMPARE(words({"torchrun", "--nnodes", "2"}),
             QString("/env/bin/python -m torch.distributed.run --nnodes 2 /run/run.py /run"));
    QCOMPARE(words({"srun", "torchrun", "--nnodes", "2"}), QString("srun torchrun --nnodes 2 /run/run.py /run"));
    QCOMPARE(words({"/own/torchrun"}), QString("/own/torchrun /run/run.py /run"));
    QCOMPARE(words({"mpirun", "-n", "2"}), QString("mpirun -n 2 /env/bin/python /run/run.py /run"));
  }

  void the_environment_is_found() {
    const Engine& engine = *find_engine("pytorch");
    const QString engines = folder_.filePath("engines");
    qputenv("TURNPOINT_ENGINES", engines.toLocal8Bit());
    auto python = find_engine_python(engine, {});
    QVERIFY(!python);
    QVERIFY(python.error().code == ErrorCode::device);
    QVERIFY2(python.error().message().find("'packaging/engines pytorch' makes it") != std::string::npos,
             python.error().message().c_str());
    QVERIFY(QDir().mkpath(engines + "/pytorch/bin"));
    QVERIFY(QFile::copy(QString::fromStdString(fake("").launcher[0]), engines + "/pytorch/bin/python"));
    QVERIFY(!find_engine_python(engine, {}));  // not finished
    QFile packages(engines + "/pytorch/packages");
    QVERIFY(packages.open(QIODevice::WriteOnly));
    packages.close();
    python = find_engine_python(engine, {});
    QVERIFY(python);
    QCOMPARE(QString::fromStdString(*python), engines + "/pytorch/bin/python");
    QCOMPARE(*find_engine_python(engine, "/bin/sh"), std::string("/bin/sh"));
    QVERIFY(!find_engine_python(engine, folder_.filePath("none").toStdString()));
    qunsetenv("TURNPOINT_ENGINES");
  }
};

QTEST_APPLESS_MAIN(EngineRunTest)
#include "engine_run_test.moc"
