// std::chrono::duration, for options. Of libstdc++ the part of <chrono> that has it: calendars, and the streams that they are
// written to, are a tenth of what loader.hpp takes to compile.
#pragma once

#include <leat/compiler.hpp>

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
