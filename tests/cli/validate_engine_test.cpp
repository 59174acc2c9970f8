// SPDX-License-Identifier: Apache-2.0
// `validate --engine`: what is refused before anything starts, with fakes in the place of an environment; and, in the
// environment that packaging/engines makes, plans run by the engine on two and four ranks: bytes are the plan's, losses
// those of the model in one piece, the report is whole.
#include <QDirIterator>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/result_folder.h"
#include "engine.h"
#include "export/engines/received.h"
#include "send_signal.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

constexpr int kDeviceFailed = 5;
const char* const kProgram = TURNPOINT_BINARY_DIR "/turnpoint-cli";

/// A LeNet as the built-in one, of someone who writes PyTorch.
constexpr const char* kOwnModel = R"py(import torch
from torch import nn


def make():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10),
    )


def made_before():
    """How many in this process; the file itself is loaded anew for each."""
    torch.made_before = getattr(torch, "made_before", -1) + 1
    return torch.made_before


def first_lacks():
    """The plan lays the first one out."""
    model = make()
    model[-1].bias.requires_grad_(made_before() > 0)
    return model


def others_lack():
    model = make()
    model[-1].bias.requires_grad_(made_before() == 0)
    return model


def not_a_model():
    return 7
)py";

}  // namespace

class ValidateEngineTest : public QObject, test::ResultFolder {
  Q_OBJECT

  QString searched(const QString& model, const char* hardware, const char* method, QStringList more = {}) const {
    more = QStringList{"search",   model,  "--batch", "16",    "--hardware",       hardware,
                       "--method", method, "--plans", "--out", path("result.json")} +
           more;
    const auto found = test::run(more);
    if (found.code != 0) qFatal("%s", found.err.constData());
    return path("result.json");
  }
  QString llama() const {
    std::ofstream(path("config.json").toStdString()) << test::config_of("llama", 8, false);
    return path("config.json");
  }
  static test::Run validate(const QString& result, QStringList more = {}) {
    return test::run(QStringList{"validate", result, "--engine", "pytorch"} + more);
  }
  QString fake(const char* name, const QByteArray& body) const {
    QFile file(path(name));
    if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write a script");
    file.write("#!/bin/sh\n" + body);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path(name);
  }
  QStringList left() const { return QDir(path("runs")).entryList(QDir::AllEntries | QDir::NoDotAndDotDot); }
  /// Processes that work on files of a run.
  int processes() const {
    int count = 0;
    for (QDirIterator it("/proc", {"[0-9]*"}, QDir::Dirs); it.hasNext();) {
      QFile words(it.next() + "/cmdline");
      count += words.open(QIODevice::ReadOnly) && words.readAll().contains(path("runs").toLocal8Bit());
    }
    return count;
  }

 private slots:
  void initTestCase() {
    QVERIFY(folder_.isValid() && QDir(folder_.path()).mkdir("runs"));
    qputenv("TMPDIR", path("runs").toLocal8Bit());
  }
  void cleanup() { QCOMPARE(left(), QStringList()); }

  void what_is_refused_before_anything_starts() {
    const QString result = searched(llama(), "v100-16gb-1x2", "manual:tp=2");
    const auto refused = [&](QStringList more, int code, const char* words) {
      const auto done = test::run(QStringList{"validate", result} + more);
      if (done.code == code && done.err.contains(words) && done.err.count('\n') == 1 && done.out.isEmpty()) return true;
      qWarning("%d: %s", done.code, done.err.constData());
      return false;
    };
    QVERIFY(refused({"--engine", "tensorflow"}, test::kUsage, "--engine knows pytorch and jax"));
    QVERIFY(refused({"--python", "/bin/sh"}, test::kUsage, "--model-code and --python are for an engine"));
    for (const char* option : {"--slice", "--calibrate", "--runs=2", "--device=1", "--cpu-kernels=own",
                               "--job-out=/tmp/j", "--from=/tmp/f", "--record=/tmp/r", "--slow=1:2"})
      QVERIFY(refused({"--engine", "pytorch", option}, test::kUsage, "is for turnpoint-probe, not for an engine"));
    QVERIFY(
        refused({"--engine", "pytorch", "--python", path("none")}, kDeviceFailed, "no program is there, of --python"));
    QVERIFY(
        refused({"--engine", "jax", "--launcher", "srun"}, test::kUsage, "JAX runs all devices of a machine in one"));
    QVERIFY(refused({"--engine", "jax", "--model-code", "m.py:make"}, test::kUsage, "whose program holds the model"));
    QVERIFY(refused({"--engine", "pytorch", "--launcher", "srun 'oops"}, test::kUsage, "is not closed"));
    qputenv("TURNPOINT_ENGINES", path("none").toLocal8Bit());
    QVERIFY(refused({"--engine", "pytorch"}, kDeviceFailed, "'packaging/engines pytorch' makes it"));
    qunsetenv("TURNPOINT_ENGINES");
  }

