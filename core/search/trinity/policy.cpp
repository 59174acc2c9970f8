// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/policy.h"

#include <algorithm>

#include "core/search/trinity/networks/product.h"

namespace turnpoint::trinity {

namespace {

/// A column of the row, by its probability; scores are shaken by up to +-noise.
template <class Real>
std::uint32_t draw_from(const Real* log_probability, std::size_t columns, double noise, placement::Random& random,
                        std::vector<Real>& room) {
  room.assign(log_probability, log_probability + columns);
  if (noise > 0)
    for (Real& one : room) one += Real(noise * (2 * random.unit() - 1));
  networks::exponentials(room.data(), columns);
  double all = 0;
  for (const Real one : room) all += double(one);
  double left = random.unit() * all;
  for (std::size_t c = 0; c < columns; ++c) {
    left -= double(room[c]);
    if (left < 0) return std::uint32_t(c);
  }
  return std::uint32_t(columns - 1);
}

double mean_surprise(const Decisions& decisions) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < decisions.old.size(); ++i)
    if (decisions.counted(i)) sum -= double(decisions.old[i]), count += 1;
  return sum / std::max(count, 1.0);
}

}  // namespace

double surprise(const Rollout& rollout) {
  return std::max(mean_surprise(rollout.units), mean_surprise(rollout.groups));
}

template <class Real>
struct Policy<Real>::Chunk {
  std::size_t first = 0, rows = 0;
  std::vector<std::uint32_t> device;  ///< groups rows
  typename ScheduleNetwork<Real>::Encoded encoded;
  typename ScheduleNetwork<Real>::Decoded decoded;
  std::vector<Real> gradient;
  double entropy = 0;
};

template <class Real>
Policy<Real>::Policy(const PartitionShape& partition, const ScheduleShape& schedule, std::vector<float> device_features,
                     UnitFeatures features, placement::Random& random)
    : features_(std::move(features)), partition_(partition), schedule_(schedule, std::move(device_features)) {
  weights_.partition = partition_.places().template begin_with<Real>(random);
  weights_.schedule = schedule_.places().template begin_with<Real>(random);
}

template <class Real>
std::vector<Real> Policy<Real>::side_by_side(const std::vector<Rollout>& rollouts, std::size_t first,
                                             std::size_t rows) const {
  const std::size_t width = schedule_.shape().width;
  std::vector<Real> all(groups() * rows * width);
  for (std::size_t g = 0; g < groups(); ++g)
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(rollouts[first + r].group_features.data() + g * width, width,
                  all.begin() + std::ptrdiff_t((g * rows + r) * width));
  return all;
}

template <class Real>
void Policy<Real>::draw(const std::vector<Real>& mask, double noise, const GroupFeatures& group_features,
                        std::vector<placement::Random>& streams, ThreadPool& pool,
                        std::vector<Rollout>& rollouts) const {
  typename PartitionNetwork<Real>::Trace trace;
  partition_.forward(weights_.partition.data(), features_, mask, trace);
  rollouts.assign(streams.size(), {});
  pool.for_each(rollouts.size(), [&](std::size_t k, int) {
    Rollout& rollout = rollouts[k];
    std::vector<Real> room;
    rollout.groups.counts.assign(groups(), 0);
    for (std::size_t u = 0; u < units(); ++u) {
      const Real* row = trace.log_probability.data() + u * groups();
      const std::uint32_t group = draw_from(row, groups(), noise, streams[k], room);
      rollout.units.choice.push_back(group);
      rollout.units.old.push_back(float(row[group]));
      rollout.groups.counts[group] = 1;
    }
    rollout.group_features = group_features(rollout.units.choice);
    rollout.groups.choice.resize(groups());
    rollout.groups.old.resize(groups());
  });
  pool.for_each((rollouts.size() + kChunk - 1) / kChunk, [&](std::size_t chunk, int) {
    const std::size_t first = chunk * kChunk, rows = std::min(kChunk, rollouts.size() - first);
    typename ScheduleNetwork<Real>::Encoded encoded;
    schedule_.encode(weights_.schedule.data(), side_by_side(rollouts, first, rows), rows, encoded);
    std::vector<Real> room;
    schedule_.choose_devices(weights_.schedule.data(), encoded, [&](std::size_t g, std::size_t r, const Real* row) {
      Decisions& decisions = rollouts[first + r].groups;
      const std::uint32_t device = draw_from(row, schedule_.shape().devices, noise, streams[first + r], room);
      decisions.choice[g] = device;
      decisions.old[g] = float(row[device]);
      return device;
    });
  });
}

template <class Real>
void Policy<Real>::decode(const std::vector<Rollout>& rollouts, ThreadPool& pool, std::vector<Chunk>& chunks) const {
  chunks.resize((rollouts.size() + kChunk - 1) / kChunk);
  pool.for_each(chunks.size(), [&](std::size_t i, int) {
    Chunk& chunk = chunks[i];
    chunk.first = i * kChunk;
    chunk.rows = std::min(kChunk, rollouts.size() - chunk.first);
    chunk.device.resize(groups() * chunk.rows);
    for (std::size_t g = 0; g < groups(); ++g)
      for (std::size_t r = 0; r < chunk.rows; ++r)
        chunk.device[g * chunk.rows + r] = rollouts[chunk.first + r].groups.choice[g];
    const Real* weights = weights_.schedule.data();
    schedule_.encode(weights, side_by_side(rollouts, chunk.first, chunk.rows), chunk.rows, chunk.encoded);
    schedule_.decode(weights, chunk.encoded, chunk.device, chunk.decoded);
  });
}

