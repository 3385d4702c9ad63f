// What a leat::tokenizer holds.
#pragma once

#include "base/mutex.hpp"
#include "stages/tokenize/text_encoder.hpp"

#include <leat/digest.hpp>
#include <leat/tokenizer.hpp>

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace leat {

struct tokenizer::state {
  state(std::string from, const stages::tokenizer_parts& parts) : path(std::move(from)), encoder(parts) {}

  std::string path;
  stages::text_encoder encoder;
  digest identity;
  std::optional<std::int32_t> eos;
  mutable mutex one_at_a_time;
  mutable std::unique_ptr<stages::encode_scratch> scratch ABSL_GUARDED_BY(one_at_a_time);  // of encode()
};

}  // namespace leat
