#include "train/run/records/h5.h"

#include <hdf5.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "train/system/file_kind.h"
#include "train/system/files.h"
#include "train/system/stored_bytes.h"

namespace difftape::run::h5 {

/// An HDF5 identifier with the function that releases it.
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

namespace {

constexpr std::size_t kImageGrowth = 1 << 22;  // bytes by which a file in memory grows
constexpr hsize_t kChunkRows = 4096;           // of a compressed dataset
constexpr const char* kRemedy = "restore the file or write it again";

template <class T>
hid_t memory_type() {
  if constexpr (std::same_as<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::same_as<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::same_as<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::same_as<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::same_as<T, std::int64_t>) return H5T_NATIVE_INT64;
}

/// Returns the error message of the innermost HDF5 function in the call that just failed.
std::string reason() {
  std::string text = "unknown reason";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        *static_cast<std::string*>(out) = error->desc;
        return 1;  // stop
      },
      &text);
  return text;
}

// Property lists and types are created once: releasing one would clear the HDF5 error stack.

/// Returns properties without creation times, so that equal contents give equal bytes.
hid_t untimed_dataset() {
  static const hid_t made = [] {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(list, false);
    return list;
  }();
  return made;
}

hid_t text_type() {
  static const hid_t made = [] {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
  }();
  return made;
}

hid_t with_groups_on_the_way() {
  static const hid_t made = [] {
    const hid_t list = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(list, 1);
    H5Pset_char_encoding(list, H5T_CSET_UTF8);
    return list;
  }();
  return made;
}

/// Returns properties for reading without file locks, which some network file systems lack; a
/// checkpoint has its digest, and nothing is written to a file that is open here.
hid_t without_locks() {
  static const hid_t made = [] {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(list, false, true);
    return list;
  }();
  return made;
}

}  // namespace

struct File::State {
  std::filesystem::path path;
  Handle file;
  std::size_t user_block = 0;

  OutputError cannot_write(const std::string& object) const {
    return OutputError(fmt::format("{}: cannot write {}: {}", path.string(), object, reason()));
  }
  DataError cannot_read(const std::string& object) const {
    return DataError(
        fmt::format("{}: cannot read {}: {}; {}", path.string(), object, reason(), kRemedy));
  }
  Handle open_dataset(const std::string& name) const {
    Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset.valid()) throw cannot_read(name);
    return dataset;
  }
  /// Opens an attribute with exactly one element.
  Handle open_attribute(const std::string& object, const std::string& name) const {
    Handle attribute(H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                     H5Aclose);
    if (!attribute.valid()) throw cannot_read(object + ", attribute " + name);
    const Handle space(H5Aget_space(attribute), H5Sclose);
    const hssize_t found = H5Sget_simple_extent_npoints(space);
    throw_if<DataError>(found != 1, "{}: attribute {} of {} has {} values, but must have one; {}",
                        path.string(), name, object, found, kRemedy);
    return attribute;
  }
};

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File::~File() = default;

File File::create(const std::filesystem::path& path, std::size_t user_block) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are thrown, not printed
  const Handle in_memory(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(in_memory, kImageGrowth, false);
  const Handle layout(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(layout, user_block);
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, layout, in_memory), H5Fclose);
  throw_if<OutputError>(!file.valid(), "{}: cannot create an HDF5 file: {}", path.string(),
                        reason());
  return File(std::unique_ptr<State>(new State{path, std::move(file), user_block}));
}

File File::open(const std::filesystem::path& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  if (access(path.c_str(), R_OK) != 0) {
    throw MissingInput(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  }
  const bool is_hdf5 = system::is_file(path) && H5Fis_hdf5(path.c_str()) > 0;
  if (!is_hdf5 && system::is_file(path))
    system::refuse_other(path, system::StoredBytes(path).all(), "an HDF5 file");
  throw_if<DataError>(!is_hdf5, "{}: is not an HDF5 file, but must be one; {}", path.string(),
                      kRemedy);
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, without_locks()), H5Fclose);
  throw_if<DataError>(!file.valid(), "{}: cannot open the HDF5 file: {}; {}", path.string(),
                      reason(), kRemedy);
  return File(std::unique_ptr<State>(new State{path, std::move(file), 0}));
}

