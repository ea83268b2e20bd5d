#include "client/cpp/commands/solve_flags.h"

#include <chrono>
#include <cmath>
#include <map>

namespace sap::client {
namespace {

// Rejects only what the message cannot hold.
std::string SetTimeBudget(const std::string& text, SolveOptions* options) {
  constexpr double kLongest_s = 1e9;
  double seconds = 0;
  if (!CLI::detail::lexical_cast(text, seconds) || !(std::abs(seconds) <= kLongest_s)) {
    return "'" + text + "' is not a time in seconds; at most 1e9 is possible";
  }
  options->time_budget = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  return "";
}

}  // namespace

void AddCredentialFlags(CLI::App* command, Credentials* credentials) {
  command->add_flag("--tls", credentials->tls, "Encrypt, and verify the server's certificate");
  command->add_option("--tls-ca", credentials->server_ca,
                      "CA (PEM) of the server's certificate, in place of the CAs of the system");
  CLI::Option* certificate =
      command->add_option("--tls-cert", credentials->certificate, "Client certificate (PEM)");
  CLI::Option* key = command->add_option("--tls-key", credentials->key, "Its private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  command->add_option("--tls-server-name", credentials->server_name,
                      "Name expected in the server's certificate, if it is not the host");
  command->add_option("--token-file", credentials->token_file,
                      "File with the bearer token that every call sends");
}

void AddServerFlags(CLI::App* command, SolveFlags* flags) {
  CLI::Option* server = command->add_option(
      "--server", flags->server, std::string(kServerHelp) + "; default: an embedded server");
  command->add_option("--threads", flags->connect.threads, "Solver threads of an embedded server")
      ->check(CLI::Range(1, 1024))
      ->excludes(server);
  command->add_flag("--low-latency", flags->connect.low_latency,
                    "Poll for answers, and ask the server to keep processors awake between steps");
  command->add_flag("--allow-mixed-servers", flags->connect.allow_mixed_servers,
                    "Accept answers of servers that differ in version or instruction set, and so "
                    "in bits");
  AddCredentialFlags(command, &flags->connect.credentials);
}

void AddSolverFlags(CLI::App* command, SolveFlags* flags) {
  SolverOptions* solver = &flags->options.solver;
  const std::map<std::string, bool> switches{{"on", true}, {"off", false}};
  const std::map<std::string, NewtonMethod> methods{{"plain", NewtonMethod::kPlain},
                                                    {"accelerated", NewtonMethod::kAccelerated},
                                                    {"gauss-seidel", NewtonMethod::kGaussSeidel}};
  command->add_option("--tolerance", solver->relative_tolerance,
                      "Relative tolerance; default 1e-6");
  command
      ->add_option("--islands", solver->islands,
                   "on: solve each island separately; off: all as one")
      ->transform(OneOf(switches));
  command->add_option("--newton", solver->newton, "plain, accelerated or gauss-seidel")
      ->transform(OneOf(methods));
  command->add_flag_callback(
      "--coulomb", [solver] { solver->coulomb.emplace(); },
      "Exact Coulomb friction in place of the convex model");
  const std::map<std::string, Priority> priorities{{"normal", Priority::kNormal},
                                                   {"high", Priority::kHigh}};
  command
      ->add_option("--priority", flags->options.priority, "normal or high: order at a busy server")
      ->transform(OneOf(priorities));
  command
      ->add_option("--max-iterations", solver->max_iterations,
                   "Limit on Newton iterations per island")
      ->check(CLI::NonNegativeNumber);
  command->add_option_function<std::string>(
      "--time-budget",
      [flags](const std::string& text) {
        const std::string error = SetTimeBudget(text, &flags->options);
        if (!error.empty()) throw CLI::ValidationError("--time-budget", error);
      },
      "Seconds after which the best iterate is returned");
}

}  // namespace sap::client
