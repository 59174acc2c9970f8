// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/problem.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "core/search/placement/random.h"

namespace turnpoint::trinity {

std::vector<double> z_scores(std::vector<double> values) {
  const double n = double(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double square = 0;
  for (const double v : values) square += (v - mean) * (v - mean);
  const double deviation = std::sqrt(square / n);
  for (double& v : values) v = deviation > 1e-12 * std::abs(mean) && deviation > 0 ? (v - mean) / deviation : 0;
  return values;
}

std::vector<float> structural_embedding(const UnitGraph& units, std::uint64_t seed) {
  constexpr int kSteps = 4;
  const std::size_t n = units.count();
  placement::Random random(seed ^ 0x7261696C73756E69ull);
  std::vector<double> now(n * kEmbedding), next(n * kEmbedding), degree(n), sum(n * kEmbedding);
  for (double& one : now) {  // +-sqrt(3) for every sixth number each, else 0
    const std::uint32_t side = random.below(6);
    one = side == 0 ? std::sqrt(3.0) : side == 1 ? -std::sqrt(3.0) : 0;
  }
  for (const UnitEdge& edge : units.edges) {
    degree[edge.from] += 1;
    degree[edge.to] += 1;
  }
  const auto length = [](const double* row) {
    double square = 0;
    for (std::size_t j = 0; j < kEmbedding; ++j) square += row[j] * row[j];
    return std::sqrt(square);
  };
  for (int step = 0; step < kSteps; ++step) {
    std::fill(next.begin(), next.end(), 0.0);
    const auto carry = [&](std::uint32_t from, std::uint32_t to) {
      for (std::size_t j = 0; j < kEmbedding; ++j) next[to * kEmbedding + j] += now[from * kEmbedding + j] / degree[to];
    };
    for (const UnitEdge& edge : units.edges) {
      carry(edge.from, edge.to);
      carry(edge.to, edge.from);
    }
    now.swap(next);
    for (std::size_t u = 0; u < n; ++u)
      if (const double l = length(&now[u * kEmbedding]); l > 0)
        for (std::size_t j = 0; j < kEmbedding; ++j) sum[u * kEmbedding + j] += now[u * kEmbedding + j] / l;
  }
  std::vector<float> embedding(n * kEmbedding);
  for (std::size_t u = 0; u < n; ++u) {
    const double l = length(&sum[u * kEmbedding]);
    for (std::size_t j = 0; j < kEmbedding && l > 0; ++j)
      embedding[u * kEmbedding + j] = float(sum[u * kEmbedding + j] / l * std::sqrt(double(kEmbedding)));
  }
  return embedding;
}

TypeWords type_words(const TaskGraph& graph, const UnitGraph& units) {
  const auto word_of = [&](TaskIndex t) {
    std::string word;
    const std::string_view name = graph.names[t];
    const auto slash = name.rfind('/');
    for (const char c : slash == std::string_view::npos ? name : name.substr(slash + 1))
      if (std::isalpha(static_cast<unsigned char>(c))) word += c;
    return word;
  };
  std::vector<TaskIndex> longest(units.count(), kNone);
  std::map<std::string, std::uint32_t> uses;
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    TaskIndex& best = longest[units.of_task[t]];
    if (best == kNone || graph.time_s[t] > graph.time_s[best]) best = t;
  }
  for (const TaskIndex t : longest) ++uses[word_of(t)];
  std::vector<std::pair<std::uint32_t, std::string>> common;
  for (const auto& [word, count] : uses) common.push_back({count, word});
  std::stable_sort(common.begin(), common.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (common.size() > kVocabulary - 1) common.resize(kVocabulary - 1);
  std::map<std::string, std::uint32_t> number;
  for (const auto& [count, word] : common) number.emplace(word, std::uint32_t(number.size() + 1));
  TypeWords made;
  made.count = number.size() + 1;
  for (const TaskIndex t : longest) {
    const auto at = number.find(word_of(t));
    made.of_unit.push_back(at == number.end() ? 0 : at->second);
  }
  return made;
}

Problem make_problem(const TaskGraph& graph, const placement::PlacementRequest& request, std::size_t most_units,
                     std::size_t groups, Joining joining) {
  Problem p{.graph = graph, .units = make_unit_graph(graph, most_units, joining), .joining = joining};
  const std::size_t n = p.units.count();
  p.groups = std::clamp<std::size_t>(groups, 1, n);
  const TypeWords types = type_words(graph, p.units);
  std::vector<double> log_bytes;
  for (const double bytes : p.units.output_bytes) log_bytes.push_back(std::log1p(bytes));
  p.log_output = z_scores(std::move(log_bytes));
  const std::vector<double> time = z_scores(p.units.time_s);
  const std::vector<float> embedding = structural_embedding(p.units, request.seed);
  constexpr int kWaves = 4;  // of the place, from one to eight over the whole line
  p.features.units = n;
  p.features.types = types.count;
  p.features.type = types.of_unit;
  p.features.width = 3 + 2 * kWaves + kEmbedding;
  for (std::size_t u = 0; u < n; ++u) {
    const auto add = [&](double value) { p.features.numbers.push_back(float(value)); };
    add(time[u]);
    add(p.log_output[u]);
    add(2 * p.units.place[u] - 1);
    for (int wave = 0; wave < kWaves; ++wave) {
      const double angle = 3.14159265358979323846 * double(1 << wave) * p.units.place[u];
      add(std::sin(angle));
      add(std::cos(angle));
    }
    for (std::size_t j = 0; j < kEmbedding; ++j) add(embedding[u * kEmbedding + j]);
  }
  std::vector<double> speed, memory;
  for (std::uint32_t d = 0; d < request.devices; ++d) {
    speed.push_back(graph.speed_of(d));
    memory.push_back(std::log2(double(request.limit_of(graph, d))));
  }
  const std::vector<double> speeds = z_scores(speed), memories = z_scores(memory);
  for (std::uint32_t d = 0; d < request.devices; ++d) {
    p.device_features.push_back(float(speeds[d]));
    p.device_features.push_back(float(memories[d]));
  }
  return p;
}

std::vector<float> Problem::group_features(const std::vector<std::uint32_t>& group_of) const {
  const std::size_t width = group_width(), n = units.count(), types = features.types;
  std::vector<float> made(groups * width);
  std::vector<float> members(groups);
  double time = 1e-300, parameters = 1e-300;
  for (std::size_t u = 0; u < n; ++u) {
    members[group_of[u]] += 1;
    time += units.time_s[u];
    parameters += units.persistent_bytes[u];
  }
  for (std::size_t u = 0; u < n; ++u) {
    const std::uint32_t g = group_of[u];
    float* row = made.data() + g * width;
    row[features.type[u]] += 1 / members[g];
    row[types] += float(log_output[u]) / members[g];
    row[types + 1] += float(2 * units.place[u] - 1) / members[g];
    row[types + 2] = members[g] / float(n) * float(groups);
    row[types + 3] += float(units.time_s[u] / time * double(groups));
    row[types + 4] += float(units.persistent_bytes[u] / parameters * double(groups));
  }
  for (const UnitEdge& edge : units.edges) {
    const std::uint32_t from = group_of[edge.from], to = group_of[edge.to];
    if (from == to) continue;
    made[from * width + types + 5 + to] = 1;
    made[to * width + types + 5 + groups + from] = 1;
  }
  return made;
}

std::vector<std::uint32_t> Problem::devices_of(const std::vector<std::uint32_t>& group_of,
                                               const std::vector<std::uint32_t>& device_of_group) const {
  std::vector<std::uint32_t> device(graph.task_count());
  for (TaskIndex t = 0; t < graph.task_count(); ++t) device[t] = device_of_group[group_of[units.of_task[t]]];
  return device;
}

Decided decisions_of(const Problem& problem, std::uint32_t devices, const std::vector<std::uint32_t>& device_of_task) {
  const std::size_t n = problem.units.count(), groups = problem.groups;
  std::vector<double> work(n * devices);
  for (TaskIndex t = 0; t < device_of_task.size(); ++t)
    work[problem.units.of_task[t] * devices + device_of_task[t]] += problem.graph.time_s[t] + 1e-12;
  std::vector<std::vector<std::uint32_t>> of_device(devices);
  std::vector<std::uint32_t> line(n);
  std::iota(line.begin(), line.end(), 0u);
  std::stable_sort(line.begin(), line.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return problem.units.place[a] < problem.units.place[b]; });
  for (const std::uint32_t u : line) {
    const auto row = work.begin() + std::ptrdiff_t(u * devices);
    of_device[std::size_t(std::max_element(row, row + devices) - row)].push_back(u);
  }
  // With fewer groups than devices in use, the devices that have least share the last group.
  std::vector<std::uint32_t> used;
  for (std::uint32_t d = 0; d < devices; ++d)
    if (!of_device[d].empty()) used.push_back(d);
  std::stable_sort(used.begin(), used.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return of_device[a].size() > of_device[b].size(); });
  while (used.size() > groups) {
    auto& from = of_device[used.back()];
    auto& to = of_device[used[groups - 1]];
    to.insert(to.end(), from.begin(), from.end());
    used.pop_back();
  }
  struct Piece {
    double place;
    std::uint32_t device;
    std::vector<std::uint32_t> units;
  };
  std::vector<Piece> pieces;
  std::size_t groups_left = groups, units_left = n;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto& own = of_device[used[i]];
    const std::size_t after = used.size() - i - 1;
    std::size_t parts = i + 1 == used.size() ? groups_left : groups_left * own.size() / units_left;
    parts = std::clamp<std::size_t>(parts, 1, std::min(groups_left - after, own.size()));
    for (std::size_t part = 0; part < parts; ++part) {
      Piece piece{0, used[i], {}};
      for (std::size_t j = own.size() * part / parts; j < own.size() * (part + 1) / parts; ++j) {
        piece.units.push_back(own[j]);
        piece.place += problem.units.place[own[j]];
      }
      piece.place /= double(piece.units.size());
      pieces.push_back(std::move(piece));
    }
    groups_left -= parts;
    units_left -= own.size();
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.place < b.place; });
  Decided decided{std::vector<std::uint32_t>(n), std::vector<std::uint32_t>(groups, 0)};
  for (std::uint32_t g = 0; g < pieces.size(); ++g) {
    decided.device_of_group[g] = pieces[g].device;
    for (const std::uint32_t u : pieces[g].units) decided.group_of[u] = g;
  }
  return decided;
}

}  // namespace turnpoint::trinity
