// CUDA's driver, by name: a binary of ours runs where there is none.
#pragma once

namespace leat::stages {

/// The address of what libcuda.so.1 exports as `symbol`, of which some names end in a version (cuCtxPushCurrent_v2); null where
/// there is no such library, or no such function in it. Looks and calls nothing: cudaGetDriverEntryPoint(), which does not say
/// that it makes no context on the thread's device, is not asked.
/// Thread: any.
[[nodiscard]] void* find_in_driver(const char* symbol) noexcept;

}  // namespace leat::stages
