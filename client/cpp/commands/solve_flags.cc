#include "client/cpp/commands/solve_flags.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

namespace sap::client {
namespace {

// Rejects only what the message cannot hold.
std::string SetTimeBudget(const std::string& text, SolveOptions* options) {
  constexpr double kLongest_s = 1e9;
  double seconds = 0;
  if (!CLI::detail::lexical_cast(text, seconds) || !(std::abs(seconds) <= kLongest_s)) {
    return "'" + text + "' is not a time in seconds; at most 1e9 is possible";
  }
  auto nanoseconds = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  // Positive times stay positive.
  if (seconds > 0) nanoseconds = std::max(nanoseconds, std::chrono::nanoseconds(1));
  options->time_budget = nanoseconds;
  return "";
}

std::optional<RestFlag> ReadRest(const std::string& text) {
  const size_t comma = text.find(',');
  RestFlag rest;
  const bool read = comma != std::string::npos &&
                    CLI::detail::lexical_cast(text.substr(0, comma), rest.horizon) &&
                    CLI::detail::lexical_cast(text.substr(comma + 1), rest.tolerance);
  if (!read || !std::isfinite(rest.horizon) || !(rest.horizon > 0) ||
      !std::isfinite(rest.tolerance) || !(rest.tolerance > 0)) {
    return std::nullopt;
  }
  return rest;
}

}  // namespace

CLI::Validator OutputFile() {
  const auto check = [](const std::string& path) {
    std::error_code unknown;
    const std::filesystem::path folder = std::filesystem::absolute(path, unknown).parent_path();
    const bool possible = std::filesystem::is_directory(folder, unknown) &&
                          !std::filesystem::is_directory(path, unknown);
    return possible ? std::string() : "'" + path + "' cannot be a file";
  };
  return CLI::Validator(check, "FILE");
}

void AddCredentialFlags(CLI::App* command, Credentials* credentials) {
  CLI::Option* server = command->get_option("--server");
  command->add_flag("--tls", credentials->tls, "Encrypt, and verify the server's certificate")
      ->needs(server);
  const auto add = [&](const char* name, std::string* value, const char* help) {
    return command->add_option(name, *value, help)->needs(server);
  };
  add("--tls-ca", &credentials->server_ca,
      "CA (PEM) of the server's certificate, in place of the CAs of the system");
  CLI::Option* certificate =
      add("--tls-cert", &credentials->certificate, "Client certificate (PEM)");
  CLI::Option* key = add("--tls-key", &credentials->key, "Its private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  add("--tls-server-name", &credentials->server_name,
      "Name expected in the server's certificate, if it is not the host");
  add("--token-file", &credentials->token_file, "File with the bearer token that every call sends");
}

void AddServerFlags(CLI::App* command, SolveFlags* flags) {
  command->option_defaults()->group("Server");
  CLI::Option* server = command->add_option(
      "--server", flags->server, std::string(kServerHelp) + "; default: an embedded server");
  command->add_option("--threads", flags->connect.threads, "Solver threads of an embedded server")
      ->check(CLI::Range(1, 1024))
      ->excludes(server);
  command->add_flag("--low-latency", flags->connect.low_latency,
                    "Poll for answers, and ask the server to keep processors awake between steps");
  command->add_flag("--allow-mixed-servers", flags->connect.allow_mixed_servers,
                    "Go on with a session or replay at servers of another version or instruction "
                    "set, and so with other bits");
  command
      ->add_option("--scene-connections", flags->connect.scene_connections,
                   "Most connections over which a call or session divides a large scene")
      ->check(CLI::Range(1, 64))
      ->needs(server);
  AddCredentialFlags(command, &flags->connect.credentials);
}

void AddSolverFlags(CLI::App* command, SolveFlags* flags) {
  command->option_defaults()->group("Solver");
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
  const std::map<std::string, InteriorPoint> choices{{"auto", InteriorPoint::kAuto},
                                                     {"never", InteriorPoint::kNever},
                                                     {"always", InteriorPoint::kAlways}};
  command
      ->add_option("--interior-point", solver->interior_point,
                   "auto, never or always: islands that the accelerated method hands over")
      ->transform(OneOf(choices));
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
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command->add_option_function<std::string>(
      "--time-budget",
      [flags](const std::string& text) {
        const std::string error = SetTimeBudget(text, &flags->options);
        if (!error.empty()) throw CLI::ValidationError("--time-budget", error);
      },
      "Seconds after which the best iterate is returned");
}

void AddRestFlag(CLI::App* command, const char* help, SolveOptions* options,
                 std::optional<RestFlag>* rest) {
  const auto set = [options, rest](const std::string& text) {
    *rest = ReadRest(text);
    if (!*rest) {
      throw CLI::ValidationError("--rest",
                                 "'" + text + "' is not HORIZON,TOLERANCE, two finite numbers > 0");
    }
    options->solver.rest = {.horizon = (*rest)->horizon};
  };
  command->add_option_function<std::string>("--rest", set, help);
}

}  // namespace sap::client
