// The subcommands of `windlass`. Each takes the words after its name and returns an exit code.
#ifndef WINDLASS_COMMANDS_COMMANDS_H
#define WINDLASS_COMMANDS_COMMANDS_H

#include "windlass/Commands/Console.h"

#include <string>
#include <vector>

namespace windlass {

int runCheck(Console &console, const std::vector<std::string> &words);
int runPlan(Console &console, const std::vector<std::string> &words);
int runEmit(Console &console, const std::vector<std::string> &words);
int runTrain(Console &console, const std::vector<std::string> &words);
int runProfile(Console &console, const std::vector<std::string> &words);
int runSimulate(Console &console, const std::vector<std::string> &words);
int runDoctor(Console &console, const std::vector<std::string> &words);
int runExplain(Console &console, const std::vector<std::string> &words);
int runDiff(Console &console, const std::vector<std::string> &words);
int runReport(Console &console, const std::vector<std::string> &words);
int runWatch(Console &console, const std::vector<std::string> &words);
int runCheckpoint(Console &console, const std::vector<std::string> &words);
int runPlaceExperts(Console &console, const std::vector<std::string> &words);
int runSchedule(Console &console, const std::vector<std::string> &words);
int runCache(Console &console, const std::vector<std::string> &words);
/// Runs a subcommand of `windlass-opt`, not of `windlass`.
int runRandomPlan(Console &console, const std::vector<std::string> &words);

} // namespace windlass

#endif
