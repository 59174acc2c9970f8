// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/shape_reader.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace turnpoint::huggingface {

namespace {

/// Keys of the whole model that a config of text and pictures also has further in, where they do not count.
constexpr std::string_view kOuterFirst[] = {"tie_word_embeddings"};

const char* kind_of_json(const nlohmann::json& value) {
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "true or false";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_number_integer()) return "a whole number";
  return value.is_number() ? "a number with a fraction" : "null";
}

}  // namespace

ShapeReader::ShapeReader(const Family& family, JsonFields inner, const nlohmann::json& outer, std::string class_name)
    : family_(family), fields_(std::move(inner)), outer_(outer), class_name_(std::move(class_name)) {
  names_.key = [this](std::string_view path, bool defaults) { return key(path, defaults); };
  names_.setting = [this](std::string_view setting) -> Result {
    if (setting == "i") return by_layer_ = true, Result{double(layer_), {}, {}};
    if (setting == "class") return {std::string(class_ending(class_name_)), {}, {}};
    return evaluate_setting(setting);
  };
}

const nlohmann::json* ShapeReader::key(std::string_view path, bool defaults) const {
  const auto& inner = fields_.json();
  if (&outer_ != &inner && std::find(std::begin(kOuterFirst), std::end(kOuterFirst), path) != std::end(kOuterFirst))
    if (const auto found = outer_.find(path); found != outer_.end() && !found->is_null()) return &*found;
  if (const auto* found = find_path(inner, path)) return found;
  return defaults ? find_path(*family_.defaults, path) : nullptr;
}

void ShapeReader::fail(std::string_view path, const std::string& what) {
  JsonFields at = fields_;
  for (std::size_t dot; (dot = path.find('.')) != std::string_view::npos; path.remove_prefix(dot + 1))
    at = at.object(path.substr(0, dot));
  at.fail(path, what);
}

Result ShapeReader::evaluate_text(std::string_view expression) {
  constexpr int kDeepest = 32;
  if (depth_ >= kDeepest) return {{}, {}, "follows from itself"};
  ++depth_;
  Result result = evaluate(expression, names_);
  --depth_;
  return result;
}

Result ShapeReader::evaluate_setting(std::string_view setting) {
  const auto row = family_.settings.find(setting);
  if (row == family_.settings.end()) return {};
  if (const auto found = known_.find(setting); found != known_.end()) return found->second;
  const bool before = std::exchange(by_layer_, false);
  Result result = evaluate_text(row->second);
  if (!result.fault.empty()) fail(result.key.empty() ? setting : std::string_view(result.key), result.fault);
  if (!by_layer_) known_.emplace(setting, result);
  by_layer_ = by_layer_ || before;
  return result;
}

std::string ShapeReader::blamed(std::string_view setting) {
  const std::string found = evaluate_setting(setting).key;
  return found.empty() ? std::string(setting) : found;
}

std::int64_t ShapeReader::number(std::string_view setting, std::int64_t minimum, std::int64_t maximum) {
  const Result result = evaluate_setting(setting);
  if (!good()) return std::max<std::int64_t>(minimum, 1);
  const std::string where = result.key.empty() ? std::string(setting) : result.key;
  if (is_none(result.value)) {
    if (minimum > 0) fail(where, "is missing");
    return minimum;
  }
  const auto* value = std::get_if<double>(&result.value);
  const auto* json = key(where, false);
  if (!value || *value != std::floor(*value)) {
    if (json && json->is_string())
      for (const char* word : {"NaN", "Infinity", "-Infinity"})
        if (*json == word) return fail(where, fmt::format("must be a finite number, not {}", word)), 1;
    const char* kind = value ? "a number with a fraction" : json ? kind_of_json(*json) : "a word";
    fail(where, fmt::format("must be a whole number, not {}", kind));
    return std::max<std::int64_t>(minimum, 1);
  }
  if (*value < double(minimum) || *value > double(maximum)) {
    const bool same = json && json->is_number() && json->get<double>() == *value;
    fail(where, fmt::format("must be between {} and {}, not {}", std::max<std::int64_t>(1, minimum), maximum,
                            same ? json->dump() : fmt::format("{:.0f}", *value)));
    return std::max<std::int64_t>(minimum, 1);
  }
  return static_cast<std::int64_t>(*value);
}

