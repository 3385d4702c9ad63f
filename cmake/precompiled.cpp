// CMake hangs a precompiled header on a target, and a target has a source.
