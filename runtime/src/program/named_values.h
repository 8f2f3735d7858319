// Values of parameters from files that others wrote, by name.
#ifndef WINDLASS_RT_SRC_PROGRAM_NAMED_VALUES_H
#define WINDLASS_RT_SRC_PROGRAM_NAMED_VALUES_H

#include "windlass/rt/program.h"
#include "windlass/rt/safetensors.h"
#include "windlass/rt/status.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace windlass::rt {

/// Fails where a file's tensor is not of the parameter's sizes.
status check_sizes(const parameter_entry &row, const safetensors_file &file, const safetensors_entry &entry);

/// Tensors of safetensors files, taken for the parameters that have their names. A model and its base differ in the
/// first part of their names ("transformer.wte.weight" and "wte.weight"): that part is left out on one side where more
/// parameters are found so. A table of ids that several layers share may have the name of one layer in the model and
/// that of another in the file; it is found by its sizes then (`choose_table`).
class named_values {
public:
  struct tensor {
    const safetensors_file *file = nullptr; ///< null: no tensor has the name
    const safetensors_entry *entry = nullptr;
  };

  /// Opens safetensors files, or indices of several (`model.safetensors.index.json`), whose files lie beside them, and
  /// decides how names are compared. Fails where two files have a tensor of the same name, where a tensor has
  /// other sizes than its parameter, and where no tensor has the name of a parameter.
  status open(const std::vector<std::string> &paths, const job &j);
  tensor find(const std::string &parameter) const;
  /// Says how many parameters have values here, which have none, and which tensors are not used.
  std::string describe(const job &j) const;

private:
  status open_file(const std::string &path);
  status open_index(const std::string &path);
  /// Sets the heads with which most parameters are found; returns their number.
  std::int64_t choose_heads(const job &j);
  struct leftovers {
    std::vector<const parameter_entry *> parameters; ///< those without a tensor
    std::vector<const safetensors_entry *> tensors;  ///< those that no parameter takes
  };
  leftovers find_leftovers(const job &j) const;
  /// Takes the one tensor left over for the one parameter left over, where both are tables with as many rows as an
  /// input has ids, and of the same sizes.
  void choose_table(const job &j);

  std::vector<safetensors_file> files_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> tensors_; ///< number of file and of entry
  /// What names of parameters, or of tensors, have in front and is left out; at most one is not empty.
  std::string parameter_head_, tensor_head_;
  /// The parameter that has a table under another name, and that name; empty where there is none.
  std::string table_, name_of_table_;
};

} // namespace windlass::rt

#endif
