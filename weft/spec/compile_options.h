// What the compiler is told of a run: threads, and in which types which nodes compute.
#pragma once

#include <functional>
#include <string>

#include "weft/compile/compile.h"
#include "weft/spec/run_spec.h"

namespace weft::spec {

/// A precision that is left to the machine counts as automatic_precision() says. Error(usage) where it lacks the run's
/// precision, or `precision_of` cannot be read.
CompileOptions compile_options(const RunSpec& given, const Backend& backend);

/// For another use of a trained model: the given precision, or, for "", that of training; f32, and a line for the user,
/// where this machine lacks that one. Error(usage) where it lacks the given one.
void choose_precision(RunSpec& spec, const std::string& given, const Backend& backend,
                      const std::function<void(const std::string&)>& note);

/// Computes in f32, without the exceptions from another type; what the spec says of kernels stays.
void fall_to_f32(RunSpec& spec);

/// The precision that trains as well as f32 and is likely to be the fastest: bf16 where the machine multiplies it
/// faster, else f32.
std::string automatic_precision(const Backend& backend);
/// Sets it where the spec leaves it to the machine. What trains decides by measuring: program/automatic_precision.h.
void choose_automatic_precision(RunSpec& spec, const Backend& backend);

}  // namespace weft::spec
