// Preloaded into a training program: counts its calls of the allocator, and writes at its end what they were by each
// line "step N loss ..." that a rank puts into its log, to $COUNT_ALLOCATIONS.<process>:
//
//   <thread> <step> <calls> <of these by libraries> <blocks in use> <resident KiB>
//
// A call belongs to who called malloc; those of C++ come from libstdc++ and count as the program's. "Libraries" are the
// MPI library and its parts, OpenBLAS, and the X of "libX.so" that they bring along.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The C library's own, under names that are not replaced.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long calls, library_calls, blocks;

static int is_library(void *caller) {
  static const char *const names[] = {"libmpi", "libopen-", "mca_", "libopenblas", "libpmix", "libhwloc", "libevent", "libuc", "libnuma"};
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
    return 0;
  const char *slash = strrchr(info.dli_fname, '/');
  const char *name = slash != NULL ? slash + 1 : info.dli_fname;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (strncmp(name, names[i], strlen(names[i])) == 0)
      return 1;
  return 0;
}

static void *count(void *block, void *caller) {
  atomic_fetch_add(&calls, 1);
  atomic_fetch_add(&blocks, block != NULL);
  if (is_library(caller))
    atomic_fetch_add(&library_calls, 1);
  return block;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t bytes) { return count(__libc_malloc(bytes), CALLER); }
void *calloc(size_t n, size_t bytes) { return count(__libc_calloc(n, bytes), CALLER); }
void *memalign(size_t alignment, size_t bytes) { return count(__libc_memalign(alignment, bytes), CALLER); }
void *aligned_alloc(size_t alignment, size_t bytes) { return count(__libc_memalign(alignment, bytes), CALLER); }
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  *out = count(__libc_memalign(alignment, bytes), CALLER);
  return *out == NULL ? ENOMEM : 0;
}
void *realloc(void *old, size_t bytes) {
  void *block = count(__libc_realloc(old, bytes), CALLER);
  if (old != NULL && (block != NULL || bytes == 0))
    atomic_fetch_sub(&blocks, 1);
  return block;
}
void free(void *block) {
  if (block == NULL)
    return;
  atomic_fetch_add(&calls, 1);
  if (is_library(CALLER))
    atomic_fetch_add(&library_calls, 1);
  atomic_fetch_sub(&blocks, 1);
  __libc_free(block);
}

struct row {
  long thread, step, calls, library_calls, blocks, resident;
};
static struct row rows[1 << 16];
static atomic_long row_count;

/// KiB, as the pages are and not as the kernel's lazy counters have it.
static long resident(void) {
  char text[256];
  const int file = open("/proc/self/smaps_rollup", O_RDONLY);
  const long length = file < 0 ? 0 : syscall(SYS_read, file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = 0;
  const char *line = strstr(text, "Rss:");
  return line != NULL ? strtol(line + 4, NULL, 10) : 0;
}

ssize_t write(int file, const void *data, size_t bytes) {
  const char *step = bytes > 20 ? memmem(data, 20, " step ", 6) : NULL;
  if (step != NULL && memmem(data, bytes, " loss ", 6) != NULL) {
    const long i = atomic_fetch_add(&row_count, 1);
    if (i < (long)(sizeof rows / sizeof *rows))
      rows[i] = (struct row){syscall(SYS_gettid), strtol(step + 6, NULL, 10), calls, library_calls, blocks, resident()};
  }
  return syscall(SYS_write, file, data, bytes);
}

__attribute__((destructor)) static void report(void) {
  const char *place = getenv("COUNT_ALLOCATIONS");
  if (place == NULL || row_count == 0)
    return;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", place, (int)getpid());
  FILE *file = fopen(path, "w");
  for (long i = 0, n = row_count; file != NULL && i < n; ++i)
    fprintf(file, "%ld %ld %ld %ld %ld %ld\n", rows[i].thread, rows[i].step, rows[i].calls, rows[i].library_calls, rows[i].blocks, rows[i].resident);
  if (file != NULL)
    fclose(file);
}
