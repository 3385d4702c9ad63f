// The loader, and the datasets, fields and orders that it takes.
#pragma once

#include <leat/dataset.hpp>
#include <leat/loading.hpp>
