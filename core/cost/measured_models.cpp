// SPDX-License-Identifier: Apache-2.0
#include "core/cost/measured_models.h"

#include <algorithm>
#include <cmath>

#include "core/model/builder.h"

namespace turnpoint {

namespace {

constexpr double kMiB = 1048576.0;
constexpr std::int64_t kLargest = 1 << 24;  // of any single size that a table may imply

using Shape = std::vector<std::int64_t>;

const MeasuredOperator* row_of(const MeasuredLog& log, const std::string& name) {
  for (const auto& row : log.operators)
    if (row.kind == name) return &row;
  return nullptr;
}

/// A whole number that a measured size stands for; 0 where it is none.
std::int64_t whole(double value) {
  return value >= 0.5 && value < static_cast<double>(kLargest) ? std::llround(value) : 0;
}

double mib(const std::optional<double>& value) { return value.value_or(0) * kMiB; }

Error unclear(const MeasuredLog& log, const std::string& what) { return bad_input(what, log.path); }

/// A model whose operators are added row by row, each on an activation of its own.
class RowModel {
 public:
  RowModel(const MeasuredLog& log, std::int64_t batch, std::int64_t sequence)
      : log_(log), b(log.operators.front().model, log.path, batch, sequence) {}

  /// False where the table has no such row.
  bool begin(const std::string& row) {
    if (!row_of(log_, row)) return false;
    row_ = row;
    b.set_scope(row);
    return true;
  }
  /// An activation of this shape that belongs to no row.
  TensorId activation(Shape shape, std::vector<DimName> dims = {}) {
    if (dims.size() != shape.size()) dims.assign(shape.size(), DimName::other);
    b.set_scope("");
    const auto p = b.parameter("from", std::move(shape), std::move(dims));
    const auto x = b.elementwise("before", "Copy", std::span(&p, 1));
    b.set_scope(row_);
    return x;
  }
  TensorId weight(Shape shape) { return b.parameter(row_ + "/weight", std::move(shape)); }
  TensorId function(const char* detail, std::initializer_list<TensorId> operands,
                    const ElementwiseTraits& traits = {}) {
    return b.elementwise(row_ + "/" + detail, detail, std::span(operands.begin(), operands.size()), traits);
  }
  TensorId dropout(TensorId x) { return function("Dropout", {x}, {2, false, {}, {}, true}); }
  /// What the row hands on.
  void end(TensorId result) { results_.push_back(result); }

  Expected<ModelPtr> finish() {
    if (results_.empty()) return unclear(log_, "holds none of the operators that are known");
    return b.finish(std::move(results_));
  }
  void exchange(std::map<std::string, MeasuredWork::Exchange>& into, int devices, std::int64_t elements) {
    if (devices > 1) into[row_] = {Collective::all_reduce, devices, 2.0 * static_cast<double>(elements)};
  }

 private:
  const MeasuredLog& log_;
  std::string row_;
  std::vector<TensorId> results_;

