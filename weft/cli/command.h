// The sub-commands of `weft`. Each adds itself to the parser and stores what it does in `action`.
#pragma once

#include <functional>
#include <string>

#include "weft/library/library.h"

namespace CLI {
class App;
}

namespace weft::cli {

/// Runs the chosen sub-command. Returns the exit code; throws Error for users' mistakes.
using Action = std::function<int()>;

/// `library` must outlive the action. `program` is the name of this program in the commands that it recommends.
void add_train(CLI::App& app, Action& action, const Library& library, const std::string& program);
/// Trains on several ranks through mpirun.
void add_launch(CLI::App& app, Action& action, const Library& library, const std::string& program);
void add_init(CLI::App& app, Action& action, const Library& library, const std::string& program);
void add_data(CLI::App& app, Action& action, const Library& library);
void add_pack(CLI::App& app, Action& action, const Library& library, const std::string& program);
/// Searches the keys of a recipe; `show` prints what was found.
void add_tune(CLI::App& app, Action& action, const Library& library, const std::string& program);
void add_eval(CLI::App& app, Action& action, const Library& library);
void add_predict(CLI::App& app, Action& action, const Library& library);
void add_import(CLI::App& app, Action& action, const Library& library);
void add_compile(CLI::App& app, Action& action, const Library& library);
void add_infer(CLI::App& app, Action& action, const Library& library);
void add_export(CLI::App& app, Action& action, const Library& library);
void add_quantize(CLI::App& app, Action& action, const Library& library);
void add_explain(CLI::App& app, Action& action, const Library& library);
void add_plot(CLI::App& app, Action& action, const Library& library);
void add_compare(CLI::App& app, Action& action, const Library& library);
void add_graph(CLI::App& app, Action& action, const Library& library);
void add_models(CLI::App& app, Action& action, const Library& library);
void add_recipes(CLI::App& app, Action& action, const Library& library);
void add_keys(CLI::App& app, Action& action, const Library& library);
void add_ops(CLI::App& app, Action& action, const Library& library);
void add_completion(CLI::App& app, Action& action, const std::string& program);
/// `app` must outlive the action: its pages are those of all sub-commands.
void add_man(CLI::App& app, Action& action, const Library& library, const std::string& program);
void add_cluster(CLI::App& app, Action& action);
/// Predicts a run on this machine or on others; with a deadline or a budget, chooses the machine.
void add_plan(CLI::App& app, Action& action, const Library& library);
void add_simulate(CLI::App& app, Action& action, const Library& library);
void add_rates(CLI::App& app, Action& action, const Library& library);
void add_bench(CLI::App& app, Action& action, const Library& library);
/// For developers: runs the same steps as another program, from the same weights and batches. Not listed in --help.
void add_check_steps(CLI::App& app, Action& action, const Library& library);

/// "weft" for "build/weft", as shells and manual pages know the program.
std::string name_of_program(const std::string& path);

}  // namespace weft::cli
