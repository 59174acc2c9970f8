// SPDX-License-Identifier: Apache-2.0
#include "app/carried_answers.h"

#include <QByteArray>
#include <QCryptographicHash>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/plan_io/told_json.h"
#include "core/search/registry.h"

namespace turnpoint::app {

namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "figures are written as they lie in memory");

#ifndef TURNPOINT_VERSION
#define TURNPOINT_VERSION "0.1.0"
#endif
/// Raised when searches of the same question may answer otherwise than before.
constexpr const char* kAnswerVersion = TURNPOINT_VERSION " 12";
constexpr std::size_t kMostCarried = 1'000'000;
constexpr int kPointFigures = 4, kBoundFigures = 2, kSumBytes = 8;

/// Damage is found before the block is unpacked: a message about it belongs to the file, not to a library.
QByteArray check_sum(const QByteArray& block) {
  return QCryptographicHash::hash(block, QCryptographicHash::Sha256).first(kSumBytes);
}

std::string packed(const std::vector<double>& figures) {
  const QByteArray raw(reinterpret_cast<const char*>(figures.data()), qsizetype(figures.size() * sizeof(double)));
  const QByteArray block = qCompress(raw, 1);
  return (check_sum(block) + block).toBase64().toStdString();
}

/// Nothing where it is no list of `per` finite figures each.
std::optional<std::vector<double>> unpacked(const std::string& text, std::size_t count, int per) {
  const auto raw = QByteArray::fromBase64Encoding(QByteArray::fromStdString(text),
                                                  QByteArray::Base64Encoding | QByteArray::AbortOnBase64DecodingErrors);
  if (!raw || raw.decoded.size() < kSumBytes + 4) return std::nullopt;
  const QByteArray block = raw.decoded.sliced(kSumBytes);
  if (raw.decoded.first(kSumBytes) != check_sum(block)) return std::nullopt;
  // The length that the block itself promises is looked at before it is allocated.
  std::uint32_t promised = 0;
  for (int i = 0; i < 4; ++i) promised = promised << 8 | std::uint8_t(block[i]);
  if (promised != count * std::size_t(per) * sizeof(double)) return std::nullopt;
  const QByteArray whole = qUncompress(block);
  if (std::size_t(whole.size()) != promised) return std::nullopt;
  std::vector<double> figures(count * std::size_t(per));
  std::memcpy(figures.data(), whole.constData(), promised);
  for (const double figure : figures)
    if (!std::isfinite(figure) || figure < 0 || figure > 9e18) return std::nullopt;
  return figures;
}

}  // namespace

bool can_be_carried(const Result& result) {
  return result.clock == Clock::additive && !result.points.empty() && result.points.size() <= kMostCarried &&
         result.lower_bound.size() <= kMostCarried;
}

json write_answer(const CarriedAnswer& answer) {
  const Result& result = *answer.result;
  std::vector<double> points, bound;
  for (const ResultPoint& p : result.points)
    points.insert(points.end(), {static_cast<double>(p.memory_bytes), p.time_s, p.compute_s, p.network_s});
  for (const frontier::CostPoint& b : result.lower_bound)
    bound.insert(bound.end(), {static_cast<double>(b.memory), b.time});
  json object = {{"version", kAnswerVersion},
                 {"question", answer.question},
                 {"method", result.method},
                 {"method_options", result.method_options},
                 {"exact", result.exact},
                 {"search_s", result.search_s},
                 {"several", result.near_best.has_value()},
                 {"count", result.points.size()},
                 {"points", packed(points)},
                 {"bounds", result.lower_bound.size()},
                 {"bound", packed(bound)}};
  write_told(result, object);
  if (result.gap) object["gap"] = *result.gap;
  if (std::isfinite(result.slowest_considered_s)) object["slowest_considered_s"] = result.slowest_considered_s;
  return object;
}

Expected<CarriedAnswer> read_answer(const json& object, const std::string& where) {
  JsonFields fields(object, where);
  CarriedAnswer answer;
  answer.question = fields.text("question");
  const std::string version = fields.text("version");
  if (fields.error()) return *fields.error();
  if (version != kAnswerVersion) return answer;
  auto result = std::make_shared<Result>();
  result->method = fields.text("method");
  result->method_options = fields.text("method_options", std::string());
  result->traits = traits_of(result->method, result->method_options);
  result->exact = fields.flag("exact", false);
  result->search_s = fields.number("search_s", 0, 1e30, 0);
  if (fields.has("gap")) result->gap = fields.number("gap", 0, 1e30);
  if (fields.has("slowest_considered_s")) result->slowest_considered_s = fields.number("slowest_considered_s", 0, 1e30);
  const auto count = static_cast<std::size_t>(fields.integer("count", 1, kMostCarried));
  const auto bounds = static_cast<std::size_t>(fields.integer("bounds", 0, kMostCarried, 0));
  const std::string points = fields.text("points"), bound = fields.text("bound", std::string());
  const bool several = fields.flag("several", false);
  if (fields.error()) return *fields.error();
  const auto figures = unpacked(points, count, kPointFigures);
  const auto lower = bounds > 0 ? unpacked(bound, bounds, kBoundFigures) : std::vector<double>();
  if (!figures || !lower) return bad_input("the figures of an answer are damaged", where);
  for (std::size_t i = 0; i < count; ++i) {
    const double* at = figures->data() + i * kPointFigures;
    result->points.push_back({static_cast<std::int64_t>(at[0]), at[1], at[2], at[3]});
    if (i > 0 && result->points[i - 1].memory_bytes > result->points[i].memory_bytes)
      return bad_input("the points of an answer do not rise in memory", where);
  }
  for (std::size_t i = 0; i < bounds; ++i)
    result->lower_bound.push_back({static_cast<std::int64_t>((*lower)[2 * i]), (*lower)[2 * i + 1]});
  read_told(object, *result);
  if (several) result->near_best = 0;  // to be found anew with what fits
  answer.result = std::move(result);
  return answer;
}

}  // namespace turnpoint::app
