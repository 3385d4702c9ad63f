#include "stages/plan/describe_run.hpp"

#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"

#include <leat/loading.hpp>

#include <string_view>
#include <utility>

namespace leat::stages {

description describe_options(const loader_options& options, const run_shape& shape) {
  constexpr std::string_view policies[] = {"raise", "skip", "substitute"};
  description out;
  out.add("seed", options.seed);
  out.add("global_batch_size", shape.global_batch_size);
  out.add("batches_max", options.batches_max);
  out.add("on_corrupt", policies[static_cast<std::size_t>(options.on_corrupt)]);
  options.mix.describe(out);
  // Partners are a rank's own rows.
  if (options.mix.what != batch_mix::kind::none) out.add("mix.world_size", shape.world_size);
  return out;
}

std::shared_ptr<const state_descriptions> describe_run(const loader_options& options, const run_shape& shape,
                                                       const dataset& samples, std::span<const field> fields,
                                                       const sampler& order) {
  description of_samples;
  samples.model()->describe(of_samples);
  description of_fields;
  for (const field& each : fields) {
    description own;
    each.model().describe(own);
    of_fields.add(each.name(), own);
  }
  description of_order;
  order.describe(of_order);
  return std::make_shared<const state_descriptions>(describe_options(options, shape), std::move(of_samples),
                                                    std::move(of_fields), std::move(of_order));
}

}  // namespace leat::stages