  // The export's own reasons, and what a model needs to be run.
  void plans_that_cannot_be_run() {
    const auto says = [&](const QString& result, const char* words) {
      const auto done = validate(result, {"--python", "/bin/sh"});
      if (done.code == test::kUsage && done.err.contains(words)) return true;
      qWarning("%d: %s", done.code, done.err.constData());
      return false;
    };
    QVERIFY(says(searched(llama(), "v100-16gb-1x4", "manual:dp=2:pp=2:micro-batches=2"),
                 "the plan has 2 stages: annotations leave the model in one piece"));
    QVERIFY(says(searched("builtin:lenet", "v100-16gb-1x2", "heft"), "is not for placements"));
    QVERIFY(says(searched("builtin:lenet", "v100-16gb-1x2", "data-parallel"), "--model-code FILE.py:FUNCTION"));
    QVERIFY(says(searched(llama(), "v100-16gb-2x8", "data-parallel"),
                 "the plan is for 16 devices, and without --launcher at most 8 processes are started here"));
  }

  // A launcher that fails, says something else, or hangs.
  void launchers_that_fail() {
    const QString result = searched(llama(), "v100-16gb-1x2", "manual:tp=2");
    const auto says = [&](const QByteArray& body, const char* words) {
      const auto done = validate(
          result, {"--python", "/bin/sh", "--launcher", fake("launcher", body) + " -n 2", "--out", path("none.json")});
      if (done.code == kDeviceFailed && done.err.contains(words) && !QFile::exists(path("none.json"))) return true;
      qWarning("%d: %s", done.code, done.err.constData());
      return false;
    };
    QVERIFY(says("echo 'no partition of that name' >&2; exit 1\n", "its last lines: no partition of that name"));
    QVERIFY(says(R"(echo '{"type": "error", "what": "rank 1: ValueError: no"}'; sleep 60)"
                 "\n",
                 "turnpoint-cli: rank 1: ValueError: no"));
    QVERIFY(says(R"(echo '{"type": "result", "engine": "pytorch 1", "backend": "cpu", "ranks": 3, "times_s": [1],)"
                 R"( "losses": [1], "memory": {}}')"
                 "\n",
                 "PyTorch ran 3 ranks, and the plan is for 2 devices"));
  }

  void an_interrupt_ends_all_processes() {
    const QString result = searched(llama(), "v100-16gb-1x2", "manual:tp=2");
    const auto interrupted = [&](const QStringList& more, const char* sign) {
      QProcess process;
      process.start(kProgram, QStringList{"validate", result, "--engine", "pytorch", "--steps", "100000", "--budget",
                                          "600", "--out", path("none.json")} +
                                  more);
      // With a terminal's progress there would be words; without one, the processes themselves are looked for.
      if (!QTest::qWaitFor([&] { return QFile::exists(path(sign)) || processes() >= 3; }, 60000)) return false;
      if (sign[0] == 'p') QTest::qWait(5000);  // PyTorch is loaded by then, or nearly
      test::send_signal(process.processId(), SIGINT);
      if (!process.waitForFinished(30000) || process.exitCode() != test::kInterrupted) return false;
      return QTest::qWaitFor([&] { return processes() == 0; }, 10000) && !QFile::exists(path("none.json"));
    };
    const QByteArray body = "touch " + path("started").toLocal8Bit() + "\nsleep 100 & wait\n";
    QVERIFY(interrupted({"--python", "/bin/sh", "--launcher", fake("launcher", body)}, "started"));
    REQUIRE_ENGINE(python, "pytorch");
    QVERIFY(interrupted({}, "processes"));
  }