bool ShapeReader::flag(std::string_view setting) {
  const Result result = evaluate_setting(setting);
  const auto* json = result.key.empty() ? nullptr : key(result.key, false);
  const bool number = std::holds_alternative<double>(result.value) && json && json->is_number() &&
                      json->get<double>() == std::get<double>(result.value);
  if (number || std::holds_alternative<std::string>(result.value))
    fail(result.key, fmt::format("must be true or false, not {}", json ? kind_of_json(*json) : "a word"));
  return truth(result.value);
}

std::string ShapeReader::text(std::string_view setting) {
  const Result result = evaluate_setting(setting);
  if (const auto* text = std::get_if<std::string>(&result.value)) return *text;
  const auto* json = result.key.empty() ? nullptr : key(result.key, false);
  if (!is_none(result.value)) fail(result.key, fmt::format("must be a string, not {}", json ? kind_of_json(*json) : "a number"));
  return {};
}

int ShapeReader::choice(std::string_view setting, std::string_view words) {
  const std::string wanted = text(setting);
  if (wanted.empty()) return 0;
  int index = 0;
  for (std::string_view rest = words; !rest.empty(); ++index) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == wanted) return index;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  fail(blamed(setting), fmt::format("'{}' is not supported: {} are", wanted, words));
  return 0;
}

/// Words with {expressions} replaced by what they are.
std::string ShapeReader::filled(const std::string& words) {
  std::string made;
  for (std::size_t at = 0; at < words.size();) {
    const auto open = words.find('{', at), close = words.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return made + words.substr(at);
    made += words.substr(at, open - at);
    const Value value = evaluate_text(std::string_view(words).substr(open + 1, close - open - 1)).value;
    if (const auto* number = std::get_if<double>(&value)) made += fmt::format("{:.0f}", *number);
    if (const auto* word = std::get_if<std::string>(&value)) made += *word;
    at = close + 1;
  }
  return made;
}

/// Objects and switches are told by what the library takes for them where a config leaves them out.
void ShapeReader::check_kinds() {
  for (const auto& [name, otherwise] : family_.defaults->items()) {
    if (otherwise.is_object()) fields_.object(name);
    const auto* given = key(name, false);
    if (otherwise.is_boolean() && given && !given->is_boolean() && !given->is_null())
      fail(name, fmt::format("must be true or false, not {}", kind_of_json(*given)));
  }
}

TransformerShape ShapeReader::read() {
  TransformerShape s;
  check_kinds();
  for (const Refusal& refusal : family_.refusals)
    if (good() && truth(evaluate_text(refusal.condition).value)) {
      // What no row can stand for has another road; what is merely wrong is to be put right.
      const std::string words = filled(refusal.words);
      const bool closed = words.find("support") != std::string::npos;
      fail(refusal.key, closed ? words + "; an export to ONNX can be read: README.md, \"Models\"" : words);
    }
  if (good()) read_sizes(s);
  if (good()) read_structure(s);
  if (good()) read_head(s);
  if (good()) read_mixers(s);
  if (good()) read_experts(s);
  if (good()) read_encoder(s);
  if (good()) read_inputs(s);
  if (good()) read_layers(s);
  if (good()) check(s);
  if (good()) note(s);
  return s;
}

void ShapeReader::read_sizes(TransformerShape& s) {
  s.hidden = number("hidden", 1, kMaximumWidth);
  s.hidden_key = evaluate_setting("hidden").key;
  s.layers = number("layers", 1, kMaximumLayers);
  s.intermediate = number("intermediate", 0, kMaximumWidth);
  s.heads = number("heads", 1, kMaximumHeads);
  s.kv_heads = number("kv_heads", 1, kMaximumHeads);
  // The family's number of key heads belongs to its number of heads.
  if (good() && s.heads % s.kv_heads != 0 && !key(blamed("kv_heads"), false)) s.kv_heads = s.heads;
  if (good() && s.heads % s.kv_heads != 0)
    return fail(blamed("kv_heads"), fmt::format("{} does not divide the {} attention heads", s.kv_heads, s.heads));
  s.head_channels = number("head_channels", 0, kMaximumWidth);
  if (good() && s.head_channels == 0) {
    if (s.hidden % s.heads != 0 && !flag("uneven_heads"))
      return fail(blamed("heads"), fmt::format("{} heads do not divide the hidden size {}", s.heads, s.hidden));
    s.head_channels = std::max<std::int64_t>(1, s.hidden / s.heads);
  }
  s.value_channels = width("value_channels");
  s.vocabulary = number("vocabulary", 0, kMaximumVocabulary);
  s.positions = number("positions", 1, kMaximumPositions);
  s.positions_named = !evaluate_setting("positions").key.empty();
  s.spare_positions = number("spare_positions", 0, kMaximumPositions);
  s.position_buckets = number("position_buckets", 0, 1 << 20);
  s.token_types = number("token_types", 0, kMaximumVocabulary);
  s.embedding_channels = width("embedding_channels");
}

