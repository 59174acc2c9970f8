// SPDX-License-Identifier: Apache-2.0
// The collectives of text that XLA writes, against counts by hand: in one piece, begun and ended apart as compilers for
// GPUs and TPUs have them, several combined in one, with counters, and the three spellings of groups. The text is made
// by hand after XLA's documentation of its operations; what this machine's JAX writes is read in tests/export/jax.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/validation/engine/engine_parts.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

struct Line {
  const char* name;
  const char* text;
  const char* kind;         ///< empty: none is found
  double bytes = 0;         ///< that one of eight devices receives
  std::size_t members = 0;  ///< of the first group; of a permutation 2
};

// f32[8,4] is 128 bytes, f32[2,4] 32, bf16[16] 32.
const std::vector<Line>& lines() {
  static const std::vector<Line> all{
      {"sum", "  %ar = f32[8,4]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add",
       "all-reduce", 2 * 128 * 3 / 4.0, 4},
      {"sum, begun", "  %s = f32[8,4]{1,0} all-reduce-start(%p), replica_groups=[2,4]<=[8], to_apply=%add",
       "all-reduce", 2 * 128 * 3 / 4.0, 4},
      {"sums, combined and begun",
       "  %s = (f32[8,4]{1,0}, bf16[16]{0}) all-reduce-start(%p, %q), replica_groups=[4,2]<=[2,4]T(1,0), to_apply=%add",
       "all-reduce", 2 * (128 + 32) / 2.0, 2},
      {"ended", "  %d = f32[8,4]{1,0} all-reduce-done(%s)", ""},
      {"gather", "  %ag = f32[8,4]{1,0} all-gather(f32[2,4] %p), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}",
       "all-gather", 96, 4},
      {"gather, begun",
       "  %s = (f32[2,4]{1,0}, f32[8,4]{1,0}) all-gather-start(%p), replica_groups={{0,1,2,3},{4,5,6,7}}, "
       "dimensions={0}",
       "all-gather", 96, 4},
      {"gathers, combined and begun",
       "  %s = ((f32[2,4]{1,0}, bf16[4]{0}), (f32[8,4]{1,0}, bf16[16]{0})) all-gather-start(%p, %q), "
       "replica_groups=[2,4]<=[8], dimensions={0}",
       "all-gather", 96 + 24, 4},
      {"gather ended", "  ROOT %d = f32[8,4]{1,0} all-gather-done(%s)", ""},
      {"scatter",
       "  %rs = f32[2,4]{1,0} reduce-scatter(f32[8,4] %p), replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add",
       "reduce-scatter", 96, 4},
      {"scatter, begun",
       "  %s = ((f32[8,4]{1,0}), f32[2,4]{1,0}) reduce-scatter-start(%p), replica_groups=[2,4]<=[8], to_apply=%add",
       "reduce-scatter", 96, 4},
      {"scatter, begun, with a counter",
       "  %s = ((f32[8,4]{1,0}), f32[2,4]{1,0}, u32[]) reduce-scatter-start(%p), replica_groups=[2,4]<=[8], "
       "to_apply=%add",
       "reduce-scatter", 96, 4},
      {"exchange", "  %a = f32[8,4]{1,0} all-to-all(%p), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}",
       "all-to-all", 96, 4},
      {"exchange, begun",
       "  %s = ((f32[8,4]{1,0}), f32[8,4]{1,0}) all-to-all-start(%p), replica_groups={{0,1,2,3},{4,5,6,7}}",
       "all-to-all", 96, 4},
      {"permute", "  %c = f32[8,4]{1,0} collective-permute(%p), source_target_pairs={{0,1},{1,0}}", "permute", 128, 2},
      {"permute, begun",
       "  %c = (f32[8,4]{1,0}, f32[8,4]{1,0}) collective-permute-start(%p), source_target_pairs={{0,1},{1,0}}",
       "permute", 128, 2},
      {"permute, begun, with counters",
       "  %c = (f32[8,4]{1,0:S(1)}, f32[8,4]{1,0:S(1)}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(%p), "
       "source_target_pairs={{0,1},{1,0}}",
       "permute", 128, 2},
      {"axes of a mesh", "  %ar = f32[8,4]{1,0} all-reduce(%p), replica_groups=mesh['a'=2,'b'=4] {'a'}, to_apply=%add",
       "all-reduce", 128, 2},
      {"eight bits", "  %ag = f8e4m3fn[64]{0} all-gather(%p), replica_groups=[4,2]<=[8], dimensions={0}", "all-gather",
       32, 2},
      {"begun of another kind", "  %s = ((f32[8,4]{1,0}), f32[8,4]{1,0}) async-start(%p), calls=%wrapped", ""},
      {"alone", "  %ar = f32[8,4]{1,0} all-reduce(%p), replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}", ""},
  };
  return all;
}

}  // namespace

class CompiledTextTest : public QObject {
  Q_OBJECT

  static QByteArray run(const QByteArray& text, QByteArray& error) {
    QProcess python;
    const std::string program = std::string(compiled_text_part()) +
                                "\nimport json, sys\nfor line in sys.stdin.read().splitlines():\n    "
                                "print(json.dumps(collectives_of(line, 8)))\n";
    python.start(QStringLiteral("python3"), {QStringLiteral("-c"), QString::fromStdString(program)});
    if (!python.waitForStarted()) return {};
    python.write(text);
    python.closeWriteChannel();
    python.waitForFinished(60000);
    error = python.readAllStandardError();
    return python.readAllStandardOutput();
  }

 private slots:
  void initTestCase() {
    if (QStandardPaths::findExecutable(QStringLiteral("python3")).isEmpty()) QSKIP("there is no python3 here");
  }

  void by_hand() {
    QByteArray text, error;
    for (const Line& line : lines()) text += QByteArray(line.text) + '\n';
    const QList<QByteArray> said = run(text, error).trimmed().split('\n');
    QVERIFY2(error.isEmpty(), error.constData());
    QCOMPARE(said.size(), qsizetype(lines().size()));
    for (std::size_t i = 0; i < lines().size(); ++i) {
      const Line& line = lines()[i];
      const json found = json::parse(said[qsizetype(i)].toStdString());
      if (*line.kind == '\0') {
        QVERIFY2(found.empty(), line.name);
        continue;
      }
      QVERIFY2(found.size() == 1, line.name);
      QVERIFY2(found[0]["kind"] == line.kind, line.name);
      QVERIFY2(
          std::abs(found[0]["bytes"].get<double>() - line.bytes) < 1e-9,
          qPrintable(
              QStringLiteral("%1: %2, not %3").arg(line.name).arg(found[0]["bytes"].get<double>()).arg(line.bytes)));
      QVERIFY2(found[0]["groups"][0].size() == line.members, line.name);
    }
  }

  // What is not known is an error, and no count of nothing.
  void unknown_spellings_are_refused() {
    for (const char* text : {"  %ar = f32[8] all-reduce(%p), replica_groups=everyone, to_apply=%add\n",
                             "  %ag = e9[64]{0} all-gather(%p), replica_groups=[4,2]<=[8]\n"}) {
      QByteArray error;
      run(text, error);
      QVERIFY2(error.contains("not known here"), text);
    }
  }
};

QTEST_GUILESS_MAIN(CompiledTextTest)
#include "compiled_text_test.moc"
