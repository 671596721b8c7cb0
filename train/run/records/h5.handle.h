#pragma once
// Identifiers, types and errors of HDF5, for h5.cpp alone.

#include <hdf5.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace difftape::run::h5 {

/// An HDF5 identifier and the function that releases it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

  bool valid() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

template <class T>
hid_t memory_type() {
  if constexpr (std::same_as<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::same_as<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::same_as<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::same_as<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::same_as<T, std::int64_t>) return H5T_NATIVE_INT64;
}

/// What the innermost function of HDF5 said about the call that just failed.
inline std::string reason() {
  std::string text = "unknown reason";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        *static_cast<std::string*>(out) = error->desc;
        return 1;  // no further
      },
      &text);
  return text;
}

// Property lists and types are made once: releasing one would forget the reason of an error.

/// For objects that carry no time of their making: equal contents give equal bytes.
inline hid_t untimed_dataset() {
  static const hid_t made = [] {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(list, false);
    return list;
  }();
  return made;
}

inline hid_t text_type() {
  static const hid_t made = [] {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
  }();
  return made;
}

inline hid_t with_groups_on_the_way() {
  static const hid_t made = [] {
    const hid_t list = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(list, 1);
    H5Pset_char_encoding(list, H5T_CSET_UTF8);
    return list;
  }();
  return made;
}

}  // namespace difftape::run::h5