void ShapeReader::read_structure(TransformerShape& s) {
  s.norm = TransformerShape::Norm(choice("norm", "layer layer_unbiased rms bare"));
  s.block = TransformerShape::Block(
      choice("block", "pre_norm post_norm parallel parallel_two_norms sandwich norm_after"));
  s.mlp = TransformerShape::Mlp(choice("mlp", "plain gated"));
  if (const std::string activation = text("activation"); !activation.empty()) s.activation = activation;
  s.causal = flag("causal");
  s.attention_dropout = flag("attention_drops");
  s.branch_dropout = flag("branch_drops");
  s.embedding_dropout = flag("embedding_drops");
  s.activation_dropout = flag("activation_drops");
  s.learned_positions = flag("learned_positions");
  s.rotary = flag("rotary");
  s.embedding_projection = flag("embedding_projection");
  s.own_output_projection = flag("own_output_projection");
  s.output_projection = !flag("no_output_projection");
  s.qkv_bias = flag("qkv_bias");
  s.key_bias = !flag("no_key_bias");
  s.output_bias = flag("output_bias");
  s.mlp_bias = flag("mlp_bias");
  s.gate_bias = !flag("no_up_bias");
  s.own_tables = flag("own_tables");
  s.own_buckets = flag("own_buckets");
  if (const std::string kind = text("query_key_norm"); !kind.empty())
    s.query_key_norm = TransformerShape::Norm(choice("query_key_norm", "layer layer_unbiased rms bare"));
  s.query_key_scale = TransformerShape::QueryKeyScale(choice("query_key_scale", "channel head all_heads"));
  s.attention_gate = TransformerShape::Gate(choice("attention_gate", "none head channel"));
  s.attention_norm = flag("attention_norm");
  s.mlp_norm = flag("mlp_norm");
  s.layer_scale = flag("layer_scale");
  s.residual_scale = flag("residual_scale");
  s.value_mask = flag("value_mask");
  s.gated_norm_rank = width("gated_norm_rank");
  s.first_norm = !flag("no_first_norm");
  s.last_norm = !flag("no_last_norm");
  s.attention_sinks = flag("sinks");
  s.embedding_norm = flag("embedding_norm");
  s.foreign_memory = flag("foreign_memory");
  s.global_token = flag("global_token");
  s.shared_groups = number("shared_groups", 0, kMaximumLayers);
  if (good() && s.shared_groups > s.layers)
    fail(blamed("shared_groups"), fmt::format("{} groups are more than the {} layers", s.shared_groups, s.layers));
}

/// What the class puts on top.
void ShapeReader::read_head(TransformerShape& s) {
  s.pooler = flag("pooler");
  s.transform = flag("transform");
  s.transform_bias = !flag("no_transform_bias");
  s.transform_channels = width("transform_channels");
  s.tied_head = flag("tied");
  s.head_bias = flag("head_bias");
  const std::string kind = text("head");
  const bool each = kind == "each" || kind == "span";
  if (kind == "one" || kind == "each") {
    const auto* labels = find_path(outer_, "id2label");
    const bool listed = labels && labels->is_object() && !labels->empty();
    s.labels = number("labels", 0, kMaximumVocabulary);
    if (s.labels == 0) s.labels = listed ? std::int64_t(labels->size()) : 2;
  }
  if (kind == "span") s.labels = 2;
  s.label_each = each;
  s.label_bias = s.labels > 0 && (each || flag("label_bias"));
  if (kind == "bare") {
    s.head_bias = false;
    if (!s.tied_head || s.transform)
      s.warnings.push_back(fmt::format("{} has no language head: tokens are predicted through the token table instead",
                                       class_name_.empty() ? "this class" : class_name_));
    s.transform = false;
    s.tied_head = true;
  }
}

