// SPDX-License-Identifier: Apache-2.0
#include "app/file_kind.h"

#include <QFile>
#include <QObject>

#include "core/import/files/foreign_file.h"
#include "core/import/files/training_settings.h"

namespace turnpoint::app {

namespace {

constexpr int kSniff_bytes = 4096;

/// Settings of a framework are told by keys that may stand anywhere, and are no larger than this.
constexpr int kSettings_bytes = 1 << 16;

QByteArray head_of(const QString& path, int bytes = kSniff_bytes) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.read(bytes) : QByteArray();
}

bool is_log_by_name(const QString& path) {
  // Models are binary, or JSON and protobuf texts that no measuring program writes.
  for (const char* suffix : {".log", ".csv", ".xml", ".txt"})
    if (path.endsWith(QLatin1String(suffix), Qt::CaseInsensitive)) return true;
  return false;
}

}  // namespace

FileKind kind_of_file(const QString& path) {
  const QByteArray head = head_of(path);
  if (head.isEmpty()) return FileKind::model;
  if (head.contains("turnpoint/validation@") || head.contains("turnpoint/validations@")) return FileKind::report;
  if (head.contains("turnpoint/session@") || path.endsWith(QStringLiteral(".turnpoint"))) return FileKind::session;
  if (head.contains("turnpoint/hardware-profile@")) return FileKind::hardware;
  // PipeDream's profiles: "node1 -- Input0 -- ...".
  if (head.startsWith("node") && head.contains(" -- ")) return FileKind::model;
  const QByteArray more = head_of(path, kSettings_bytes + 1);
  if (more.size() <= kSettings_bytes && is_training_settings({more.data(), std::size_t(more.size())}))
    return FileKind::settings;
  return is_log_by_name(path) ? FileKind::log : FileKind::model;
}

QString describe_file(const QString& path) {
  const QByteArray head = head_of(path);
  const struct {
    const char* sign;
    QString words;
  } known[] = {{"turnpoint/hardware-profile@", QObject::tr("a hardware profile")},
               {"turnpoint/session@", QObject::tr("a session")},
               {"turnpoint/validation", QObject::tr("a validation report")},
               {"turnpoint/result", QObject::tr("the result of a search")},
               {"turnpoint/plan@", QObject::tr("a plan")},
               {"turnpoint/placement@", QObject::tr("a placement")},
               {"turnpoint/task-graph@", QObject::tr("a task graph, which is opened as a model")},
               {"turnpoint/frontier", QObject::tr("a frontier problem or its answer")},
               {"\"model_type\"", QObject::tr("a model's config.json, which is opened as a model")},
               {"\"architectures\"", QObject::tr("a model's config.json, which is opened as a model")},
               {"\"traceEvents\"", QObject::tr("a trace")},
               {"\"tasks\"", QObject::tr("a task graph, which is opened as a model")}};
  for (const auto& kind : known)
    if (head.contains(kind.sign)) return kind.words;
  if (kind_of_file(path) == FileKind::settings) return QObject::tr("the settings of a training framework");
  if (const auto foreign = foreign_kind({head.data(), std::size_t(head.size())}))
    return QString::fromStdString(foreign->what);
  if (path.endsWith(QStringLiteral(".onnx"), Qt::CaseInsensitive)) return QObject::tr("an ONNX model");
  if (path.endsWith(QStringLiteral(".pt2"), Qt::CaseInsensitive)) return QObject::tr("a program of torch.export");
  if (path.endsWith(QStringLiteral(".pb"), Qt::CaseInsensitive)) return QObject::tr("a TensorFlow graph");
  return {};
}

}  // namespace turnpoint::app
