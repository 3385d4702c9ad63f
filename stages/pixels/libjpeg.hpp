// jpeglib.h, which uses FILE and size_t and includes neither.
#pragma once

#include <cstddef>
#include <cstdio>

// Stands alone, so that clang-format leaves it behind the two headers that it needs.
#include <jpeglib.h>
