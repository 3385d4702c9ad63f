#include <leat/loader.hpp>
