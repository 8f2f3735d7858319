// Preloaded into a training program: lets one of its calls on a file go wrong, or something happen there. $CAUSE_FAULT says
//
//   <call> <part of the file's path> <number> <what> <value> <rank>
//
// The call is open, write, sync, rename, reserve (posix_fallocate), pread or pwrite; the number counts such calls from 1. What happens is
//
//   fail     it fails with the errno `value`
//   half     it writes half of what it is given, or reads half of what it is asked for, and says so
//   end      it reads nothing, as at the end of a file
//   signal   the process gets the signal `value`
//   wait     it and all later ones take `value` milliseconds more
//   memory   from then on the process gets no more than `value` KiB of memory
//   clock    from then on the time of day is `value` seconds later, or earlier
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char call[16], part[64], what[16];
static long number, value;
static atomic_long seen, shift;

__attribute__((constructor)) static void read_fault(void) {
  const char *text = getenv("CAUSE_FAULT"), *own = getenv("OMPI_COMM_WORLD_RANK");
  long rank = 0;
  if (text == NULL || strcmp(program_invocation_short_name, "train") != 0)
    return;
  if (sscanf(text, "%15s %63s %ld %15s %ld %ld", call, part, &number, what, &value, &rank) != 6)
    abort();
  if (rank != (own != NULL ? atol(own) : 0))
    call[0] = 0;
}

static void limit_memory(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1)
    abort();
  fclose(file);
  const rlim_t bytes = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + value * 1024);
  const struct rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

/// Returns whether the fault happens to this call and replaces it; what happens beside a call happens here.
static int is_replaced(const char *kind, const char *path) {
  if (strcmp(call, kind) != 0 || strstr(path, part) == NULL)
    return 0;
  const long now = ++seen;
  if (strcmp(what, "wait") == 0 && now >= number)
    usleep((useconds_t)value * 1000);
  if (now != number)
    return 0;
  if (strcmp(what, "signal") == 0)
    raise((int)value);
  else if (strcmp(what, "memory") == 0)
    limit_memory();
  else if (strcmp(what, "clock") == 0)
    shift = value;
  return strcmp(what, "fail") == 0 || strcmp(what, "half") == 0 || strcmp(what, "end") == 0;
}

/// The same for the file of a descriptor, or for `name` in the folder of a descriptor.
static int is_replaced_at(const char *kind, int descriptor, const char *name) {
  char link[40], path[4096] = "";
  if (call[0] == 0)
    return 0;
  if (name == NULL || name[0] != '/') {
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, 2048);
    path[length > 0 ? length : 0] = 0;
  }
  if (name != NULL) {
    strcat(path, "/");
    strncat(path, name, 1024);
  }
  return is_replaced(kind, path);
}

static int fail(void) {
  errno = (int)value;
  return -1;
}

/// Returns half of `bytes`, rounded down to whole pages; all of them where they are one page or less.
static size_t half_pages(size_t bytes) { return bytes <= 4096 ? bytes : bytes / 2 / 4096 * 4096; }

ssize_t write(int descriptor, const void *data, size_t bytes) {
  static ssize_t (*next)(int, const void *, size_t);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "write");
  if (!is_replaced_at("write", descriptor, NULL))
    return next(descriptor, data, bytes);
  return strcmp(what, "half") == 0 ? next(descriptor, data, (bytes + 1) / 2) : fail();
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t offset) {
  static ssize_t (*next)(int, const void *, size_t, off_t);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "pwrite");
  if (!is_replaced_at("pwrite", descriptor, NULL))
    return next(descriptor, data, bytes, offset);
  return strcmp(what, "half") == 0 ? next(descriptor, data, half_pages(bytes), offset) : fail();
}

ssize_t pread(int descriptor, void *data, size_t bytes, off_t offset) {
  static ssize_t (*next)(int, void *, size_t, off_t);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "pread");
  if (!is_replaced_at("pread", descriptor, NULL))
    return next(descriptor, data, bytes, offset);
  if (strcmp(what, "end") == 0)
    return 0;
  return strcmp(what, "half") == 0 ? next(descriptor, data, half_pages(bytes), offset) : fail();
}

int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
  static int (*next)(int, off_t, off_t);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "posix_fallocate");
  return is_replaced_at("reserve", descriptor, NULL) ? (int)value : next(descriptor, offset, bytes);
}

int fsync(int descriptor) {
  static int (*next)(int);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "fsync");
  return is_replaced_at("sync", descriptor, NULL) ? fail() : next(descriptor);
}

int renameat(int from, const char *name, int to, const char *other) {
  static int (*next)(int, const char *, int, const char *);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "renameat");
  return is_replaced_at("rename", to, other) ? fail() : next(from, name, to, other);
}

int openat(int folder, const char *name, int flags, ...) {
  static int (*next)(int, const char *, int, ...);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return is_replaced_at("open", folder, name) ? fail() : next(folder, name, flags, mode);
}

int open(const char *name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return openat(AT_FDCWD, name, flags, mode);
}

int mkostemp(char *name, int flags) {
  static int (*next)(char *, int);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "mkostemp");
  return is_replaced_at("open", AT_FDCWD, name) ? fail() : next(name, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*next)(clockid_t, struct timespec *);
  if (next == NULL)
    *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(clock, now);
  if (clock == CLOCK_REALTIME)
    now->tv_sec += shift;
  return result;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL)
    *out = now.tv_sec;
  return now.tv_sec;
}
