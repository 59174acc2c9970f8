// SPDX-License-Identifier: Apache-2.0
#include "app/content_digest.h"

#include <QCryptographicHash>
#include <bit>
#include <span>
#include <string_view>
#include <type_traits>

namespace turnpoint::app {

namespace {

// Structured bindings name every field: one that is added to these structures does not compile here until it is either
// digested or left out on purpose.
class Digest {
 public:
  void add(std::string_view text) {
    number(text.size());
    hash_.addData(QByteArrayView(text.data(), qsizetype(text.size())));
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void add(T value) { number(value); }
  template <class Tag>
  void add(turnpoint::Id<Tag> id) {
    number(id.index);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    number(list.size());
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      hash_.addData(QByteArrayView(reinterpret_cast<const char*>(list.data()), qsizetype(list.size() * sizeof(T))));
    else
      for (const T& item : list) add(item);
  }
  void add(const NamePool& names) {
    number(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) add(names[i]);
  }
  void add(const LoopDimension& dimension) {
    const auto& [name, role, size, splittable] = dimension;
    all(name, role, size, splittable);
  }
  void add(const Tensor& tensor) {
    const auto& [name, shape, dims, type, role, producer, tied_to, requires_gradient] = tensor;
    all(name, shape, dims, type, role, producer, tied_to, requires_gradient);
  }
  void add(const Access& access) {
    const auto& [tensor, walks, saved] = access;
    all(tensor, walks, saved);
  }
  void add(const Operator& op) {
    const auto& [name, kind, detail, scope, dims, inputs, outputs, forward_flop, backward_flop, forward_macs,
                 backward_macs, forward_passes, backward_passes, causal, rotates, parts, part_loops] = op;
    all(name, kind, detail, scope, dims, inputs, outputs, forward_flop, backward_flop, forward_macs, backward_macs,
        forward_passes, backward_passes, causal, rotates, parts != nullptr, part_loops);
    if (parts) add(*parts);
  }
  void add(const Model& model) {
    const auto& [name, source, batch, sequence, operators, tensors, results, symbolic, warnings, parameters, buffers,
                 active_parameters, uses] = model;
    (void)source, (void)uses;  // where it lies; and what follows from the operators
    all(name, batch, sequence);
    add(static_cast<const std::vector<Operator>&>(operators));
    add(static_cast<const std::vector<Tensor>&>(tensors));
    all(results, symbolic, warnings, parameters, buffers, active_parameters);
  }
  void add(const TaskDevice& device) {
    const auto& [memory_bytes, speed] = device;
    all(memory_bytes, speed);
  }
  void add(const TaskLinks& links) {
    const auto& [bandwidth, latency, size, bandwidths, latencies, contention] = links;
    all(bandwidth, latency, size, bandwidths, latencies, contention);
  }
  void add(const TaskGraph& graph) {
    const auto& [name, kind, time_s, output_bytes, persistent_bytes, workspace_bytes, colocate, scope, names, groups,
                 scopes, out_begin, out_to, out_bytes, out_seconds, out_tensor, in_begin, in_from, in_edge, topological,
                 links, devices, alike, intended_devices] = graph;
    (void)in_begin, (void)in_from, (void)in_edge, (void)topological;  // follow from the outgoing edges
    all(name, kind, time_s, output_bytes, persistent_bytes, workspace_bytes, colocate, scope, names, groups, scopes,
        out_begin, out_to, out_bytes, out_seconds, out_tensor, links, devices, alike, intended_devices);
  }
  std::string text() const { return hash_.result().toHex().toStdString(); }

 private:
  template <class... Fields>
  void all(const Fields&... fields) {
    (add(fields), ...);
  }
  template <class T>
  void number(T value) {
    hash_.addData(QByteArrayView(reinterpret_cast<const char*>(&value), qsizetype(sizeof value)));
  }

  QCryptographicHash hash_{QCryptographicHash::Sha256};
};

}  // namespace

std::string content_digest(const Scenario& scenario) {
  Digest digest;
  digest.add(*scenario.model);
  digest.add(scenario.tasks != nullptr);
  if (scenario.tasks) digest.add(*scenario.tasks);
  digest.add(write_hardware_profile(*scenario.cluster));  // holds every field of a cluster
  return digest.text();
}

std::string unbound_digest(const ModelSource& source, const Cluster& cluster) {
  Digest digest;
  const TaskGraphPtr tasks = source.tasks();
  digest.add(tasks != nullptr);
  if (tasks) digest.add(*tasks);
  const auto model = source.bind({});
  // A source that has no sizes of its own to be bound to is told by what keeps it from that.
  model ? digest.add(**model) : digest.add(model.error().message());
  digest.add(write_hardware_profile(cluster));
  return digest.text();
}

std::string text_digest(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.text();
}

}  // namespace turnpoint::app