void ShapeReader::read_mixers(TransformerShape& s) {
  s.latent.key_value_rank = width("key_value_rank");
  if (has("key_value_rank") && good() && s.latent.key_value_rank == 0 && !is_none(evaluate_setting("key_value_rank").value))
    return fail(blamed("key_value_rank"), fmt::format("must be between 1 and {}, not 0", kMaximumWidth));
  s.latent.query_rank = width("query_rank");
  if (s.latent.key_value_rank > 0) {
    number("head_channels", 1, kMaximumWidth);
    number("latent_value_channels", 1, kMaximumWidth);
  }
  s.latent.query_both = flag("query_both");
  s.latent.rotary_channels = width("rotary_channels");
  s.latent.value_channels = width("latent_value_channels");
  s.indexer.heads = number("index_heads", 0, kMaximumHeads);
  s.indexer.channels = number("index_channels", s.indexer.heads > 0 ? 1 : 0, kMaximumWidth);
  s.indexer.chosen = number("index_chosen", s.indexer.heads > 0 ? 1 : 0, kMaximumPositions);
  StateSpace& m = s.states;
  m.inner = width("scan_inner");
  m.state = number("scan_state", m.inner > 0 ? 1 : 0, 1 << 16);
  m.kernel = std::max<std::int64_t>(1, number("scan_kernel", 0, 1 << 10));
  m.heads = number("scan_heads", 0, kMaximumHeads);
  m.groups = std::max<std::int64_t>(1, number("scan_groups", 0, kMaximumHeads));
  m.rank = width("scan_rank");
  m.chunk = std::max<std::int64_t>(1, number("scan_chunk", 0, 1 << 20));
  m.convolution_bias = flag("scan_convolution_bias");
  m.projection_bias = flag("scan_bias");
  m.norm = flag("scan_norm");
  m.part_norms = flag("scan_part_norms");
  if (good() && m.heads > 0 && m.inner % m.heads != 0)
    fail(blamed("scan_heads"), fmt::format("{} heads do not divide the {} scanned channels", m.heads, m.inner));
  DeltaNet& d = s.delta;
  d.key_heads = number("delta_key_heads", 0, kMaximumHeads);
  d.value_heads = number("delta_value_heads", d.key_heads > 0 ? 1 : 0, kMaximumHeads);
  d.key_channels = number("delta_key_channels", d.key_heads > 0 ? 1 : 0, kMaximumWidth);
  d.value_channels = number("delta_value_channels", d.key_heads > 0 ? 1 : 0, kMaximumWidth);
  d.kernel = std::max<std::int64_t>(1, number("delta_kernel", 0, 1 << 10));
  if (has("delta_chunk")) d.chunk = number("delta_chunk", 1, 1 << 20);
  d.channel_decay = flag("delta_channel_decay");
  d.decay_rank = width("delta_decay_rank");
  d.gate_rank = width("delta_gate_rank");
  if (good() && d.key_heads > 0 && d.value_heads % d.key_heads != 0)
    fail(blamed("delta_value_heads"), fmt::format("{} is no multiple of the {} key heads", d.value_heads, d.key_heads));
  s.convolution_kernel = number("short_kernel", 0, 1 << 10);
  s.convolution_bias = flag("short_bias");
  s.recurrence_channels = width("recurrence_channels");
  s.shared.blocks = number("shared_blocks", 0, kMaximumLayers);
  s.shared.rank = width("shared_rank");
  s.shared.attention_rank = s.shared.rank > 0 && flag("shared_attention_rank");
}

