// Compiler options of a run: threads, and which nodes compute in which type.
#pragma once

#include <functional>
#include <string>

#include "weft/compile/compile.h"
#include "weft/spec/run_spec.h"

namespace weft::spec {

/// A precision left to the machine is taken from automatic_precision(). Error(usage) where the backend lacks the run's
/// precision, or `precision_of` cannot be parsed.
CompileOptions compile_options(const RunSpec& given, const Backend& backend);

/// Sets the precision for another use of a trained model: `given`, or that of training where `given` is "". Where this
/// machine lacks the precision of training, sets f32 and gives `note` a line. Error(usage) where it lacks `given`.
void choose_precision(RunSpec& spec, const std::string& given, const Backend& backend,
                      const std::function<void(const std::string&)>& note);

/// Sets precision f32 and removes all exceptions from it; settings of kernels stay.
void fall_to_f32(RunSpec& spec);

/// The likely fastest precision that trains as well as f32: bf16 where the machine multiplies it faster, else f32.
std::string automatic_precision(const Backend& backend);
/// Sets that precision where the spec leaves it to the machine. Training decides by measuring instead:
/// program/automatic_precision.h.
void choose_automatic_precision(RunSpec& spec, const Backend& backend);

}  // namespace weft::spec
