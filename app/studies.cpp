// SPDX-License-Identifier: Apache-2.0
#include "app/studies.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>

// In a static library nobody would register it otherwise.
static void init_study_resource() { Q_INIT_RESOURCE(studies); }

namespace turnpoint::app {

namespace {

constexpr Study kStudies[] = {
    {"frontier-rnn", QT_TRANSLATE_NOOP("Studies", "Frontier of the RNN")},
    {"frontier-wide-resnet", QT_TRANSLATE_NOOP("Studies", "Frontier of WideResNet")},
    {"frontier-transformer", QT_TRANSLATE_NOOP("Studies", "Frontier of the Transformer")},
    {"network-bandwidth", QT_TRANSLATE_NOOP("Studies", "Bandwidth between nodes")},
    {"hidden-size", QT_TRANSLATE_NOOP("Studies", "Hidden size")},
    {"nvlink-and-pcie", QT_TRANSLATE_NOOP("Studies", "NVLink against PCIe")},
    {"parallelism-transformer", QT_TRANSLATE_NOOP("Studies", "Devices for the Transformer")},
    {"parallelism-wide-resnet", QT_TRANSLATE_NOOP("Studies", "Devices for WideResNet")},
    {"accpar-arrays", QT_TRANSLATE_NOOP("Studies", "Partitions of unlike and equal arrays")},
    {"sharded-updates", QT_TRANSLATE_NOOP("Studies", "Sharded weight updates")},
    {"pardnn-batches", QT_TRANSLATE_NOOP("Studies", "Batch sizes of the ParDNN study")},
};

const QString kStudyFolder = QStringLiteral(":/studies/");

Expected<std::string> resource_text(const QString& path) {
  static const bool ready = (init_study_resource(), true);
  (void)ready;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly))
    return bad_input("the study is not part of this program", QFileInfo(path).fileName().toStdString());
  return file.readAll().toStdString();
}

}  // namespace

std::span<const Study> studies() { return kStudies; }

QString study_path(const Study& study) {
  return kStudyFolder + QString::fromLatin1(study.file) + QStringLiteral(".turnpoint");
}

bool is_study_path(const QString& path) { return path.startsWith(kStudyFolder); }

Expected<Session> load_study(const QString& path) {
  const auto text = resource_text(path);
  return text ? parse_session(*text, QFileInfo(path).fileName().toStdString()) : Expected<Session>(text.error());
}

Expected<BatchStudy> load_batch_study() {
  const QString name = QStringLiteral("pardnn-batches.json");
  const auto text = resource_text(kStudyFolder + name);
  return text ? read_batch_study(*text, name.toStdString()) : Expected<BatchStudy>(text.error());
}

}  // namespace turnpoint::app