 public:
  ModelBuilder b;
};

struct GptSizes {
  std::int64_t batch = 0, sequence = 0, hidden = 0, heads = 0, channels = 0, vocabulary = 0;
  int devices = 1;
  bool rows_first = false;  ///< the first product of attention is split by rows
};

Expected<GptSizes> gpt_sizes(const MeasuredLog& log) {
  GptSizes s;
  const auto& first = log.operators.front();
  s.batch = first.micro_batch;
  s.devices = first.tensor_parallel;
  s.rows_first = first.variant == 1;
  const auto *dense = row_of(log, "enc-attention-dense"), *score = row_of(log, "enc-attention-score"),
             *last = row_of(log, "gpt-post-process");
  if (!dense || !score || !last || s.batch < 1 || s.devices < 1)
    return unclear(
        log, "is no GPT table of Aceso: attention or the last operator is missing, or the name tells no micro-batch");
  const double t = s.devices, b = static_cast<double>(s.batch);
  s.hidden = whole(std::sqrt(mib(dense->weights_mib) * t / 2));
  if (s.hidden == 0) return unclear(log, "its weights imply no hidden size");
  const double h = static_cast<double>(s.hidden);
  s.sequence = whole(mib(dense->activations_mib) / (2 * b * h));
  if (s.sequence == 0) return unclear(log, "its activations imply no sequence");
  const double n = static_cast<double>(s.sequence);
  const std::int64_t all_heads = whole(mib(score->activations_mib) * t / (2 * b * n * n));
  s.vocabulary = whole(mib(last->weights_mib) / (2 * h));
  if (all_heads == 0 || all_heads % s.devices != 0 || s.hidden % all_heads != 0 || s.vocabulary == 0)
    return unclear(log, "its activations imply no number of heads");
  s.heads = all_heads / s.devices;
  s.channels = s.hidden / all_heads;
  return s;
}

/// x W of one device, with the all-reduce that completes the result (rows) or the gradient of x (columns).
struct Split {
  std::int64_t in, out;
  bool rows;
};

}  // namespace

Expected<MeasuredModel> aceso_gpt(const MeasuredLog& log) {
  const auto sizes = gpt_sizes(log);
  if (!sizes) return sizes.error();
  const GptSizes& s = *sizes;
  const Shape wide{s.batch, s.sequence, s.hidden}, maps{s.batch, s.heads, s.sequence, s.sequence},
      head{s.batch, s.heads, s.sequence, s.channels};
  const std::int64_t elements = s.batch * s.sequence * s.hidden, inner = 4 * s.hidden / s.devices;
  MeasuredModel made;
  RowModel m(log, s.batch, s.sequence);
  ModelBuilder& b = m.b;
  const auto linear = [&](const char* row, Split split, std::int64_t result) {
    if (!m.begin(row)) return;
    m.end(b.linear(row, m.activation({s.batch, s.sequence, split.in}), m.weight({split.in, split.out})));
    m.exchange(split.rows ? made.forward : made.backward, s.devices, result);
  };
  const auto norm = [&](const char* row) {
    if (m.begin(row)) m.end(b.normalisation(row, m.activation(wide), 2, m.weight({s.hidden}), m.weight({s.hidden})));
  };
  const auto after = [&](const char* row) {  // bias, dropout, residual
    if (!m.begin(row)) return;
    const auto x = m.activation(wide), residual = m.activation(wide);
    m.end(m.function("Residual", {m.dropout(m.function("Bias", {x, m.weight({s.hidden})})), residual}));
  };

  if (m.begin("encoder-embedding")) {
    const auto ids = b.input("ids", {s.batch, s.sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
    const auto words = b.embedding("words", m.weight({s.vocabulary, s.hidden}), ids);
    m.end(m.dropout(m.function("Positions", {words, m.weight({s.sequence, s.hidden})})));
    m.exchange(made.forward, s.devices, elements);
  }
  norm("enc-1st-layernorm");
  const std::int64_t part = s.hidden / s.devices;
  linear("enc-attention-qkv", s.rows_first ? Split{part, 3 * s.hidden, true} : Split{s.hidden, 3 * part, false},
         s.rows_first ? 3 * elements : elements);
  if (m.begin("enc-attention-score")) m.end(b.matmul("score", m.activation(head), m.activation(head), false, true));
  if (m.begin("enc-attention-softmax")) m.end(b.softmax("softmax", m.activation(maps), 3));
  if (m.begin("enc-attention-dropout")) m.end(m.dropout(m.activation(maps)));
  if (m.begin("enc-attention-context")) m.end(b.matmul("context", m.activation(maps), m.activation(head)));
  linear("enc-attention-dense", {part, s.hidden, true}, elements);
  after("enc-post-attention-dropout");
  norm("enc-2nd-layernorm");
  linear("enc-MLP-GEMM-1", {s.hidden, inner, false}, elements);
  if (m.begin("enc-MLP-gelu"))
    m.end(
        m.function("Gelu", {m.activation({s.batch, s.sequence, inner}), m.weight({inner})}, {8, false, {true, false}}));
  linear("enc-MLP-GEMM-2", {inner, s.hidden, true}, elements);
  after("enc-post-MLP-dropout");
  norm("final-layernorm");
  if (m.begin("gpt-post-process")) {
    const auto labels = b.input("labels", {s.batch, s.sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
    m.end(b.cross_entropy("loss", b.linear("logits", m.activation(wide), m.weight({s.hidden, s.vocabulary})), labels));
    m.exchange(made.backward, s.devices, elements);
  }
  auto model = m.finish();
  if (!model) return model.error();
  made.model = std::move(*model);
  return made;
}

namespace {

/// Walks a wide ResNet's table from top to bottom with the shape that the rows so far have made.
class ResnetRows {
 public:
  ResnetRows(const MeasuredLog& log, std::int64_t batch) : log_(log), batch_(batch), m_(log, batch, 0) {}

  Expected<ModelPtr> run() {
    std::string before;
    for (const auto& row : log_.operators) {
      if (row.kind == before || row.phase != "forward") continue;
      before = row.kind;
      if (m_.begin(row.kind)) add(row);
      if (error_) return *error_;
    }
    return m_.finish();
  }

 private:
  void add(const MeasuredOperator& row) {
    const auto dash = row.kind.rfind('-');
    const std::string part = dash == std::string::npos ? row.kind : row.kind.substr(dash + 1);
    const bool stem = dash == std::string::npos;
    if (part.starts_with("conv")) {
      // The shortcut of a block's first convolution starts from what entered the block.
      if (!stem && part == "conv1") entering_ = shape_;
      convolve(row, shape_, stem ? 7 : part == "conv2" ? 3 : 1);
    } else if (part.starts_with("bn")) {
      m_.end(normalised(m_.activation(shape_, kImage)));
    } else if (part.starts_with("relu")) {
      m_.end(m_.function("Relu", {m_.activation(shape_, kImage)}, {1, true, {}, {}, false}));
    } else if (part == "maxpool" || part == "avgpool") {
      const bool all = part == "avgpool";
      const std::int64_t high = all ? 1 : (shape_[2] + 1) / 2, wide = all ? 1 : (shape_[3] + 1) / 2;
      const auto x = m_.activation(shape_, kImage);
      m_.end(m_.b.pooling(part, all ? "AveragePool" : "MaxPool", x, {batch_, shape_[1], high, wide},
                          all ? Shape{} : Shape{3, 3}, !all));
      shape_ = {batch_, shape_[1], high, wide};
    } else if (part == "downsample") {
      shortcut(row);
    } else if (part == "fc") {
      const std::int64_t classes = whole(mib(row.activations_mib) / (4.0 * static_cast<double>(batch_)));
      if (classes == 0) return fail(row);
      const std::int64_t channels = shape_[1];
      m_.end(
          m_.b.linear("fc", m_.activation({batch_, channels}), m_.weight({channels, classes}), m_.weight({classes})));
    }
  }

  TensorId normalised(TensorId x) {
    const Shape per_channel{m_.b.tensor(x).shape[1]};
    return m_.b.batch_normalisation("bn", x, m_.weight(per_channel), m_.weight(per_channel),
                                    m_.b.buffer("mean", per_channel), m_.b.buffer("variance", per_channel));
  }

  /// Output channels follow from the weight, the stride from the size of the result.
  TensorId convolve(const MeasuredOperator& row, const Shape& from, std::int64_t kernel) {
    const double weights = mib(row.weights_mib) / 4, filter = static_cast<double>(from[1] * kernel * kernel);
    // The last digit of the table's MiB leaves room for a few channels: widths are multiples of 8.
    const std::int64_t channels = 8 * whole(weights / filter / 8);
    if (channels == 0) return fail(row), TensorId();
    const double plane = mib(row.activations_mib) / (4.0 * static_cast<double>(batch_ * channels));
    const std::int64_t stride = plane < 0.5 * static_cast<double>(from[2] * from[3]) ? 2 : 1;
    ConvolutionShape c;
    c.kernel = {kernel, kernel};
    c.strides = {stride, stride};
    c.dilations = {1, 1};
    c.pads_begin = c.pads_end = {kernel / 2, kernel / 2};
    const auto y = m_.b.convolution("conv", m_.activation(from, kImage), m_.weight({channels, from[1], kernel, kernel}),
                                    std::nullopt, c);
    if (m_.b.error()) return fail(row), TensorId();
    shape_ = m_.b.tensor(y).shape;
    m_.end(y);
    return y;
  }

  /// The sum with what entered the block; where the shapes differ, that is convolved and normalised first.
  void shortcut(const MeasuredOperator& row) {
    const Shape result = shape_;
    if (entering_ == result)
      return m_.end(m_.function("Add", {m_.activation(result, kImage), m_.activation(result, kImage)}));
    ConvolutionShape c;
    const std::int64_t stride = entering_[2] == result[2] ? 1 : 2;
    c.kernel = {1, 1}, c.strides = {stride, stride}, c.dilations = {1, 1}, c.pads_begin = c.pads_end = {0, 0};
    const auto y = m_.b.convolution("conv", m_.activation(entering_, kImage),
                                    m_.weight({result[1], entering_[1], 1, 1}), std::nullopt, c);
    if (m_.b.error()) return fail(row);
    m_.end(m_.function("Add", {normalised(y), m_.activation(result, kImage)}));
  }

  void fail(const MeasuredOperator& row) {
    if (!error_)
      error_ = bad_input("'" + row.kind + "': its weights and activations fit no wide ResNet",
                         log_.path + ":" + std::to_string(row.line));
  }

  const std::vector<DimName> kImage{DimName::batch, DimName::channel, DimName::height, DimName::width};
  const MeasuredLog& log_;
  std::int64_t batch_;
  RowModel m_;
  Shape shape_{batch_, 3, 224, 224}, entering_ = shape_;
  std::optional<Error> error_;
};

}  // namespace

Expected<MeasuredModel> aceso_resnet(const MeasuredLog& log) {
  const auto& first = log.operators.front();
  if (first.micro_batch < 1 || first.tensor_parallel != 1)
    return unclear(log,
                   "the name tells no micro-batch, or a partitioned one, whose halves this table does not tell apart");
  auto model = ResnetRows(log, first.micro_batch).run();
  if (!model) return model.error();
  return MeasuredModel{std::move(*model), {}, {}};
}

}  // namespace turnpoint
