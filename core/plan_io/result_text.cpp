// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/result_text.h"

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/parallel.h"
#include "core/plan_io/result_parts.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::size_t kPiece = std::size_t(1) << 20;  ///< bytes that are collected before they go to the sink
constexpr std::size_t kAskedEvery = 1024;             ///< short entries between two looks at the stop token
constexpr std::size_t kPlansAtOnce = 4;               ///< unrolled for each thread before they are written
constexpr std::size_t kFewPlans = 64, kSampledPlans = 8;

/// As it stands inside a document that is indented by one, `depth` levels down. A text of JSON has no line breaks but
/// those of its layout.
void append_value(std::string& out, const json& value, std::size_t depth) {
  const std::string text = value.dump(1);
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size() - 1) + 1;
    out.append(text, from, end - from);
    if (text[end - 1] == '\n') out.append(depth, ' ');
    from = end;
  }
}

class DocumentWriter {
 public:
  DocumentWriter(const TextSink& sink, const RunContext& context, std::size_t plans)
      : sink_(sink), context_(context), pool_(plans > 1 ? context.threads : 1), plans_(plans) {}

  Expected<void> object(const Result& result, const WrittenPlans& wanted, std::size_t depth) {
    const ResultParts parts = result_parts(result, wanted.at_most > 0);
    bool first = true;
    for (const auto& [key, value] : parts.head->items()) {
      text_ += first ? "{\n" : ",\n";
      first = false;
      text_.append(depth + 1, ' ').append(json(key).dump()).append(": ");
      const auto list = parts.lists.find(key);
      if (list == parts.lists.end()) {
        append_value(text_, value, depth + 1);
        continue;
      }
      const auto written = key == "plans" ? plans(list->second, points_with_plans(result, wanted.at_most), depth + 1)
                                          : entries(list->second, depth + 1);
      if (!written) return written.error();
    }
    text_.append("\n").append(depth, ' ').append("}");
    return {};
  }

  void raw(std::string_view text) { text_ += text; }

  Expected<void> flush() {
    if (text_.empty()) return {};
    auto written = sink_(text_);
    text_.clear();
    return written;
  }

 private:
  void begin_entry(std::string& out, std::size_t index, std::size_t depth) const {
    out.append(index == 0 ? "[\n" : ",\n").append(depth + 1, ' ');
  }
  void end_list(std::size_t count, std::size_t depth) {
    if (count == 0)
      text_ += "[]";
    else
      text_.append("\n").append(depth, ' ').append("]");
  }

  Expected<void> entries(const ResultParts::List& list, std::size_t depth) {
    for (std::size_t i = 0; i < list.count; ++i) {
      if (i % kAskedEvery == 0 && context_.cancelled()) return cancelled_error();
      begin_entry(text_, i, depth);
      append_value(text_, list.at(i), depth + 1);
      if (text_.size() < kPiece) continue;
      if (auto written = flush(); !written) return written.error();
    }
    end_list(list.count, depth);
    return {};
  }

  // While plans of a batch are made, one thread writes those of the batch before.
  Expected<void> plans(const ResultParts::List& list, const std::vector<std::size_t>& chosen, std::size_t depth) {
    const std::size_t batch = kPlansAtOnce * static_cast<std::size_t>(pool_.threads());
    std::vector<std::string> made(batch), before;
    std::size_t next = 0;  // entry of the list
    for (std::size_t first = 0; first < chosen.size(); first += batch) {
      const auto points = std::span(chosen).subspan(first, std::min(batch, chosen.size() - first));
      Expected<void> written;
      std::vector<std::size_t> begins(points.size());
      for (std::size_t i = 0; i < points.size(); ++i) begins[i] = i == 0 ? next : points[i - 1] + 1;
      pool_.for_each(points.size() + 1, [&](std::size_t i, int) {
        if (i == 0) {
          written = write_all(before);
        } else if (!context_.cancelled()) {
          std::string& text = made[i - 1];
          without_plans(text, begins[i - 1], points[i - 1], depth);
          begin_entry(text, points[i - 1], depth);
          append_value(text, list.at(points[i - 1]), depth + 1);
        }
      });
      if (!written) return written.error();
      if (context_.cancelled()) return cancelled_error();
      std::swap(made, before);
      for (std::string& text : made) text.clear();
      made.resize(batch);
      next = points.back() + 1;
      done_ += points.size();
      context_.report("writing plans", static_cast<double>(done_) / static_cast<double>(plans_));
    }
    if (auto written = write_all(before); !written) return written.error();
    without_plans(text_, next, list.count, depth);
    end_list(list.count, depth);
    return {};
  }

