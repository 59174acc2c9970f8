// SPDX-License-Identifier: Apache-2.0
#include "app/figures_store.h"

#include <QCryptographicHash>
#include <QDir>
#include <QFile>
#include <QSaveFile>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/carried_answers.h"
#include "app/kept_answers.h"
#include "core/base/json.h"
#include "views/frontier/chart_data.h"

namespace turnpoint::app {

namespace {

constexpr qint64 kLargestFile = qint64(16) << 20;

}  // namespace

ResultPtr thinned(const Result& result) {
  auto thin = std::make_shared<Result>(result);
  thin->plans = nullptr;
  thin->turning_point.reset();
  thin->near_best.reset();
  const auto& points = result.points;
  const auto fastest = result.fastest_that_fits();
  std::vector<ResultPoint> kept;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool named =
        i == 0 || i + 1 == points.size() || result.turning_point == i || result.near_best == i || fastest == i;
    const bool told = !kept.empty() && views::told_apart(points[i], kept.back());
    if (!named && !told) continue;
    if (result.turning_point == i) thin->turning_point = kept.size();
    if (result.near_best == i) thin->near_best = kept.size();
    kept.push_back(points[i]);
  }
  kept.shrink_to_fit();
  thin->points = std::move(kept);  // with the room of what was left out it would be ten times as large
  return thin;
}

FiguresStore::FiguresStore(QString folder, std::int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

QString FiguresStore::path_of(const std::string& question) const {
  const QByteArray name =
      QCryptographicHash::hash(QByteArray::fromStdString(question), QCryptographicHash::Sha256).toHex();
  return folder_ + u'/' + QString::fromLatin1(name) + QStringLiteral(".json");
}

void FiguresStore::remember(const std::string& question, ResultPtr figures) {
  const auto forget = [this](std::list<Entry>::iterator entry) {
    bytes_ -= bytes_of(*entry->figures);
    places_.erase(entry->question);
    entries_.erase(entry);
  };
  if (const auto at = places_.find(question); at != places_.end()) forget(at->second);
  bytes_ += bytes_of(*figures);
  entries_.push_front({question, std::move(figures)});
  places_[question] = entries_.begin();
  while (bytes_ > kMostInMemory && entries_.size() > 1) forget(std::prev(entries_.end()));
}

void FiguresStore::lend(const std::string& question, ResultPtr figures) {
  const std::lock_guard lock(mutex_);
  remember(question, std::move(figures));
}

void FiguresStore::keep(const std::string& question, const ResultPtr& answer) {
  if (!can_be_carried(*answer)) return;
  const ResultPtr figures = thinned(*answer);
  const std::lock_guard lock(mutex_);
  remember(question, figures);
  if (folder_.isEmpty() || !QDir().mkpath(folder_)) return;
  QSaveFile file(path_of(question));
  if (!file.open(QIODevice::WriteOnly)) return;
  file.write(QByteArray::fromStdString(write_answer({question, figures}).dump()));
  if (file.commit()) make_room();
}

void FiguresStore::make_room() const {
  std::int64_t bytes = 0;
  for (const QFileInfo& file : QDir(folder_).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Time)) {
    bytes += file.size();  // newest first
    if (bytes > most_bytes_) QFile::remove(file.filePath());
  }
}

ResultPtr FiguresStore::find(const std::string& question) {
  const std::lock_guard lock(mutex_);
  if (const auto at = places_.find(question); at != places_.end()) {
    entries_.splice(entries_.begin(), entries_, at->second);
    return at->second->figures;
  }
  if (folder_.isEmpty()) return nullptr;
  QFile file(path_of(question));
  if (!file.exists() || file.size() > kLargestFile || !file.open(QIODevice::ReadOnly)) return nullptr;
  const std::string path = file.fileName().toStdString();
  const auto document = parse_json(file.readAll().toStdString(), path);
  const auto answer = document ? read_answer(*document, path) : Expected<CarriedAnswer>(document.error());
  if (!answer || !answer->result || answer->question != question) {
    file.remove();
    return nullptr;
  }
  remember(question, answer->result);
  return answer->result;
}

}  // namespace turnpoint::app