void ShapeReader::read_experts(TransformerShape& s) {
  const Result count = evaluate_setting("experts");
  if (!good() || is_none(count.value)) return;
  ExpertLayers& m = s.moe;
  m.experts = number("experts", 1, kMaximumExperts);
  m.per_token = number("experts_per_token", 1, kMaximumExperts);
  if (good() && m.per_token > m.experts)
    return fail(blamed("experts_per_token"), fmt::format("{} experts per token of only {}", m.per_token, m.experts));
  m.intermediate = has("expert_intermediate") ? number("expert_intermediate", 1, kMaximumWidth) : s.intermediate;
  m.shared_intermediate = width("shared_intermediate");
  m.shared_gate = m.shared_intermediate > 0 && flag("shared_gate");
  m.router_bias = flag("router_bias");
  m.expert_bias = flag("expert_bias");
  const std::int64_t groups = number("expert_groups", 0, kMaximumExperts);
  if (good() && groups > 0 && m.experts % groups != 0)
    fail(blamed("expert_groups"), fmt::format("{} does not divide the {} experts", groups, m.experts));
  for (const char* list : {"mlp_only_layers"}) {
    const auto* found = key(list, false);
    if (!found || found->is_null()) continue;
    const bool good_list =
        found->is_array() && std::all_of(found->begin(), found->end(), [&](const nlohmann::json& one) {
          return one.is_number_unsigned() && one.get<std::uint64_t>() < std::uint64_t(s.layers);
        });
    if (!good_list)
      return fail(list, found->is_array() ? fmt::format("must be a list of layer numbers below {}", s.layers)
                                          : "must be a list of layer numbers");
  }
  if (!good() || !has("sparse")) return;
  m.dense.resize(static_cast<std::size_t>(s.layers));
  for (layer_ = 0; layer_ < s.layers && good(); ++layer_)
    m.dense[static_cast<std::size_t>(layer_)] = !truth(evaluate_setting("sparse").value);
  layer_ = -1;
  if (std::none_of(m.dense.begin(), m.dense.end(), [](bool dense) { return dense; })) m.dense.clear();
}

/// Settings that differ from layer to layer.
void ShapeReader::read_layers(TransformerShape& s) {
  static constexpr const char* kByLayer[] = {"mixer", "feed_forward", "layer_heads", "layer_kv_heads",
                                             "layer_head_channels", "layer_value_channels", "layer_intermediate",
                                             "layer_rank", "layer_indexed", "layer_sinks", "layer_block",
                                             "layer_shared"};
  if (std::none_of(std::begin(kByLayer), std::end(kByLayer), [&](const char* name) { return has(name); })) return;
  s.each.resize(static_cast<std::size_t>(s.layers));
  for (layer_ = 0; layer_ < s.layers && good(); ++layer_) {
    LayerShape& own = s.each[static_cast<std::size_t>(layer_)];
    own.mixer = Mixer(choice("mixer", "attention mamba mamba2 attention_and_mamba2 delta convolution recurrence none "
                                    "weighted_average fourier matrix_memory"));
    own.feed_forward = FeedForward(choice("feed_forward", "by_list dense experts none gated_mix"));
    own.heads = number("layer_heads", 0, kMaximumHeads);
    own.kv_heads = number("layer_kv_heads", 0, kMaximumHeads);
    own.head_channels = width("layer_head_channels");
    own.value_channels = width("layer_value_channels");
    own.intermediate = width("layer_intermediate");
    own.key_value_rank = width("layer_rank");
    own.indexed = !has("layer_indexed") || truth(evaluate_setting("layer_indexed").value);
    own.shared_block = has("layer_shared") && truth(evaluate_setting("layer_shared").value);
    own.sinks = !has("layer_sinks") || truth(evaluate_setting("layer_sinks").value);
    if (!text("layer_block").empty())
      own.block = choice("layer_block", "pre_norm post_norm parallel parallel_two_norms sandwich norm_after");
    const std::int64_t heads = own.heads ? own.heads : s.heads, kv = own.kv_heads ? own.kv_heads : s.kv_heads;
    if (good() && heads % kv != 0)
      fail(blamed(has("layer_kv_heads") ? "layer_kv_heads" : "layer_heads"),
           fmt::format("{} key heads do not divide the {} attention heads of layer {}", kv, heads, layer_));
    const auto missing = [&](bool is, const char* what) {
      if (good() && is) fail(blamed("mixer"), fmt::format("layer {} is a {} whose sizes are not given", layer_, what));
    };
    missing(own.mixer == Mixer::selective_scan && (s.states.inner == 0 || s.states.rank == 0), "scan");
    missing((own.mixer == Mixer::state_space || own.mixer == Mixer::attention_and_state_space) &&
                (s.states.inner == 0 || s.states.heads == 0),
            "state space");
    missing((own.mixer == Mixer::delta || own.mixer == Mixer::matrix_memory) && s.delta.key_heads == 0, "delta net");
    missing(own.mixer == Mixer::short_convolution && s.convolution_kernel == 0, "convolution");
    missing(own.mixer == Mixer::recurrence && (s.recurrence_channels == 0 || s.convolution_kernel == 0), "recurrence");
    missing(own.mixer == Mixer::weighted_average && s.recurrence_channels == 0, "weighted average");
    missing(own.shared_block && s.shared.blocks == 0, "scan behind a shared block");
    missing(own.feed_forward == FeedForward::experts && s.moe.experts == 0, "mixture of experts");
  }
  layer_ = -1;
}

