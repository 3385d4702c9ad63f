// leat's DLPack header before libtorch's: the structs are declared once, and both name the same ones.
#include <leat/dlpack.h>
#include <leat/loader.hpp>
#include <leat/torch.hpp>

#include <ATen/DLConvertor.h>

static_assert(kDLROCM == 10 && kDLTrn == 18);
static_assert(requires(leat::batch_tensor view) { at::fromDLPack(view.dlpack_unversioned()); });
