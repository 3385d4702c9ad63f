// DLPack's own header first, of whatever version is installed (Debian's is 0.6, older than the versioned struct): ours then
// adds what is missing and checks each offset of theirs.
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#include <leat/dlpack.h>

#include <type_traits>

static_assert(std::is_standard_layout_v<DLManagedTensorVersioned> && std::is_trivially_copyable_v<DLTensor>);