void ShapeReader::read_encoder(TransformerShape& s) {
  s.encoder_layers = number("encoder_layers", 0, kMaximumLayers);
  if (s.encoder_layers == 0) return;
  s.encoder_heads = number("encoder_heads", 0, kMaximumHeads);
  s.encoder_intermediate = width("encoder_intermediate");
  s.encoder_positions = number("encoder_positions", 0, kMaximumPositions);
  if (has("encoder_heads") && good() && s.encoder_heads == 0)
    return fail(blamed("encoder_heads"), fmt::format("must be between 1 and {}, not 0", kMaximumHeads));
  if (good() && s.encoder_heads > 0 && s.hidden % s.encoder_heads != 0)
    fail(blamed("encoder_heads"),
         fmt::format("{} heads do not divide the hidden size {}", s.encoder_heads, s.hidden));
}

void ShapeReader::read_inputs(TransformerShape& s) {
  s.audio.bins = number("audio_bins", 0, 1 << 16);
  s.audio.positions = number("audio_positions", s.audio.bins > 0 ? 1 : 0, 1 << 24);
  if (s.audio.bins > 0 && s.encoder_layers == 0) s.positions = s.audio.positions;
  if (has("image_channels")) read_picture(s);
  RelativePositions& r = s.relative;
  r.rows = number("distance_rows", 0, kMaximumPositions);
  if (r.rows == 0) return;
  r.content_to_position = flag("content_to_position");
  r.position_to_content = flag("position_to_content");
  r.own_projections = flag("distance_projections");
  r.fixed = flag("distances_fixed");
}

void ShapeReader::read_picture(TransformerShape& s) {
  for (const char* both : {"image_size", "patch_size"})
    if (const auto* found = key(both, false); found && found->is_array() && found->size() != 2)
      return fail(both, fmt::format("must be a size or two of them, height and width, up to {}", kMaximumWidth));
  PatchInput& image = s.image;
  image.channels = number("image_channels", 1, 1 << 16);
  image.height = number("image_height", 1, kMaximumWidth);
  image.width = number("image_width", 1, kMaximumWidth);
  image.patch_height = number("patch_height", 1, kMaximumWidth);
  image.patch_width = number("patch_width", 1, kMaximumWidth);
  image.step_height = width("step_height");
  image.step_width = width("step_width");
  image.registers = number("image_registers", 0, 1 << 16);
  image.tokens = number("image_tokens", 0, 1 << 16) + image.registers;
  image.bias = flag("patch_bias");
  image.positions = flag("image_positions");
  s.label_mean = flag("label_mean");
  s.attention_pool = flag("attention_pool");
  if (good() && (image.height < image.patch_height || image.width < image.patch_width))
    return fail("patch_size", "is larger than the picture");
  if (good()) s.positions = image.patches() + image.tokens;
}

void ShapeReader::check(TransformerShape& s) {
  const bool tower = s.image.channels > 0 || (s.audio.bins > 0 && s.encoder_layers == 0);
  if (s.vocabulary == 0 && !tower)
    fail(blamed("vocabulary"), fmt::format("must be between 1 and {}, not 0", kMaximumVocabulary));
  const bool feeds = s.each.empty() || std::any_of(s.each.begin(), s.each.end(), [](const LayerShape& own) {
                       return own.feed_forward == FeedForward::by_list || own.feed_forward == FeedForward::dense;
                     });
  const bool dense = s.moe.experts == 0 || std::find(s.moe.dense.begin(), s.moe.dense.end(), true) != s.moe.dense.end();
  if (good() && s.intermediate == 0 && feeds && dense)
    fail(blamed("intermediate"), fmt::format("must be between 1 and {}, not 0", kMaximumWidth));
}

void ShapeReader::note(TransformerShape& s) {
  for (const Refusal& one : family_.notes)
    if (truth(evaluate_text(one.condition).value)) s.warnings.push_back(filled(one.words));
  const std::int64_t window = number("window", 0, kMaximumPositions);
  if (good() && window > 0 && window < s.default_sequence())
    s.warnings.push_back(fmt::format("{} {}{} is not modelled: attention is counted over the whole sequence",
                                     blamed("window"), window, text("window_layers")));
}

}  // namespace turnpoint::huggingface
