// SPDX-License-Identifier: Apache-2.0
// turnpoint/frontier-problem@1 and turnpoint/frontier@1 as JSON (resources/manual/formats.md).
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/frontier/problem.h"

namespace turnpoint::frontier {

namespace {

using nlohmann::json;

constexpr const char* kProblemFormat = "turnpoint/frontier-problem@1";
constexpr const char* kAnswerFormat = "turnpoint/frontier@1";
constexpr std::size_t kMaxPoints = std::size_t(1) << 31;  // offsets of a CostTable have 32 bits

class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  Expected<Problem> read(const json& document) {
    if (!document.is_object()) return fail("is not a JSON object");
    const auto format = document.find("format");
    if (format == document.end() || !format->is_string()) return fail("has no \"format\"");
    if (*format != kProblemFormat)
      return fail("has the format \"" + format->get<std::string>() + "\", not \"" + kProblemFormat + "\"");
    const auto nodes = document.find("nodes"), edges = document.find("edges");
    if (nodes == document.end() || !nodes->is_array()) return fail("has no \"nodes\" array");
    if (edges != document.end() && !edges->is_array()) return fail("\"edges\" is not an array");
    Problem problem;
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      place_ = "node " + std::to_string(i);
      if (auto ok = node((*nodes)[i], problem); !ok) return ok.error();
    }
    for (std::size_t k = 0; edges != document.end() && k < edges->size(); ++k) {
      place_ = "edge " + std::to_string(k);
      if (auto ok = edge((*edges)[k], problem); !ok) return ok.error();
    }
    if (auto ok = validate(problem); !ok) {
      Error error = ok.error();
      error.where = where_.empty() ? error.where : where_ + ": " + error.where;
      return error;
    }
    return problem;
  }

 private:
  Error fail(const std::string& what) const {
    return bad_input(what, where_ + (where_.empty() || place_.empty() ? "" : ": ") + place_);
  }

  Expected<void> node(const json& value, Problem& problem) {
    if (!value.is_object()) return fail("is not an object");
    Node node;
    if (const auto name = value.find("name"); name != value.end()) {
      if (!name->is_string()) return fail("\"name\" is not a string");
      node.name = name->get<std::string>();
      place_ += " '" + node.name + "'";
    }
    const auto costs = value.find("costs");
    if (costs == value.end() || !costs->is_array()) return fail("has no \"costs\" array");
    for (std::size_t c = 0; c < costs->size(); ++c)
      if (auto ok = entry((*costs)[c], node.costs, "configuration " + std::to_string(c)); !ok) return ok;
    problem.nodes.push_back(std::move(node));
    return {};
  }

  Expected<void> edge(const json& value, Problem& problem) {
    if (!value.is_object()) return fail("is not an object");
    Edge edge;
    for (const auto& [key, end] : {std::pair<const char*, std::uint32_t*>{"from", &edge.from}, {"to", &edge.to}}) {
      const auto found = value.find(key);
      if (found == value.end() || !found->is_number_integer())
        return fail(std::string("has no integer \"") + key + "\"");
      if (*found < 0 || *found >= problem.nodes.size())
        return fail(std::string("\"") + key + "\" names node " + found->dump() + ", there are " +
                    std::to_string(problem.nodes.size()));
      *end = found->get<std::uint32_t>();
    }
    if (edge.from == edge.to) return fail("joins node " + std::to_string(edge.from) + " to itself");
    const auto costs = value.find("costs");
    if (costs == value.end() || !costs->is_array()) return fail("has no \"costs\" array");
    const auto from_class = value.find("from_class"), to_class = value.find("to_class");
    const bool classes = from_class != value.end();
    if (classes != (to_class != value.end())) return fail("has only one of \"from_class\" and \"to_class\"");
    const std::size_t from_count = problem.nodes[edge.from].costs.size(),
                      to_count = problem.nodes[edge.to].costs.size();
    edge.rows = static_cast<std::uint32_t>(costs->size());
    if (!classes && costs->size() != from_count)
      return fail("has " + std::to_string(costs->size()) + " rows of costs for " + std::to_string(from_count) +
                  " configurations");
    for (std::size_t r = 0; r < costs->size(); ++r) {
      const json& row = (*costs)[r];
      const std::string place = "row " + std::to_string(r);
      if (!row.is_array()) return fail(place + " is not an array");
      if (r == 0) edge.columns = static_cast<std::uint32_t>(row.size());
      const std::size_t wanted = classes ? edge.columns : to_count;
      if (row.size() != wanted)
        return fail(place + " has " + std::to_string(row.size()) + " entries, not " + std::to_string(wanted) +
                    " (ragged table)");
      for (std::size_t c = 0; c < row.size(); ++c)
        if (auto ok = entry(row[c], edge.costs, place + ", column " + std::to_string(c)); !ok) return ok;
    }
    if (classes) {
      if (auto ok = read_classes(*from_class, "from_class", edge.from_class); !ok) return ok;
      if (auto ok = read_classes(*to_class, "to_class", edge.to_class); !ok) return ok;
    } else {
      for (std::uint32_t i = 0; i < from_count; ++i) edge.from_class.push_back(i);
      for (std::uint32_t i = 0; i < to_count; ++i) edge.to_class.push_back(i);
    }
    problem.edges.push_back(std::move(edge));
    return {};
  }

