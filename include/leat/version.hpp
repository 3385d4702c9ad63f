/// The version of these headers. CMakeLists.txt reads it from here, so there is no second place to change.
#pragma once

#define LEAT_VERSION_MAJOR 0
#define LEAT_VERSION_MINOR 1
#define LEAT_VERSION_PATCH 0
