// SPDX-License-Identifier: Apache-2.0
// TensorFlow graphs as the task graphs that they are: a task per node of the file, whatever it is there for.
//
// Shapes come from the file (constants, variables, placeholders, "_output_shapes") and from there on through the
// operators whose shapes follow from their inputs' (same_shape(), products, reshapes to constants, concatenations); a
// size that is not known, the batch, counts as 1. Where a shape does not follow, the node's output has no bytes.
// Times are those of the default device (a V100), by the larger of arithmetic and bytes moved, plus its launch; what
// only names, holds, orders or views data takes none.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "core/hardware/cluster.h"
#include "core/import/task_graph/readers.h"
#include "core/import/tensorflow/proto.h"
#include "core/import/tensorflow/tensor_value.h"

namespace turnpoint::task_graph_import {
namespace {

using namespace tensorflow;
constexpr const char* kDevice = "v100-16gb-1x1";
constexpr std::size_t kMaxRank = 32;  // what shapes in files may have, too
/// Above what a task's bytes may be, and small enough to be added and multiplied once.
constexpr std::int64_t kMaxSize = std::int64_t(1) << 55;

template <std::size_t N>
bool among(std::string_view op, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

bool holds_variable(std::string_view op) {
  return among(op, std::array<std::string_view, 4>{"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"});
}
bool writes_variable(std::string_view op) {
  return op.starts_with("Assign") || op.starts_with("Apply") || op.starts_with("ResourceApply") ||
         op.starts_with("SparseApply") || op.starts_with("ResourceSparseApply") || op.starts_with("Scatter");
}
/// Of them a variable's own device is asked.
bool touches_variable(std::string_view op) {
  return writes_variable(op) || op == "Identity" || op == "ReadVariableOp" || op == "IsVariableInitialized" ||
         op == "VarIsInitializedOp";
}
bool is_free(std::string_view op) {
  return holds_variable(op) || op.starts_with("Placeholder") ||
         among(op,
               std::array<std::string_view, 21>{
                   "Const",   "NoOp",  "Identity", "IdentityN", "StopGradient",  "PreventGradient", "Reshape",
                   "Squeeze", "Shape", "ShapeN",   "Rank",      "Size",          "ExpandDims",      "ControlTrigger",
                   "Enter",   "Exit",  "Merge",    "Switch",    "NextIteration", "LoopCond",        "ReadVariableOp"});
}
/// Element by element, the result shaped like what the inputs broadcast to.
bool same_shape(std::string_view op) {
  return op.ends_with("Grad") || among(op, std::array<std::string_view, 56>{"Add",
                                                                            "AddV2",
                                                                            "AddN",
                                                                            "Sub",
                                                                            "Mul",
                                                                            "RealDiv",
                                                                            "Div",
                                                                            "FloorDiv",
                                                                            "FloorMod",
                                                                            "Pow",
                                                                            "Maximum",
                                                                            "Minimum",
                                                                            "SquaredDifference",
                                                                            "Neg",
                                                                            "Abs",
                                                                            "Exp",
                                                                            "Log",
                                                                            "Log1p",
                                                                            "Sqrt",
                                                                            "Rsqrt",
                                                                            "Square",
                                                                            "Sigmoid",
                                                                            "Tanh",
                                                                            "Relu",
                                                                            "Relu6",
                                                                            "Elu",
                                                                            "Selu",
                                                                            "LeakyRelu",
                                                                            "Softplus",
                                                                            "Softmax",
                                                                            "LogSoftmax",
                                                                            "Floor",
                                                                            "Ceil",
                                                                            "Round",
                                                                            "Sign",
                                                                            "Reciprocal",
                                                                            "Inv",
                                                                            "ZerosLike",
                                                                            "OnesLike",
                                                                            "Identity",
                                                                            "StopGradient",
                                                                            "PreventGradient",
                                                                            "BiasAdd",
                                                                            "Cast",
                                                                            "Select",
                                                                            "Where",
                                                                            "Equal",
                                                                            "NotEqual",
                                                                            "Greater",
                                                                            "GreaterEqual",
                                                                            "Less",
                                                                            "LessEqual",
                                                                            "LogicalAnd",
                                                                            "LogicalOr",
                                                                            "LogicalNot",
                                                                            "CheckNumerics"});
}

std::int64_t bytes_per_element(DataType type) {
  switch (type) {
    case DataType::u8:
    case DataType::i8:
    case DataType::boolean:
    case DataType::qint8:
    case DataType::quint8: return 1;
    case DataType::i16:
    case DataType::u16:
    case DataType::f16:
    case DataType::bf16:
    case DataType::qint16:
    case DataType::quint16: return 2;
    case DataType::f64:
    case DataType::i64:
    case DataType::u64:
    case DataType::complex64: return 8;
    case DataType::complex128: return 16;
    case DataType::string:
    case DataType::resource:
    case DataType::variant: return 0;
    default: return 4;
  }
}

struct Input {
  int node = -1;
  bool control = false;
};

class CostGraphReader {
 public:
  CostGraphReader(const GraphDef& def, const std::string& where) : where_(where), nodes_(def.nodes) {}

  Expected<TaskGraphPtr> run() {
    if (auto good = resolve(); !good) return good.error();
    if (auto good = order(); !good) return good.error();
    shapes_.resize(nodes_.size());
    types_.resize(nodes_.size());
    for (const int i : order_) infer(i);
    return build();
  }

 private:
  const Attribute* attribute(int i, std::string_view key) const {
    const auto found = nodes_[std::size_t(i)].attributes.find(key);
    return found == nodes_[std::size_t(i)].attributes.end() ? nullptr : &found->second;
  }
  const std::string& op(int i) const { return nodes_[std::size_t(i)].op; }
  std::string place(int i) const { return where_ + ": node '" + nodes_[std::size_t(i)].name + "'"; }

  Expected<void> resolve() {
    std::unordered_map<std::string_view, int> index;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!index.try_emplace(nodes_[i].name, int(i)).second)
        return bad_input("two nodes have this name", place(int(i)));
    inputs_.resize(nodes_.size());
    data_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (std::string_view text : nodes_[i].inputs) {
        Input input;
        input.control = text.starts_with('^');
        if (input.control) text.remove_prefix(1);
        const auto found = index.find(text.substr(0, text.rfind(':')));
        const auto whole = index.find(text);
        if (found == index.end() && whole == index.end())
          return bad_input("its input '" + std::string(text) + "' is no node of the file", place(int(i)));
        input.node = (whole != index.end() ? whole : found)->second;
        // One round of a loop: what it hands to its next round ends here.
        if (op(input.node) == "NextIteration") continue;
        inputs_[i].push_back(input);
        if (!input.control) data_[i].push_back(input.node);
      }
    return {};
  }

  /// Producers first; cycles other than loops are named by the graph's builder.
  Expected<void> order() {
    std::vector<std::vector<int>> readers(nodes_.size());
    std::vector<std::size_t> missing(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      missing[i] = inputs_[i].size();
      for (const Input& input : inputs_[i]) readers[std::size_t(input.node)].push_back(int(i));
      if (missing[i] == 0) order_.push_back(int(i));
    }
    for (std::size_t next = 0; next < order_.size(); ++next)
      for (const int reader : readers[std::size_t(order_[next])])
        if (--missing[std::size_t(reader)] == 0) order_.push_back(reader);
    return {};
  }

  // Shapes.

  int data(int i, std::size_t k) const {
    const auto& all = data_[std::size_t(i)];
    return k < all.size() ? all[k] : -1;
  }
  std::size_t data_count(int i) const { return data_[std::size_t(i)].size(); }
  const Shape* shape(int i) const { return i < 0 || !shapes_[std::size_t(i)] ? nullptr : &*shapes_[std::size_t(i)]; }
  bool flag(int i, std::string_view key) const {
    const Attribute* found = attribute(i, key);
    return found && found->b.value_or(false);
  }
  /// Whole numbers of a constant input.
  const std::vector<std::int64_t>* constants(int i) const {
    if (i < 0 || op(i) != "Const") return nullptr;
    const Attribute* value = attribute(i, "value");
    return value && value->tensor && value->tensor->known ? &value->tensor->integers : nullptr;
  }

  void infer(int i) {
    types_[std::size_t(i)] = type_of(i);
    MaybeShape found = stated(i);
    if (!found) found = derived(i);
    if (found && found->size() > kMaxRank) found.reset();
    if (found)
      for (std::int64_t& size : *found) size = size < 0 ? 1 : std::min(size, kMaxSize);
    shapes_[std::size_t(i)] = std::move(found);
  }

  DataType type_of(int i) const {
    for (const char* key : {"dtype", "DstT", "T", "out_type", "output_type"})
      if (const Attribute* found = attribute(i, key); found && found->type) return *found->type;
    return data(i, 0) >= 0 ? types_[std::size_t(data(i, 0))] : DataType::f32;
  }

  MaybeShape stated(int i) const {
    if (const Attribute* found = attribute(i, "_output_shapes"); found && !found->shapes.empty())
      return found->shapes.front();
    if (const Attribute* found = attribute(i, "value"); op(i) == "Const" && found && found->tensor)
      return found->tensor->shape;
    if (holds_variable(op(i)) || op(i).starts_with("Placeholder"))
      if (const Attribute* found = attribute(i, "shape"); found && found->shape) return *found->shape;
    return {};
  }

  MaybeShape derived(int i) const {
    const Shape* first = shape(data(i, 0));
    const std::string& kind = op(i);
    if (kind == "ReadVariableOp" || writes_variable(kind)) return first ? MaybeShape(*first) : MaybeShape();
    if (kind == "BiasAddGrad") return first && !first->empty() ? MaybeShape(Shape{first->back()}) : MaybeShape();
    if (kind == "MatMul" || kind.starts_with("BatchMatMul")) return product(i);
    if (same_shape(kind)) return broadcast(i);
    if (kind == "Reshape") return reshaped(i);
    if (kind == "Transpose") return turned(i);
    if (kind == "ConcatV2") return joined(i);
    if (kind == "Fill" || kind == "RandomUniform" || kind == "TruncatedNormal" || kind == "RandomStandardNormal") {
      const auto* sizes = constants(data(i, 0));
      return sizes ? MaybeShape(*sizes) : MaybeShape();
    }
    if (kind == "Shape" || kind == "Rank" || kind == "Size")
      return first && kind == "Shape" ? MaybeShape(Shape{std::int64_t(first->size())}) : MaybeShape(Shape{});
    return {};
  }

  MaybeShape product(int i) const {
    const Shape *a = shape(data(i, 0)), *b = shape(data(i, 1));
    if (!a || !b || a->size() < 2 || b->size() < 2) return {};
    Shape result = *a;
    result[result.size() - 2] = flag(i, "transpose_a") || flag(i, "adj_x") ? a->back() : (*a)[a->size() - 2];
    result.back() = flag(i, "transpose_b") || flag(i, "adj_y") ? (*b)[b->size() - 2] : b->back();
    return result;
  }

  MaybeShape broadcast(int i) const {
    Shape result;
    for (std::size_t k = 0; k < data_count(i); ++k) {
      const Shape* one = shape(data(i, k));
      if (!one) return {};
      if (one->size() > result.size()) result.insert(result.begin(), one->size() - result.size(), 1);
      for (std::size_t d = 0; d < one->size(); ++d) {
        std::int64_t& size = result[result.size() - one->size() + d];
        size = std::max(size, (*one)[d]);
      }
    }
    return result;
  }

  MaybeShape reshaped(int i) const {
    const Shape* from = shape(data(i, 0));
    const auto* to = constants(data(i, 1));
    if (!from || !to) return from ? MaybeShape(*from) : MaybeShape();  // as many elements, whatever the shape
    Shape result = *to;
    const auto elements = element_count(*from);
    double rest = 1;
    for (const std::int64_t size : result) rest *= size > 0 ? double(size) : 1;
    for (std::int64_t& size : result)
      if (size < 0) size = elements ? std::max<std::int64_t>(1, std::llround(double(*elements) / rest)) : 1;
    return result;
  }

  MaybeShape turned(int i) const {
    const Shape* from = shape(data(i, 0));
    const auto* order = constants(data(i, 1));
    if (!from) return {};
    Shape result = *from;
    for (std::size_t d = 0; order && d < std::min(order->size(), result.size()); ++d)
      if ((*order)[d] >= 0 && std::size_t((*order)[d]) < from->size()) result[d] = (*from)[std::size_t((*order)[d])];
    return result;
  }

  MaybeShape joined(int i) const {
    const std::size_t parts = data_count(i);
    const auto* axis = parts > 1 ? constants(data(i, parts - 1)) : nullptr;
    const Shape* first = shape(data(i, 0));
    if (!axis || axis->size() != 1 || !first) return {};
    const std::int64_t at = axis->front() < 0 ? axis->front() + std::int64_t(first->size()) : axis->front();
    if (at < 0 || at >= std::int64_t(first->size())) return {};
    Shape result = *first;
    for (std::size_t k = 1; k + 1 < parts; ++k) {
      const Shape* one = shape(data(i, k));
      if (!one || one->size() != first->size()) return {};
      result[std::size_t(at)] = std::min(kMaxSize, result[std::size_t(at)] + (*one)[std::size_t(at)]);
    }
    return result;
  }

  /// Within what the graph may hold; more than that is refused by its builder.
  std::int64_t bytes(int i) const {
    const Shape* known = shape(i);
    const auto elements = known ? element_count(*known) : std::optional<std::int64_t>(0);
    const std::int64_t limit = TaskGraphBuilder::kMaxBytes;
    return elements && *elements <= limit / 16 ? *elements * bytes_per_element(types_[std::size_t(i)]) : limit + 1;
  }

  double seconds(int i, const DeviceType& device) const {
    if (is_free(op(i))) return 0;
    double moved = double(bytes(i)), flop = 0;
    for (std::size_t k = 0; k < data_count(i); ++k) moved += double(bytes(data(i, k)));
    if (const Shape* result = shape(i)) {
      flop = double(element_count(*result).value_or(0));
      if (const Shape* a = shape(data(i, 0)); a && !a->empty() && op(i).find("MatMul") != std::string::npos)
        flop *= 2 * double(flag(i, "transpose_a") || flag(i, "adj_x") ? (*a)[a->size() - 2] : a->back());
    }
    return std::max(flop / (device.peak_fp32 * device.flop_efficiency),
                    moved / (device.memory_bandwidth * device.memory_efficiency)) +
           device.launch_s;
  }

  TaskKind kind(int i) const {
    const std::string& name = nodes_[std::size_t(i)].name;
    if (op(i).find("Apply") != std::string::npos) return TaskKind::update;
    if (name.starts_with("gradients/") || name.find("/gradients/") != std::string::npos) return TaskKind::backward;
    return is_free(op(i)) ? TaskKind::other : TaskKind::forward;
  }

  /// A variable with what reads and writes it; variables that one update writes are together.
  std::vector<int> groups() const {
    std::vector<int> parent(nodes_.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int i) {
      while (parent[std::size_t(i)] != i) i = parent[std::size_t(i)] = parent[std::size_t(parent[std::size_t(i)])];
      return i;
    };
    for (int i = 0; i < int(nodes_.size()); ++i) {
      if (!touches_variable(op(i))) continue;
      for (const Input& input : inputs_[std::size_t(i)])
        if (!input.control && holds_variable(op(input.node))) {
          const int a = root(i), b = root(input.node);
          parent[std::size_t(std::max(a, b))] = std::min(a, b);
        }
    }
    std::vector<int> group(nodes_.size()), size(nodes_.size(), 0);
    for (int i = 0; i < int(nodes_.size()); ++i) ++size[std::size_t(group[std::size_t(i)] = root(i))];
    for (int& g : group)
      if (size[std::size_t(g)] < 2) g = -1;
    return group;
  }

  Expected<TaskGraphPtr> build() {
    const auto cluster = cluster_preset(kDevice);
    if (!cluster) return cluster.error();
    const LinkLevel link = (*cluster)->links[kIntraNode];
    TaskGraphBuilder builder;
    const std::vector<int> group = groups();
    for (int i = 0; i < int(nodes_.size()); ++i) {
      TaskGraphBuilder::Task task;
      const std::string& name = nodes_[std::size_t(i)].name;
      task.name = name;
      task.kind = kind(i);
      // A variable's and a constant's bytes stay where they are; others read them from there.
      const bool stays = holds_variable(op(i)) || op(i) == "Const";
      (stays ? task.persistent_bytes : task.output_bytes) = writes_variable(op(i)) ? 0 : bytes(i);
      task.time_s = bytes(i) > TaskGraphBuilder::kMaxBytes ? 0 : seconds(i, (*cluster)->device);
      if (group[std::size_t(i)] >= 0) task.colocate = builder.group(nodes_[std::size_t(group[std::size_t(i)])].name);
      task.scope = builder.scope(name.substr(0, name.find_last_of('/') == std::string::npos ? 0 : name.rfind('/')));
      builder.add_task(task);
      for (const Input& input : inputs_[std::size_t(i)])
        builder.add_edge(input.node, i, input.control ? 0 : bytes(input.node));
    }
    builder.links.bandwidth = link.bandwidth;
    builder.links.latency = link.latency_s;
    builder.name = where_;
    return builder.finish(where_);
  }

  const std::string& where_;
  const std::vector<NodeDef>& nodes_;
  std::vector<std::vector<Input>> inputs_;  // [node]
  std::vector<std::vector<int>> data_;      // [node], of them those that bring data
  std::vector<int> order_;
  std::vector<MaybeShape> shapes_;  // [node], of its first output
  std::vector<DataType> types_;
};

}  // namespace

Expected<TaskGraphPtr> read_tensorflow(std::string_view text, const std::string& where) {
  const auto def = parse_graph({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, where);
  if (!def) return def.error();
  return CostGraphReader(*def, where).run();
}

}  // namespace turnpoint::task_graph_import
