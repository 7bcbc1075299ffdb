#!/usr/bin/env bash
# Runs the engine's C++ tests under AddressSanitizer with UndefinedBehaviorSanitizer, then under ThreadSanitizer.
# Builds go to build/sanitize-*, or below the folder given as first argument. CMAKE and JOBS may be set.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
mkdir -p "$build"

for kind in address,undefined thread; do
    folder=$build/sanitize-${kind%%,*}
    {
        "${CMAKE:-cmake}" -S . -B "$folder" -DSIMFA_CORE_TESTS=ON -DSIMFA_SANITIZE="$kind" -DCMAKE_BUILD_TYPE=Debug \
            -DCMAKE_CXX_FLAGS="-O1 -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS"
        "${CMAKE:-cmake}" --build "$folder" --parallel "${JOBS:-2}" --target simfa_core_tests
    } >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
    echo "sanitizers $kind:"
    # ThreadSanitizer's shadow memory does not fit every address layout that the kernel may draw.
    setarch --addr-no-randomize "$folder/simfa_core_tests"
done