  void pytorch_runs_plans_data() {
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QString>("launcher");
    QTest::addColumn<QString>("other");  // what differs from the plan, by name
    QTest::newRow("2 ranks, tensor") << "manual:tp=2"
                                     << "v100-16gb-1x2"
                                     << ""
                                     << "";
    QTest::newRow("2 ranks, in parts") << "manual:dp=2:micro-batches=2"
                                       << "v100-16gb-1x2"
                                       << ""
                                       << "";
    QTest::newRow("4 ranks, both") << "manual:dp=2:tp=2"
                                   << "v100-16gb-1x4"
                                   << "torchrun --nproc-per-node 4"
                                   << "";
    QTest::newRow("4 ranks, sharded") << "manual:dp=2:tp=2:zero=3"
                                      << "v100-16gb-1x4"
                                      << ""
                                      << "gathers the table of tokens once more";
  }
  void pytorch_runs_plans() {
    REQUIRE_ENGINE(python, "pytorch");
    QFETCH(QString, method);
    QFETCH(QString, hardware);
    QFETCH(QString, launcher);
    QFETCH(QString, other);
    const QString result = searched(llama(), qPrintable(hardware), qPrintable(method), {"--sequence", "64"});
    QStringList more{"--steps",         "4",     "--out",           path("report.json"), "--markdown",
                     path("report.md"), "--csv", path("report.csv")};
    if (!launcher.isEmpty()) more << "--launcher" << launcher;
    const auto done = validate(result, more);
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    const int ranks = hardware.endsWith("4") ? 4 : 2;
    QCOMPARE(report["ranks"].get<int>(), ranks);
    QCOMPARE(report["backend"].get<std::string>(), std::string("cpu"));
    QVERIFY(report["engine"].get<std::string>().starts_with("pytorch 2."));
    const json& step = report["step"];
    QVERIFY(step["measured"].get<double>() > 0 && step["q1"] <= step["measured"] && step["measured"] <= step["q3"]);
    QVERIFY(step["predicted"].get<double>() > 0);
    QVERIFY(report["network"]["measured"].is_null() && report["execution"]["measured"].is_null());

    // Bytes: those of the plan, but where the difference is told.
    QVERIFY(!report["exchanges"].empty());
    double differs = 0;
    for (const json& one : report["exchanges"]) {
      const json& bytes = one["bytes"];
      QVERIFY2(bytes["measured"].get<double>() > 0, one.dump().c_str());
      const bool again = !other.isEmpty() && one["kind"] == "all_gather";
      const double apart = bytes["measured"].get<double>() - bytes["predicted"].get<double>();
      if (!again) QVERIFY2(std::abs(apart) <= 1e-9 * bytes["measured"].get<double>(), one.dump().c_str());
      differs += again ? apart : 0;
      QCOMPARE(one["ranks"].size(), std::size_t(2));
      QVERIFY(one["count"]["measured"].get<int>() > 0);
    }
    // 512 words of 256 channels in fp32, half of them on each of two tensor ranks, half of these from the other.
    QCOMPARE(differs, other.isEmpty() ? 0.0 : 512 * 256 * 4 / 2 / 2);
    QCOMPARE(report.dump().find(other.toStdString()) != std::string::npos, true);
    QVERIFY(report["bytes_sent"]["measured"].get<double>() > 0);

    // Numbers: the loss of the model in one piece, in a step that learns.
    QVERIFY2(report["numerics"]["loss_error"].get<double>() < 1e-5, report["numerics"].dump().c_str());
    QVERIFY2(report["numerics"]["gradient_error"].get<double>() < 1e-5, report["numerics"].dump().c_str());
    const json& losses = report["losses"];
    QCOMPARE(losses.size(), std::size_t(2 + 2 + 4));                     // warm-up, two that are looked at, timed ones
    QVERIFY(std::abs(losses[0].get<double>() - std::log(512.0)) < 0.5);  // of guessing one of 512 words
    QVERIFY(losses.back() < losses.front());

    // Memory: weights and gradients to the byte, the optimizer's with a number of steps for each weight.
    for (const json& one : report["memory"]) {
      const std::string name = one["name"];
      if (name == "activations") {
        QVERIFY(one["measured"].is_null());
        continue;
      }
      const double predicted = one["predicted"], measured = one["measured"];
      // Of a table that is split by words DTensor keeps the gradient whole, unless fully_shard() cuts it.
      const double whole_table = name == "gradients" && method == "manual:tp=2" ? 512 * 256 * 4 / 2 : 0;
      if (name == "parameters" || name == "gradients") QCOMPARE(measured, predicted + whole_table);
      if (name == "optimizer") QVERIFY(measured >= predicted && measured < predicted + 1000);
      if (name == "peak") QVERIFY(measured > 0.7 * predicted && measured < 2 * predicted);
    }
    QVERIFY(QFile(path("report.csv")).size() > 100 && QFile(path("report.md")).size() > 100);
    QVERIFY(done.err.contains("the partitioned step equals the unpartitioned one"));
  }