  void without_plans(std::string& out, std::size_t from, std::size_t to, std::size_t depth) const {
    for (std::size_t i = from; i < to; ++i) {
      begin_entry(out, i, depth);
      out += "null";
    }
  }

  Expected<void> write_all(const std::vector<std::string>& texts) {
    if (auto written = flush(); !written) return written.error();
    for (const std::string& text : texts)
      if (!text.empty())
        if (auto written = sink_(text); !written) return written.error();
    return {};
  }

  const TextSink& sink_;
  const RunContext& context_;
  ThreadPool pool_;
  std::string text_;
  std::size_t done_ = 0, plans_;
};

std::size_t plan_count(const std::vector<ResultPtr>& results, const WrittenPlans& plans) {
  std::size_t count = 0;
  for (const auto& result : results)
    if (result->plans) count += std::min(plans.at_most, result->points.size());
  return count;
}

}  // namespace

std::vector<std::size_t> points_with_plans(const Result& result, std::size_t at_most) {
  const std::size_t points = result.points.size(), count = std::min(at_most, points);
  std::vector<std::size_t> chosen(count);
  if (count == points) {
    for (std::size_t i = 0; i < count; ++i) chosen[i] = i;
    return chosen;
  }
  if (count == 0) return chosen;
  const std::optional<std::size_t> asked[] = {result.turning_point, result.fastest_that_fits(), 0, points - 1,
                                              result.near_best};
  std::vector<std::size_t> fixed;
  for (const auto& point : asked)
    if (point && fixed.size() < count && std::find(fixed.begin(), fixed.end(), *point) == fixed.end())
      fixed.push_back(*point);
  for (std::size_t i = 0; i < count; ++i)
    chosen[i] = count == 1 ? fixed[0] : (i * (points - 1) + (count - 1) / 2) / (count - 1);
  // Each takes the place of the nearest that is not fixed itself.
  const auto is_fixed = [&](std::size_t p) { return std::find(fixed.begin(), fixed.end(), p) != fixed.end(); };
  for (const std::size_t point : fixed) {
    if (std::find(chosen.begin(), chosen.end(), point) != chosen.end()) continue;
    std::size_t* nearest = nullptr;
    const auto distance = [&](std::size_t p) { return p > point ? p - point : point - p; };
    for (std::size_t& one : chosen)
      if (!is_fixed(one) && (!nearest || distance(one) < distance(*nearest))) nearest = &one;
    assert(nearest);  // there are as many as may be fixed
    *nearest = point;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

double estimated_plan_bytes(const std::vector<ResultPtr>& results, const WrittenPlans& plans) {
  double bytes = 0;
  for (const auto& result : results) {
    const auto points = result->plans ? points_with_plans(*result, plans.at_most) : std::vector<std::size_t>();
    if (points.size() < kFewPlans) continue;
    const ResultParts parts = result_parts(*result, true);
    std::string text;
    for (std::size_t i = 0; i < kSampledPlans; ++i)
      append_value(text, parts.lists.at("plans").at(points[i * (points.size() - 1) / (kSampledPlans - 1)]), 2);
    bytes += static_cast<double>(text.size()) / kSampledPlans * static_cast<double>(points.size());
  }
  return bytes;
}

Expected<void> write_results_text(const std::vector<ResultPtr>& results, bool as_list, const WrittenPlans& plans,
                                  const TextSink& sink, const RunContext& context) {
  assert(as_list || results.size() == 1);
  DocumentWriter writer(sink, context, plan_count(results, plans));
  if (!as_list) {
    if (auto written = writer.object(*results.front(), plans, 0); !written) return written.error();
  } else {
    writer.raw(std::string("{\n \"format\": \"") + kResultsFormat + "\",\n \"results\": ");
    for (std::size_t i = 0; i < results.size(); ++i) {
      writer.raw(i == 0 ? "[\n  " : ",\n  ");
      if (auto written = writer.object(*results[i], plans, 2); !written) return written.error();
    }
    writer.raw(results.empty() ? "[]\n}" : "\n ]\n}");
  }
  writer.raw("\n");
  return writer.flush();
}

}  // namespace turnpoint
