// Python bindings of the engine; the only file of the core that includes Python headers.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.doc() = "Cycle-level engine of Sim-FA."; }