  void jax_runs_plans_data() {
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("hardware");
    QTest::newRow("2 devices, tensor") << "manual:tp=2"
                                       << "v100-16gb-1x2";
    QTest::newRow("4 devices, both") << "manual:dp=2:tp=2"
                                     << "v100-16gb-1x4";
    QTest::newRow("8 devices, found by search") << "ft:micro-batches=1"
                                                << "v100-16gb-2x4";
  }
  void jax_runs_plans() {
    REQUIRE_ENGINE(python, "jax");
    QFETCH(QString, method);
    QFETCH(QString, hardware);
    const QString result =
        searched(llama(), qPrintable(hardware), qPrintable(method), {"--sequence", "64", "--without", "offload"});
    const auto done = test::run(
        {"validate", result, "--engine", "jax", "--backend", "cpu", "--steps", "4", "--out", path("report.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    QVERIFY(report["engine"].get<std::string>().starts_with("jax 0."));
    QCOMPARE(report["ranks"].get<int>(), hardware.endsWith("x2") ? 2 : hardware.startsWith("v100-16gb-1") ? 4 : 8);
    QVERIFY(report["step"]["measured"].get<double>() > 0);
    QVERIFY(!report["exchanges"].empty());
    for (const json& one : report["exchanges"]) {
      const double predicted = one["bytes"]["predicted"], measured = one["bytes"]["measured"];
      // What backward repeats XLA may take from forward; pieces that are filled up travel whole.
      const bool searched_for = method.startsWith("ft");
      QVERIFY2(measured > 0 && (searched_for || measured >= predicted - 1e-6), one.dump().c_str());
      QVERIFY2(measured <= predicted + (searched_for ? 4096 : 1e-6), one.dump().c_str());
      QVERIFY(one["count"]["measured"].get<int>() <= one["count"]["predicted"].get<int>());
    }
    QVERIFY2(report["numerics"]["loss_error"].get<double>() < 1e-5, report["numerics"].dump().c_str());
    QVERIFY2(report["numerics"]["gradient_error"].get<double>() < 1e-4, report["numerics"].dump().c_str());
    QCOMPARE(report["losses"].size(), std::size_t(2 + 4));
    QVERIFY(report["losses"].back() < report["losses"].front());
    for (const json& one : report["memory"]) {
      const std::string name = one["name"];
      if (name == "parameters" || name == "optimizer")
        QCOMPARE(one["measured"].get<double>(), one["predicted"].get<double>());
      if (name == "gradients" || name == "activations") QVERIFY(one["measured"].is_null());
      if (name == "peak") QVERIFY(one["measured"].get<double>() > 0.7 * one["predicted"].get<double>());
    }
  }

  // The model is the user's, with data of the scenario's shapes.
  void a_model_of_ones_own() {
    REQUIRE_ENGINE(python, "pytorch");
    std::ofstream(path("own.py").toStdString()) << kOwnModel;
    const QString result = searched("builtin:lenet", "v100-16gb-1x2", "data-parallel");
    const auto with = [&](const char* function) {
      return validate(result,
                      {"--steps", "3", "--model-code", path("own.py") + ":" + function, "--out", path("own.json")});
    };
    const auto done = with("make");
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("own.json");
    QCOMPARE(report["exchanges"].size(), std::size_t(1));
    QCOMPARE(report["exchanges"][0]["bytes"]["measured"], report["exchanges"][0]["bytes"]["predicted"]);
    QVERIFY(report["numerics"]["gradient_error"].get<double>() < 1e-5);
    // A gradient that only one of the two models has is no equal one.
    for (const char* function : {"first_lacks", "others_lack"}) {
      const auto unlike = with(function);
      const json numerics = read("own.json")["numerics"];
      QVERIFY2(unlike.code == kDeviceFailed && unlike.err.contains("DIFFERS FROM"), unlike.err.constData());
      QVERIFY2(numerics["gradient_error"].get<double>() > 1e20 && numerics["where"] == "11.bias",
               numerics.dump().c_str());
    }
    for (const auto& [function, words] :
         {std::pair{"none", "has no function none()"}, {"not_a_model", "returns no torch.nn.Module"}}) {
      const auto refused = with(function);
      QVERIFY2(refused.code == kDeviceFailed && refused.err.contains(words), refused.err.constData());
    }
  }

  void the_number_of_processes_is_the_plans() {
    REQUIRE_ENGINE(python, "pytorch");
    const QString result = searched(llama(), "v100-16gb-1x2", "manual:tp=2");
    const auto done = validate(result, {"--launcher", "torchrun --standalone --nproc-per-node 3"});
    QVERIFY2(done.code == kDeviceFailed, done.err.constData());
    QVERIFY2(done.err.contains("the launcher started 3 processes, and the plan is for 2 devices"),
             done.err.constData());
  }
};

QTEST_APPLESS_MAIN(ValidateEngineTest)
#include "validate_engine_test.moc"
