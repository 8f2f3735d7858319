// What all sources of data do with the arrays that they read: ids are checked, and epochs counted.
#ifndef WINDLASS_RT_SRC_PROGRAM_ARRAY_VALUES_H
#define WINDLASS_RT_SRC_PROGRAM_ARRAY_VALUES_H

#include "arrays.h"
#include "data.h"

namespace windlass::rt {

std::string quote_name(const input_entry &input);

/// Checks `count` ids as they are read; `position` is that of the first in its array. Negative ids other than an
/// input's padding are left to the kernels, because a label may be one on purpose (an index to ignore).
status check_ids(const input_entry &input, const file_array &array, element_type type, const std::byte *ids,
                 std::int64_t count, std::int64_t position);

/// Reads `count` elements from `first` on.
status read_array(const file_array &array, std::int64_t first, std::int64_t count, std::vector<std::byte> &buffer);

/// Reads `count` elements of `array` from `first` on through `buffer`, and fails where an id among them is one that
/// `input` does not take.
status scan_ids(const input_entry &input, const file_array &array, std::int64_t first, std::int64_t count,
                std::vector<std::byte> &buffer);

/// Fails where [first, first + count) goes beyond `epochs` times `per_epoch` micro-batches of `files`.
status check_epochs(const std::string &files, std::int64_t per_epoch, std::int64_t epochs, std::int64_t first,
                    std::int64_t count);

/// Whether elements of one type can become such of the other.
bool are_convertible(element_type from, element_type to);

} // namespace windlass::rt

#endif
