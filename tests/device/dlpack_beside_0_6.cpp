// A header as old as Debian's first, which has neither the versioned struct nor a name for bool: ours adds both.
#include "tests/device/dlpack_0_6.h"

#include <leat/dlpack.h>

static_assert(DLDataType{kDLBool, 8, 1}.code == 6);
static_assert(sizeof(DLManagedTensorVersioned) == 80);