  Expected<void> read_classes(const json& value, const char* key, std::vector<std::uint32_t>& out) {
    if (!value.is_array()) return fail(std::string("\"") + key + "\" is not an array");
    for (const json& c : value) {
      if (!c.is_number_integer() || c < 0 || c > std::numeric_limits<std::uint32_t>::max())
        return fail(std::string("\"") + key + "\" holds " + c.dump() + ", not a class number");
      out.push_back(c.get<std::uint32_t>());
    }
    return {};
  }

  /// One pair, a list of pairs, or an empty list.
  Expected<void> entry(const json& value, CostTable& table, const std::string& place) {
    if (!value.is_array()) return fail(place + " is not a cost entry");
    list_.clear();
    if (!value.empty() && !value[0].is_array()) {
      if (auto ok = pair(value, place); !ok) return ok;
    } else {
      for (const json& alternative : value)
        if (auto ok = pair(alternative, place); !ok) return ok;
    }
    points_ += list_.size();
    if (points_ > kMaxPoints) return fail("more than 2^31 cost pairs");
    table.add(list_);
    return {};
  }

  Expected<void> pair(const json& value, const std::string& place) {
    if (!value.is_array() || value.size() != 2) return fail(place + " is not a [memory, time] pair");
    const json &memory = value[0], &time = value[1];
    CostPoint point;
    if (memory.is_number_unsigned() && memory.get<std::uint64_t>() > std::uint64_t(1) << 53)
      return fail(place + ": memory " + memory.dump() + " is above 2^53");
    if (memory.is_number_integer()) {
      point.memory = memory.get<std::int64_t>();
    } else {
      const double number = memory.is_number_float() ? memory.get<double>() : std::nan("");
      if (!(std::abs(number) <= 9007199254740992.0)) {
        return fail(place + ": memory " + memory.dump() + (number > 0 ? " is above 2^53" : " is not an integer"));
      }
      if (number != std::floor(number)) return fail(place + ": memory " + memory.dump() + " is not an integer");
      point.memory = static_cast<std::int64_t>(number);
    }
    if (point.memory < 0) return fail(place + ": memory " + memory.dump() + " is negative");
    if (!time.is_number()) return fail(place + ": time " + time.dump() + " is not a number");
    point.time = time.get<double>();
    if (!std::isfinite(point.time)) return fail(place + ": time is not a finite number");
    if (point.time < 0) return fail(place + ": time " + time.dump() + " is negative");
    list_.push_back(point);
    return {};
  }

  std::string where_, place_;
  std::vector<CostPoint> list_;
  std::size_t points_ = 0;
};

json entry_json(std::span<const CostPoint> alternatives) {
  json list = json::array();
  for (const CostPoint& p : alternatives) list.push_back(json::array({p.memory, p.time}));
  return list.size() == 1 ? list[0] : list;
}

bool identity(const std::vector<std::uint32_t>& classes, std::uint32_t count) {
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != i) return false;
  return classes.size() == count;
}

}  // namespace

Expected<Problem> read_problem(const json& document, const std::string& where) { return Reader(where).read(document); }

json write_problem(const Problem& problem) {
  json nodes = json::array(), edges = json::array();
  for (const Node& node : problem.nodes) {
    json costs = json::array();
    for (std::size_t c = 0; c < node.costs.size(); ++c) costs.push_back(entry_json(node.costs[c]));
    nodes.push_back({{"name", node.name}, {"costs", std::move(costs)}});
  }
  for (const Edge& edge : problem.edges) {
    json costs = json::array();
    for (std::size_t r = 0; r < edge.rows; ++r) {
      json row = json::array();
      for (std::size_t c = 0; c < edge.columns; ++c) row.push_back(entry_json(edge.costs[r * edge.columns + c]));
      costs.push_back(std::move(row));
    }
    json out = {{"from", edge.from}, {"to", edge.to}, {"costs", std::move(costs)}};
    if (!identity(edge.from_class, edge.rows) || !identity(edge.to_class, edge.columns)) {
      out["from_class"] = edge.from_class;
      out["to_class"] = edge.to_class;
    }
    edges.push_back(std::move(out));
  }
  return {{"format", kProblemFormat}, {"nodes", std::move(nodes)}, {"edges", std::move(edges)}};
}

json write_answer(const Answer& answer, double search_s) {
  json points = json::array();
  for (const Point& p : answer.points)
    points.push_back({{"memory", p.memory}, {"time", p.time}, {"configs", p.configs}});
  json out = {{"format", kAnswerFormat},
              {"exact", answer.exact},
              {"gap", answer.certified ? json(answer.gap) : json(nullptr)},
              {"search_s", search_s},
              {"points", std::move(points)}};
  if (answer.heuristic_eliminations) out["heuristic_eliminations"] = *answer.heuristic_eliminations;
  if (!answer.exact && answer.certified) {
    json bound = json::array();
    for (const CostPoint& p : answer.lower_bound) bound.push_back({{"memory", p.memory}, {"time", p.time}});
    out["lower_bound"] = std::move(bound);
  }
  return out;
}

}  // namespace turnpoint::frontier