template <Element T>
void File::write(const std::string& dataset, const Shape& shape, std::span<const T> values,
                 Storage storage) {
  require_shape(shape.size() == std::ssize(values), "h5",
                "{} has {} values, but its shape {} needs {}", dataset, values.size(), shape.str(),
                shape.size());
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const Handle space(H5Screate_simple(shape.rank(), extents.data(), nullptr), H5Sclose);
  const Handle made(H5Pcopy(untimed_dataset()), H5Pclose);
  if (storage == Storage::compressed && !extents.empty() && extents[0] > kChunkRows) {
    std::vector<hsize_t> chunk = extents;
    chunk[0] = kChunkRows;
    H5Pset_chunk(made, shape.rank(), chunk.data());
    H5Pset_deflate(made, 1);
  }
  const Handle created(H5Dcreate2(state_->file, dataset.c_str(), memory_type<T>(), space,
                                  with_groups_on_the_way(), made, H5P_DEFAULT),
                       H5Dclose);
  if (!created.valid() ||
      H5Dwrite(created, memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    throw state_->cannot_write(dataset);
}

void File::write(const std::string& dataset, const Tensor& tensor) {
  write<real>(dataset, tensor.shape(), tensor.values());
}

void File::set_attribute(const std::string& object, const std::string& name, hid_t type,
                         const void* value) {
  if (!exists(object)) {
    Handle(H5Gcreate2(state_->file, object.c_str(), with_groups_on_the_way(), H5P_DEFAULT,
                      H5P_DEFAULT),
           H5Gclose);
  }
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate_by_name(state_->file, object.c_str(), name.c_str(), type, space,
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  if (!attribute.valid() || H5Awrite(attribute, type, value) < 0)
    throw state_->cannot_write(object + ", attribute " + name);
}

void File::set_attribute(const std::string& object, const std::string& name,
                         const std::string& value) {
  const char* text = value.c_str();
  set_attribute(object, name, text_type(), &text);
}

void File::set_attribute(const std::string& object, const std::string& name, std::int64_t value) {
  set_attribute(object, name, H5T_NATIVE_INT64, &value);
}

void File::save(const std::function<void(std::span<std::byte>)>& finish) {
  void* handle = nullptr;  // the in-memory driver returns the address of its data pointer
  if (H5Fflush(state_->file, H5F_SCOPE_LOCAL) < 0 ||
      H5Fget_vfd_handle(state_->file, H5P_DEFAULT, &handle) < 0)
    throw state_->cannot_write("the file");
  // Flush only once: a second flush may release space and shorten the image.
  const auto size = static_cast<std::size_t>(H5Fget_file_image(state_->file, nullptr, 0));
  const std::span<std::byte> image{*static_cast<std::byte**>(handle), size + state_->user_block};
  if (finish) finish(image);
  system::replace_text(state_->path, {reinterpret_cast<const char*>(image.data()), image.size()});
}

bool File::exists(const std::string& object) const {
  for (size_t end = object.find('/', 1); end != std::string::npos; end = object.find('/', end + 1))
    if (H5Lexists(state_->file, object.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  return object == "/" || H5Lexists(state_->file, object.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> File::children(const std::string& group) const {
  const Handle opened(H5Gopen2(state_->file, group.c_str(), H5P_DEFAULT), H5Gclose);
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  if (!opened.valid() ||
      H5Literate(opened, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0)
    throw state_->cannot_read(group);
  return names;
}

Shape File::shape(const std::string& dataset) const {
  const Handle opened = state_->open_dataset(dataset);
  const Handle space(H5Dget_space(opened), H5Sclose);
  std::array<hsize_t, H5S_MAX_RANK> extents;
  const int rank = H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  if (rank < 0) throw state_->cannot_read(dataset);
  const std::vector<Index> shape(extents.begin(), extents.begin() + rank);
  throw_if<DataError>(rank > Shape::kMaxRank, "{}: {} has {} axes, but must have at most {}; {}",
                      state_->path.string(), dataset, rank, Shape::kMaxRank, kRemedy);
  return Shape(shape);
}

namespace {

/// Throws DataError unless the dataset has an integer type; HDF5 truncates fractions silently.
void require_integers(const Handle& dataset, const std::filesystem::path& path,
                      const std::string& name) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  const H5T_class_t found = H5Tget_class(type);
  throw_if<DataError>(
      found != H5T_INTEGER,
      "{}: {} holds {}, but must hold integers; write it with an integer type", path.string(), name,
      found == H5T_FLOAT ? "floating-point numbers" : "values that are not numbers");
}

}  // namespace

template <Element T>
void File::read(const std::string& dataset, std::span<T> into) const {
  const Shape found = shape(dataset);
  throw_if<DataError>(found.size() != std::ssize(into),
                      "{}: {} has the shape {}, but must have {} values; {}", state_->path.string(),
                      dataset, found.str(), into.size(), kRemedy);
  const Handle opened = state_->open_dataset(dataset);
  if (std::integral<T>) require_integers(opened, state_->path, dataset);
  if (H5Dread(opened, memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, into.data()) < 0)
    throw state_->cannot_read(dataset);
}

void File::read_range(const std::string& dataset, Index begin, std::span<std::int64_t> into) const {
  const Handle opened = state_->open_dataset(dataset);
  require_integers(opened, state_->path, dataset);
  const Handle space(H5Dget_space(opened), H5Sclose);
  const hsize_t first = static_cast<hsize_t>(begin), count = into.size();
  const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
  if (H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &count, nullptr) < 0 ||
      H5Dread(opened, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, into.data()) < 0)
    throw state_->cannot_read(dataset);
}

std::optional<File::Contiguous> File::contiguous(const std::string& dataset) const {
  const Handle opened = state_->open_dataset(dataset);
  const Handle type(H5Dget_type(opened), H5Tclose);
  const Handle made(H5Dget_create_plist(opened), H5Pclose);
  const Handle file_made(H5Fget_create_plist(state_->file), H5Pclose);
  hsize_t user_block = 0;
  H5Pget_userblock(file_made, &user_block);
  const haddr_t offset = H5Dget_offset(opened);
  const std::size_t width = H5Tget_size(type);
  const bool integers =
      H5Tget_class(type) == H5T_INTEGER && (width == 1 || H5Tget_order(type) == H5T_ORDER_LE) &&
      H5Tget_precision(type) == 8 * width && (width >= 4 || H5Tget_sign(type) == H5T_SGN_NONE);
  if (!integers || H5Pget_layout(made) != H5D_CONTIGUOUS || user_block != 0 ||
      offset == HADDR_UNDEF)
    return std::nullopt;
  return Contiguous{static_cast<std::size_t>(offset), width};
}

std::string File::string_attribute(const std::string& object, const std::string& name) const {
  const Handle attribute = state_->open_attribute(object, name);
  const Handle type(H5Aget_type(attribute), H5Tclose);
  char* text = nullptr;
  throw_if<DataError>(
      H5Tis_variable_str(type) <= 0 || H5Aread(attribute, type, &text) < 0 || text == nullptr,
      "{}: attribute {} of {} is not a variable-length string, but must be one; {}",
      state_->path.string(), name, object, kRemedy);
  std::string value = text;
  H5free_memory(text);
  return value;
}

std::int64_t File::int_attribute(const std::string& object, const std::string& name) const {
  std::int64_t value = 0;
  const Handle attribute = state_->open_attribute(object, name);
  if (H5Aread(attribute, H5T_NATIVE_INT64, &value) < 0)
    throw state_->cannot_read(object + ", attribute " + name);
  return value;
}

template void File::write(const std::string&, const Shape&, std::span<const float>, Storage);
template void File::read(const std::string&, std::span<float>) const;
template void File::write(const std::string&, const Shape&, std::span<const double>, Storage);
template void File::read(const std::string&, std::span<double>) const;
template void File::write(const std::string&, const Shape&, std::span<const std::uint8_t>, Storage);
template void File::read(const std::string&, std::span<std::uint8_t>) const;
template void File::write(const std::string&, const Shape&, std::span<const std::int32_t>, Storage);
template void File::read(const std::string&, std::span<std::int32_t>) const;
template void File::write(const std::string&, const Shape&, std::span<const std::int64_t>, Storage);
template void File::read(const std::string&, std::span<std::int64_t>) const;

}  // namespace difftape::run::h5

namespace difftape::run {

void write_tokenizer(h5::File& file, const std::string& group, const TokenizerFile& tokenizer) {
  if (!tokenizer.is_known()) return;
  const std::string at = group + "/tokenizer";
  const std::vector<std::uint8_t> bytes(tokenizer.model.begin(), tokenizer.model.end());
  file.write<std::uint8_t>(at, {std::ssize(bytes)}, bytes);
  file.set_attribute(at, "name", tokenizer.name);
}

TokenizerFile read_tokenizer(const h5::File& file, const std::string& group) {
  const std::string at = group + "/tokenizer";
  if (!file.exists(at)) return {};
  const auto bytes = file.read<std::uint8_t>(at);
  return {file.string_attribute(at, "name"), {bytes.begin(), bytes.end()}};
}

}  // namespace difftape::run