template <class Real>
void Policy<Real>::remember(const std::vector<Real>& mask, ThreadPool& pool, std::vector<Rollout>& rollouts) const {
  typename PartitionNetwork<Real>::Trace trace;
  partition_.forward(weights_.partition.data(), features_, mask, trace);
  std::vector<Chunk> chunks;
  decode(rollouts, pool, chunks);
  const std::size_t devices = schedule_.shape().devices;
  for (const Chunk& chunk : chunks)
    for (std::size_t r = 0; r < chunk.rows; ++r) {
      Rollout& rollout = rollouts[chunk.first + r];
      rollout.units.old.resize(units());
      rollout.groups.old.resize(groups());
      for (std::size_t u = 0; u < units(); ++u)
        rollout.units.old[u] = float(trace.log_probability[u * groups() + rollout.units.choice[u]]);
      for (std::size_t g = 0; g < groups(); ++g)
        rollout.groups.old[g] =
            float(chunk.decoded.log_probability[(g * chunk.rows + r) * devices + rollout.groups.choice[g]]);
    }
}

template <class Real>
Loss Policy<Real>::loss(const std::vector<Rollout>& rollouts, const Weighting& weighting, const std::vector<Real>& mask,
                        ThreadPool& pool, Blocks& gradient) const {
  typename PartitionNetwork<Real>::Trace trace;
  partition_.forward(weights_.partition.data(), features_, mask, trace);
  std::vector<Chunk> chunks;
  decode(rollouts, pool, chunks);
  const std::size_t devices = schedule_.shape().devices;
  Loss loss;
  std::vector<std::vector<double>> unit_now(rollouts.size()), group_now(rollouts.size());
  std::vector<std::vector<double>> d_unit(rollouts.size()), d_group(rollouts.size());
  for (std::size_t k = 0; k < rollouts.size(); ++k) {
    const Rollout& rollout = rollouts[k];
    const Chunk& chunk = chunks[k / kChunk];
    for (std::size_t u = 0; u < units(); ++u)
      unit_now[k].push_back(double(trace.log_probability[u * groups() + rollout.units.choice[u]]));
    for (std::size_t g = 0; g < groups(); ++g)
      group_now[k].push_back(
          double(chunk.decoded.log_probability[(g * chunk.rows + k % kChunk) * devices + rollout.groups.choice[g]]));
    const double joint =
        weighting.joint ? log_ratio(rollout.units, unit_now[k]) + log_ratio(rollout.groups, group_now[k]) : 0;
    Credit of_units = rollout.credit;
    of_units.advantage *= weighting.unit_share;
    loss.value += decision_loss(weighting, of_units, rollout.units, unit_now[k], joint, d_unit[k]);
    const double of_groups = decision_loss(weighting, rollout.credit, rollout.groups, group_now[k], joint, d_group[k]);
    const bool told_already = weighting.joint && weighting.clipped && rollout.credit.imitation <= 0;
    if (!told_already) loss.value += of_groups;
  }
  std::vector<Real> d_scores(trace.scores.size(), Real(0));
  std::vector<double> unit_entropy(units());
  const double unit_bonus = weighting.unit_share * weighting.entropy;
  pool.for_each(
      units(),
      [&](std::size_t u, int) {
        std::vector<Chosen> chosen;
        for (std::size_t k = 0; k < rollouts.size(); ++k) chosen.push_back({rollouts[k].units.choice[u], d_unit[k][u]});
        unit_entropy[u] = add_row_derivative(trace.log_probability.data() + u * groups(), groups(), chosen, unit_bonus,
                                             d_scores.data() + u * groups());
      },
      64);
  for (const double one : unit_entropy) loss.unit_entropy += one / double(units());
  loss.value -= unit_bonus * loss.unit_entropy * double(units());
  // The partition's backward is one job beside the chunks' ones.
  gradient.partition.assign(weights_.partition.size(), Real(0));
  gradient.schedule.assign(weights_.schedule.size(), Real(0));
  const double share = 1 / double(rollouts.size());
  pool.for_each(chunks.size() + 1, [&](std::size_t job, int) {
    if (job == 0) {
      partition_.backward(weights_.partition.data(), features_, mask, trace, std::move(d_scores),
                          gradient.partition.data());
      return;
    }
    Chunk& chunk = chunks[job - 1];
    std::vector<Real> d_devices(chunk.decoded.scores.size(), Real(0));
    for (std::size_t g = 0; g < groups(); ++g)
      for (std::size_t r = 0; r < chunk.rows; ++r) {
        const std::size_t row = (g * chunk.rows + r) * devices;
        chunk.entropy += add_row_derivative(chunk.decoded.log_probability.data() + row, devices,
                                            {{chunk.device[g * chunk.rows + r], d_group[chunk.first + r][g]}},
                                            weighting.entropy * share, d_devices.data() + row);
      }
    chunk.gradient.assign(weights_.schedule.size(), Real(0));
    schedule_.backward(weights_.schedule.data(), chunk.encoded, chunk.device, chunk.decoded, std::move(d_devices),
                       chunk.gradient.data());
  });
  for (const Chunk& chunk : chunks) {
    loss.group_entropy += chunk.entropy * share / double(groups());
    for (std::size_t i = 0; i < gradient.schedule.size(); ++i) gradient.schedule[i] += chunk.gradient[i];
  }
  loss.value -= weighting.entropy * loss.group_entropy * double(groups());
  return loss;
}

template class Policy<float>;
template class Policy<double>;

}  // namespace turnpoint::trinity
