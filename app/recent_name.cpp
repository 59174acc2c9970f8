// SPDX-License-Identifier: Apache-2.0
#include "app/recent_name.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>

namespace turnpoint::app {

namespace {

constexpr qint64 kMostConfig = 1 << 20;

bool says_nothing(const QString& folder) {
  static const QRegularExpression hash(QStringLiteral("^[0-9a-f]{16,64}$"));
  static const QStringList common{QString(),
                                  QStringLiteral("tmp"),
                                  QStringLiteral("main"),
                                  QStringLiteral("model"),
                                  QStringLiteral("config"),
                                  QStringLiteral("configs"),
                                  QStringLiteral("Downloads")};
  return common.contains(folder) || hash.match(folder).hasMatch();
}

}  // namespace

QString file_of(const QString& specification) {
  const auto mark = specification.lastIndexOf(u'?');
  return mark < 0 || QFileInfo::exists(specification) ? specification : specification.left(mark);
}

QString recent_name(const QString& given) {
  const QString path = file_of(given);
  if (path != given) return recent_name(path) + given.mid(path.size());
  const QFileInfo file(path);
  if (file.fileName() != u"config.json") return file.fileName();
  const QString folder = file.dir().dirName();
  if (!says_nothing(folder)) return folder;
  if (QFile config(path); file.isFile() && file.size() < kMostConfig && config.open(QIODevice::ReadOnly)) {
    const QJsonObject inside = QJsonDocument::fromJson(config.readAll()).object();
    for (const char* key : {"_name_or_path", "model_type"}) {
      const QString name = inside.value(QLatin1String(key)).toString().section(u'/', -1);
      if (!name.isEmpty()) return name;
    }
  }
  return folder + u'/' + file.fileName();
}

}  // namespace turnpoint::app
