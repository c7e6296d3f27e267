// SPDX-License-Identifier: MIT
// mpssm convert
#include "mpssm/run/convert.h"

#include <memory>

#include "mpssm/ops/runtime.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {

void add_convert(CLI::App& app, Action& action) {
  auto options = std::make_shared<run::ConvertOptions>();
  CLI::App* verb = app.add_subcommand("convert", "A trained run in another form, same predictions");
  verb->add_option("run", options->run, "run folder with a dense W")->required();
  verb->add_option("--to", options->to, "form: diagonal")->required();
  verb->add_option("--out", options->out, "folder of the new run")->type_name("DIR")->required();
  verb->add_option("--tolerance", options->tolerance, "how much rounding may grow (1e-3)");
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
  auto json = std::make_shared<bool>(false);
  add_json(*verb, *json);
  verb->footer(R"(
Examples:
  mpssm convert runs/dense --to diagonal --out runs/diagonal

W = V S V^-1: V goes into B, V^-1 into what follows, so that thousands of hops take the memory of one.
Refused, with the number, where the eigenvectors V are so close to dependent that rounding shows.)");
  verb->callback([=, &action] {
    action = [=] {
      only_json_on_stdout(*json);
      ops::set_process_threads(0);
      const run::Converted converted = run::convert(*options);
      print(run::to_text(converted));
      if (*json) print_json(run::to_json(converted));
      return 0;
    };
  });
}

}  // namespace mpssm::cli
