// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/export/format.h"

namespace turnpoint {

// Each in the source of its name.
ExportFormat json_format(), csv_format(), dot_format(), svg_format(), trace_format(), results_json_format(),
    points_csv_format(), task_graph_format(), jax_format(), jax_explicit_format(), pytorch_format(),
    transformers_format(), megatron_format(), deepspeed_format(), torchtitan_format();

std::span<const ExportFormat> export_formats() {
  static const std::vector<ExportFormat> formats = {
      json_format(),       csv_format(),        dot_format(),          svg_format(),          trace_format(),
      task_graph_format(), jax_format(),        jax_explicit_format(), pytorch_format(),      transformers_format(),
      megatron_format(),   torchtitan_format(), deepspeed_format(),    results_json_format(), points_csv_format(),
  };
  return formats;
}

}  // namespace turnpoint
